"""Everything a client can do when nothing goes wrong."""

from __future__ import annotations

import re
from datetime import timedelta

import httpx2
import pytest

from tests.server.conftest import MovableClock
from wellkept.api.wellkept import Wellkept

FIELDS = """id kind text tags scope role session_id importance category origin created_at updated_at expires_at
last_retrieved_at archived_at state version supersedes valid_from valid_to held_at flag user metadata
namespace item_key fact sources ended_by ended_as forgotten_at""".split()
UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
NOTHING_YET = {"core": 0, "journal": 0, "note": 0, "episode": 0, "item": 0}


def remember(client: httpx2.Client, agent: str, text: str, **fields: object) -> str:
    answer = client.post(f"{agent}/memories", json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def texts(client: httpx2.Client, agent: str, **query: str | int) -> list[str]:
    answer = client.get(f"{agent}/memories", params=query)
    assert answer.status_code == 200, answer.text
    return [item["text"] for item in answer.json()["items"]]


def test_an_agent_is_made_read_changed_and_deleted(client: httpx2.Client, ann: str) -> None:
    id = ann.rpartition("/")[2]
    made = client.post("/api/agents", json={"id": id, "name": "Ann", "tools": ["web"], "system_prompt": "Be kind."})

    assert made.status_code == 201
    assert made.json() | {"created_at": "", "updated_at": ""} == {
        "id": id,
        "name": "Ann",
        "system_prompt": "Be kind.",
        "model": "",
        "tools": ["web"],
        "knowledge_categories": [],
        "colour": "",
        "icon": "",
        "is_active": True,
        "active": True,
        "created_at": "",
        "updated_at": "",
        "memories_count": NOTHING_YET,
    }
    assert client.get(ann).json() == made.json()
    changed = client.patch(ann, json={"colour": "green", "is_active": False}).json()
    assert (changed["colour"], changed["is_active"], changed["name"]) == ("green", False, "Ann")
    assert client.get(ann).json() == changed
    assert client.patch(ann, json={}).json() == client.patch(ann, json={"colour": "green"}).json() == changed
    assert client.patch(ann, json={"active": True}).json()["is_active"] is True
    assert client.patch(ann, json={"active": False}).json()["active"] is False
    assert client.patch(ann, json={"active": True, "is_active": True}).status_code == 422
    assert client.delete(ann).status_code == 204
    assert client.get(ann).status_code == 404


def test_a_first_memory_makes_the_agent_and_every_kind_is_counted(client: httpx2.Client, ann: str) -> None:
    assert client.get(ann).status_code == 404

    for kind in ("core", "journal", "journal", "note"):
        remember(client, ann, "x", kind=kind)

    agent = client.get(ann).json()
    assert agent["memories_count"] == {"core": 1, "journal": 2, "note": 1, "episode": 0, "item": 0}
    assert agent["name"] == agent["id"]


def test_agents_are_listed_in_pages(client: httpx2.Client, ann: str) -> None:
    stem = ann.rpartition("/")[2]
    for number in range(5):
        client.post("/api/agents", json={"id": f"{stem}-{number}"})

    found, cursor = [], ""
    while True:
        page = client.get("/api/agents", params={"limit": 2, "cursor": cursor}).json()
        found += [item["id"] for item in page["items"]]
        assert len(page["items"]) <= 2
        if (cursor := page["next_cursor"]) is None:
            break

    assert found == sorted(set(found))
    assert {f"{stem}-{number}" for number in range(5)} <= set(found)


def test_a_memory_answers_with_all_of_its_fields(client: httpx2.Client, ann: str) -> None:
    given = {
        "text": "  The invoice is due  ",
        "kind": "episode",
        "tags": ["money", "money", "due"],
        "scope": "session",
        "role": "assistant",
        "session_id": "s-1",
        "importance": 0.25,
        "category": "billing",
        "origin": "agent",
        "created_at": "2026-01-31T14:00:00+02:00",
        "expires_at": "2096-01-31T12:00:00Z",
        "valid_from": "2026-01-30T12:00:00Z",
    }

    kept = client.post(f"{ann}/memories", json=given).json()

    assert set(kept) == {*FIELDS, "similar"}
    assert kept.pop("similar") == []
    assert kept == {
        **given,
        "id": "m-1",
        "text": "The invoice is due",
        "tags": ["money", "due"],
        "created_at": "2026-01-31T12:00:00Z",
        "updated_at": None,
        "last_retrieved_at": None,
        "archived_at": None,
        "state": "live",
        "version": 1,
        "supersedes": None,
        "valid_to": None,
        "held_at": None,
        "flag": None,
        "user": None,
        "metadata": {},
        "namespace": None,
        "item_key": None,
        "fact": None,
        "sources": [],
        "ended_by": None,
        "ended_as": None,
        "forgotten_at": None,
    }
    assert client.get(f"{ann}/memories/m-1").json() == kept
    assert client.get(f"{ann}/memories").json() == {"items": [kept], "next_cursor": None}


def test_null_means_not_given(client: httpx2.Client, ann: str) -> None:
    fields = dict.fromkeys(["scope", "role", "session_id", "importance", "category", "origin", "expires_at"])

    remember(client, ann, "x", kind="core", **fields)

    assert client.get(f"{ann}/memories/m-1").json()["importance"] == 1.0


def test_an_edit_keeps_history(client: httpx2.Client, ann: str) -> None:
    id = remember(client, ann, "Prefers tabs", tags=["preference"])
    client.patch(f"{ann}/memories/{id}", json={"text": "Prefers spaces"})
    edited = client.patch(f"{ann}/memories/{id}", json={"tags": [], "importance": 0}).json()

    assert (edited["text"], edited["tags"], edited["importance"], edited["version"]) == ("Prefers spaces", [], 0, 3)
    assert UTC_TIME.fullmatch(edited["updated_at"])
    history = client.get(f"{ann}/memories/{id}/history").json()
    assert history["next_cursor"] is None
    assert [(each["version"], each["text"], each["tags"]) for each in history["items"]] == [
        (2, "Prefers spaces", ["preference"]),
        (1, "Prefers tabs", ["preference"]),
    ]
    assert client.patch(f"{ann}/memories/{id}", json={}).json() == edited
    assert client.patch(f"{ann}/memories/{id}", json={"text": "Prefers both", "version": 2}).status_code == 409
    assert client.patch(f"{ann}/memories/{id}", json={"text": "Prefers both", "version": 3}).json()["version"] == 4


def test_a_deleted_memory_is_gone_with_its_history(client: httpx2.Client, ann: str) -> None:
    id = remember(client, ann, "x")
    answer = client.delete(f"{ann}/memories/{id}")

    assert (answer.status_code, answer.content) == (204, b"")
    for path in (f"{ann}/memories/{id}", f"{ann}/memories/{id}/history"):
        assert client.get(path).status_code == 404
    assert client.delete(f"{ann}/memories/{id}").status_code == 404
    assert remember(client, ann, "y") == "m-2", "ids are never used again"


def test_memories_are_filtered(client: httpx2.Client, ann: str) -> None:
    remember(client, ann, "Likes TEA", tags=["Drink"])
    remember(client, ann, "Likes coffee", tags=["drinks"])
    remember(client, ann, "Sleeps late", kind="core")

    assert texts(client, ann) == ["Sleeps late", "Likes coffee", "Likes TEA"]
    assert texts(client, ann, kind="core") == ["Sleeps late"]
    assert texts(client, ann, tag="DRINK") == ["Likes TEA"]
    assert texts(client, ann, q="likes t") == ["Likes TEA"]
    assert texts(client, ann, q="%") == []
    assert texts(client, ann, kind="", tag="", q="", cursor="", limit=2) == ["Sleeps late", "Likes coffee"]
    assert texts(client, ann, state="", kind="", tag="", q="") == texts(client, ann)


def test_a_journal_entry_expires_and_can_still_be_listed(client: httpx2.Client, ann: str, clock: MovableClock) -> None:
    remember(client, ann, "Slept badly", kind="journal")
    assert "Slept badly" in client.get(f"{ann}/private-memory").json()["text"]

    clock.ahead = timedelta(days=8)

    assert texts(client, ann) == texts(client, ann, state="archived") == []
    assert texts(client, ann, state="expired") == texts(client, ann, state="all") == ["Slept badly"]
    assert client.get(f"{ann}/memories/m-1").json()["state"] == "expired"
    assert client.get(f"{ann}/private-memory").json() == {"text": None}


def test_an_agent_nobody_has_written_to_is_an_empty_one(client: httpx2.Client, ann: str) -> None:
    assert client.get(f"{ann}/memories").json() == {"items": [], "next_cursor": None}
    assert client.get(f"{ann}/private-memory").json() == {"text": None}
    assert client.post(f"{ann}/recall", json={"query": "anything"}).json() == {"hits": [], "missing": [], "heading": ""}
    assert client.get(ann).status_code == 404, "reading made it"


def test_the_parts_of_a_recalled_score_add_up(client: httpx2.Client, ann: str, wellkept: Wellkept) -> None:
    for text in ("Prefers tabs over spaces", "The office is in Lisbon", "Drinks green tea"):
        remember(client, ann, text)
    remember(client, ann, "Indents with tabs", kind="core", importance=0.9)
    settings = wellkept.settings

    hits = client.post(f"{ann}/recall", json={"query": "tabs or spaces?", "limit": 3}).json()["hits"]

    assert len(hits) == 3
    assert hits[0]["text"] == "Prefers tabs over spaces"
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    for hit in hits:
        record = ["source", "id", "text", "score", "relevance", "weak", "parts", "created_at", "agent_id", "explain"]
        assert set(hit) == {*record, "title", "heading", "page"}
        assert set(hit["parts"]) == {"similarity", "recency", "importance", "source"}
        weighted = sum(getattr(settings, f"weight_{name}") * part for name, part in hit["parts"].items())
        assert hit["score"] == pytest.approx(weighted)
        assert hit["explain"].startswith(f"{hit['score']:.3f} = ")
    only = client.post(f"{ann}/recall", json={"query": "tabs", "kinds": ["core"]}).json()["hits"]
    assert [hit["text"] for hit in only] == ["Indents with tabs"]


@pytest.mark.parametrize("text", ["Straße 東京 🧠 e\u0301", "a\nb\tc", '"; DROP TABLE memories; --', "<script>"])
def test_text_comes_back_as_it_was_sent(client: httpx2.Client, ann: str, text: str) -> None:
    id = remember(client, ann, text, tags=["Straße 🧠"])

    kept = client.get(f"{ann}/memories/{id}").json()
    assert (kept["text"], kept["tags"]) == (text, ["Straße 🧠"])


def test_an_agent_id_may_hold_all_letters(client: httpx2.Client) -> None:
    for id in ("Zoë", "用户:7", "a+b@example.org"):
        remember(client, f"/api/agents/{id}", "x")
        assert client.get(f"/api/agents/{id}").json()["id"] == id
