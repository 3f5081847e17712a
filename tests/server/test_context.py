"""`/api/agents/{agent}/context`, and what was shown at earlier calls."""

from __future__ import annotations

import httpx2
import pytest


@pytest.fixture
def full(client: httpx2.Client, ann: str) -> str:
    for text, kind in (("I am careful with money", "core"), ("Invoices are written in euros", "note")):
        assert client.post(f"{ann}/memories", json={"text": text, "kind": kind}).status_code == 201
    return ann


@pytest.mark.proves("E9")
def test_a_prompt_is_put_together(client: httpx2.Client, full: str) -> None:
    body = {"session_id": "s-1", "message": "invoices?", "system_prompt": "You keep the accounts.", "budget": 500}

    made = client.post(f"{full}/context", json=body | {"tool_results": ["ok", {"content": "12", "name": "wc"}]}).json()

    assert [message["role"] for message in made["messages"]] == ["system", "system", "system", "user", "user", "user"]
    assert made["messages"][-1] == {"role": "user", "content": "invoices?"}
    assert made["messages"][-2]["content"] == "[Tool Result] (wc)\n  12"
    assert made["tokens"] <= made["budget"] == 500
    assert [block["name"] for block in made["blocks"] if block["tokens"]] == [
        *("system_prompt", "private_memory", "notes", "tool_results", "message"),
    ]
    assert made["truncations"] == []
    stable = client.post(f"{full}/context", json=body | {"layout": "cache_stable"}).json()
    assert (stable["layout"], stable["stable_messages"]) == ("cache_stable", 2)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"session_id": "s-1", "message": "hi", "budget": 3}, 422, "over_budget"),
        ({"message": "hi", "budget": 0}, 400, "invalid"),
        ({"message": "hi", "layout": "fancy"}, 400, "invalid"),
        ({"message": "hi", "session_id": " "}, 400, "invalid"),
        ({"session_id": "s-1"}, 422, "unprocessable"),
        ({"message": "hi", "tool_results": [{"name": "wc"}]}, 422, "unprocessable"),
    ],
)
def test_what_cannot_be_done_is_refused(
    client: httpx2.Client, full: str, body: dict[str, object], status: int, code: str
) -> None:
    answer = client.post(f"{full}/context", json=body)

    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_prompt_needs_no_session(client: httpx2.Client, full: str) -> None:
    made = client.post(f"{full}/context", json={"message": "In which currency are invoices?"})

    assert "Invoices are written in euros" in made.text
    (call,) = client.get(f"{full}/context-calls").json()["items"]
    assert (call["id"], call["session_id"]) == (made.json()["id"], "")


def test_a_group_is_named(client: httpx2.Client, full: str) -> None:
    made = client.post(f"{full}/context", json={"message": "hello", "participants": ["Lena", "Otto"]}).json()

    assert "You take part in a group conversation.\nOther participants: Lena, Otto." in made["messages"][0]["content"]
    assert [each["id"] for each in made["blocks"][0]["items"]] == ["system prompt", "participants", "clock"]


def test_what_was_shown_is_listed_in_pages_and_looked_at(client: httpx2.Client, full: str) -> None:
    made = [
        client.post(f"{full}/context", json={"session_id": f"s-{n % 2}", "message": "invoices?"}).json()["id"]
        for n in range(3)
    ]

    first = client.get(f"{full}/context-calls", params={"limit": 2}).json()
    rest = client.get(f"{full}/context-calls", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [each["id"] for each in first["items"] + rest["items"]] == made[::-1]
    assert rest["next_cursor"] is None
    (one,) = client.get(f"{full}/context-calls", params={"session_id": "s-1"}).json()["items"]
    assert one["id"] == made[1]

    client.delete(f"{full}/memories/m-2")
    seen = client.get(f"{full}/context-calls/{made[0]}").json()
    items = {item["id"]: item for block in seen["blocks"] for item in block["items"] if not item["left_out"]}
    assert (items["m-1"]["text"], items["m-1"]["since"]) == ("I am careful with money", "")
    assert (items["m-2"]["text"], items["m-2"]["since"]) == (None, "gone")


def test_a_call_of_somebody_else_answers_like_a_missing_one(client: httpx2.Client, full: str) -> None:
    made = client.post(f"{full}/context", json={"message": "invoices?"}).json()["id"]
    client.post("/api/agents/eve/memories", json={"text": "mine"})

    foreign, missing = (client.get(f"/api/agents/eve/context-calls/{id}") for id in (made, "c-0"))

    assert (foreign.status_code, foreign.json()) == (missing.status_code, missing.json())
    assert missing.status_code == 404
