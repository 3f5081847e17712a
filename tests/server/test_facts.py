"""Facts of conversations over REST."""

from __future__ import annotations

import httpx2
import pytest

ALLERGY = "I'm allergic to penicillin."
TALK = [{"role": "user", "content": f"Hi! {ALLERGY} What can I take?"}]


def test_facts_are_added_shown_first_and_undone(client: httpx2.Client, ann: str) -> None:
    shown = client.post(f"{ann}/add", json={"messages": TALK, "dry_run": True}).json()
    assert (shown["added"][0]["text"], shown["added"][0]["id"], shown["change"]) == (ALLERGY, "", None)
    assert client.get(f"{ann}/memories").json()["items"] == []

    added = client.post(f"{ann}/add", json={"messages": TALK, "session_id": "monday"}).json()

    assert [(each["text"], each["turn"], each["category"]) for each in added["added"]] == [(ALLERGY, 0, "fact")]
    assert {each["reason"] for each in added["dropped"]} == {"small talk", "a question"}
    hits = client.post(f"{ann}/recall", json={"query": "what is the user allergic to?"}).json()
    assert ALLERGY in str(hits)
    assert client.post(f"{ann}/changes/{added['change']}/undo").json()["state"] == "undone"
    assert client.post(f"{ann}/changes/{added['change']}/undo").status_code == 409


def test_facts_have_the_metadata_of_the_request(client: httpx2.Client, ann: str) -> None:
    added = client.post(f"{ann}/add", json={"messages": TALK, "metadata": {"topic": "health"}}).json()

    stored = client.get(f"{ann}/memories/{added['added'][0]['id']}").json()
    assert (stored["metadata"], stored["namespace"], stored["item_key"]) == ({"topic": "health"}, None, None)


def test_an_edited_memory_is_not_undone(client: httpx2.Client, ann: str) -> None:
    added = client.post(f"{ann}/add", json={"messages": TALK}).json()
    id = added["added"][0]["id"]
    client.patch(f"{ann}/memories/{id}", json={"text": "I'm allergic to nuts."})

    refused = client.post(f"{ann}/changes/{added['change']}/undo")

    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert client.get(f"{ann}/memories/{id}").json()["text"] == "I'm allergic to nuts."


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("add", {}, 422),
        ("add", {"messages": "I live in Oslo"}, 422),
        ("add", {"messages": [{"role": "boss", "content": "x"}]}, 400),
        ("add", {"messages": [], "dry_run": "yes"}, 422),
        ("add", {"messages": [], "sesion_id": "x"}, 422),
        ("add", {"messages": [], "session_id": "a/b"}, 400),
    ],
)
def test_bad_bodies_are_refused(client: httpx2.Client, ann: str, path: str, body: object, status: int) -> None:
    answer = client.post(f"{ann}/{path}", json=body)

    assert (answer.status_code, answer.json()["ok"]) == (status, False), answer.text


def test_the_profile_is_shown_and_what_is_meant_is_forgotten(client: httpx2.Client, ann: str) -> None:
    session = client.post("/api/chat/sessions", json={"agent_id": ann.rpartition("/")[2]}).json()["id"]
    turn = {"user": "I live in Turku. My sister Tilda is a midwife.", "assistant": "All right."}
    assert client.post(f"/api/chat/sessions/{session}/messages", json=turn).status_code == 201

    profile = client.get(f"{ann}/profile").json()
    home = next(each for each in profile["facts"] if "Turku" in each["text"])
    about_tilda = client.get(f"{ann}/profile", params={"subject": "Tilda"}).json()
    forgotten = client.post(f"{ann}/forget", json={"about": "where I live"}).json()

    assert home["fact"]["subject"] == "user"
    assert home["sources"] != []
    assert "I live in Turku." in profile["text"]
    assert [each["text"] for each in about_tilda["facts"]] == ["My sister Tilda is a midwife."]
    assert ([each["id"] for each in forgotten["forgotten"]], forgotten["candidates"]) == ([home["id"]], [])
    assert "Turku" not in client.get(f"{ann}/profile").text
    assert client.post(f"{ann}/memories/{home['id']}/restore").status_code == 200
    assert "Turku" in client.get(f"{ann}/profile").text
    note = client.post(f"{ann}/memories", json={"text": "Drives a red Tesla Model 3"}).json()
    named, gone = (client.post(f"{ann}/forget", json={"about": each}).json() for each in ("my car", "the red Tesla"))
    assert ([each["id"] for each in named["candidates"]], named["forgotten"]) == ([note["id"]], [])
    assert [each["id"] for each in gone["forgotten"]] == [note["id"]]
    assert client.post(f"{ann}/forget", json={"about": ""}).status_code in (400, 422)
    assert client.get(f"{ann}/profile", params={"subjekt": "x"}).status_code == 422
