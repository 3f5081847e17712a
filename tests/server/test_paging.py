"""A listing has no gaps and no repeats, whatever is written meanwhile."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import httpx2
import pytest

from wellkept.api.tenant import TenantWorkflows
from wellkept.api.wellkept import Wellkept
from wellkept.server import paging
from wellkept.server.console import conversations
from wellkept.server.console.pages import fit_bytes

COUNT = 250


def test_paging_while_new_memories_arrive(client: httpx2.Client, ann: str) -> None:
    wanted = [client.post(f"{ann}/memories", json={"text": f"old {n}"}).json()["id"] for n in range(COUNT)]

    found: list[str] = []
    cursor = ""
    while cursor is not None:
        page = client.get(f"{ann}/memories", params={"limit": 7, "cursor": cursor, "q": "old"}).json()
        found += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        for text in (f"new {len(found)}", f"old too {len(found)}"):
            client.post(f"{ann}/memories", json={"text": text, "kind": "journal"}).raise_for_status()

    assert found == wanted[::-1]


def test_the_last_full_page_says_that_it_is_the_last(client: httpx2.Client, ann: str) -> None:
    for number in range(4):
        client.post(f"{ann}/memories", json={"text": f"fact {number}"})

    first = client.get(f"{ann}/memories", params={"limit": 2}).json()
    second = client.get(f"{ann}/memories", params={"limit": 2, "cursor": first["next_cursor"]}).json()

    assert [item["id"] for item in first["items"] + second["items"]] == ["m-4", "m-3", "m-2", "m-1"]
    assert second["next_cursor"] is None


@pytest.mark.parametrize(
    ("make", "listing", "one"),
    [
        ("{ann}/memories", "{ann}/memories?kind=note", "id"),
        ("{ann}/details", "{ann}/details?q=", "memory_key"),
        ("/api/kb/documents", "/api/kb/documents?category=paged", "id"),
        ("/api/chat/sessions", "/api/chat/sessions?agent={id}", "id"),
    ],
)
def test_what_was_just_listed_may_be_deleted(
    client: httpx2.Client, ann: str, make: str, listing: str, one: str
) -> None:
    make, listing = make.replace("{ann}", ann), listing.replace("{ann}", ann).replace("{id}", ann.rpartition("/")[2])
    for number in range(5):
        bodies = {
            "memories": {"text": f"fact {number}"},
            "details": {"content": f"text {number}"},
            "documents": {"title": f"{ann} {number}", "text": "a", "category": "paged"},
            "sessions": {"agent_id": ann.rpartition("/")[2]},
        }
        client.post(make, json=bodies[make.rpartition("/")[2]]).raise_for_status()

    cursor, deleted = "", []
    while cursor is not None:
        answer = client.get(f"{listing}&limit=2&cursor={cursor}")
        assert answer.status_code == 200, answer.text
        for item in answer.json()["items"]:
            deleted.append(item[one])
            assert client.delete(f"{make}/{item[one]}").status_code == 204
        cursor = answer.json()["next_cursor"]

    assert len(set(deleted)) == len(deleted) == 5


def test_a_search_for_details_pages_to_the_end(client: httpx2.Client, ann: str) -> None:
    for number in range(5):
        client.post(f"{ann}/details", json={"content": f"text {number}", "description": f"plan {number}"})

    cursor, found = "", []
    while cursor is not None:
        page = client.get(f"{ann}/details", params={"q": "plan", "limit": 2, "cursor": cursor}).json()
        found += [item["description"] for item in page["items"]]
        cursor = page["next_cursor"]

    assert found == [f"plan {number}" for number in (4, 3, 2, 1, 0)]


def test_history_and_keys_page_too(client: httpx2.Client, ann: str) -> None:
    client.post(f"{ann}/memories", json={"text": "fact 0"})
    for number in range(1, 6):
        client.patch(f"{ann}/memories/m-1", json={"text": f"fact {number}"}).raise_for_status()
        client.post("/api/keys", json={"scope": "read", "name": f"key {number}"}).raise_for_status()

    for path, field in ((f"{ann}/memories/m-1/history", "version"), ("/api/keys", "id")):
        whole = client.get(path).json()
        assert whole["next_cursor"] is None
        cursor, found = "", []
        while cursor is not None:
            page = client.get(path, params={"limit": 2, "cursor": cursor}).json()
            assert 1 <= len(page["items"]) <= 2
            found += page["items"]
            cursor = page["next_cursor"]
        assert found == whole["items"]
        assert len({each[field] for each in found}) >= 5
        assert client.get(path, params={"limit": 0}).status_code == 400
        assert client.get(path, params={"cursor": "x"}).status_code == 400


def steps_of(client: httpx2.Client) -> str:
    workflow = client.post("/api/workflows", json={"name": f"Run {uuid.uuid4().hex}"}).json()["id"]
    return f"/api/workflows/{workflow}/steps"


def make_large(client: httpx2.Client, ann: str, listing: str) -> tuple[str, str]:
    """Fill a list with items of about 9,000 bytes; return its address and the field that tells them apart."""
    agent, text = ann.rpartition("/")[2], "☕" * 3000
    bodies: list[tuple[str, dict[str, Any]]]
    if listing == "steps":
        path = steps_of(client)
        bodies = [(path, {"step": f"s{n}", "output": text, "agent_id": agent}) for n in range(20)]
    elif listing == "messages":
        path = f"/api/chat/sessions/{agent}/messages"
        bodies = [(path, {"user": text, "assistant": text, "agent_id": agent}) for n in range(3)]
    elif listing == "agents":
        path = "/api/agents"
        bodies = [(path, {"id": f"{agent}-{n}", "system_prompt": text}) for n in range(6)]
    elif listing in ("details", "found details"):
        path = f"{ann}/details" + ("?q=tea" if listing == "found details" else "")
        bodies = [
            (f"{ann}/details", {"content": "c", "description": f"tea {n}", "metadata": {"a": "x" * 9000}})
            for n in range(6)
        ]
    elif listing == "audit":
        path = f"/api/audit?q={agent}"
        bodies = [
            ("/api/audit", {"action": "tea.made", "message": f"{agent} {n}", "meta": {"a": "x" * 9000}})
            for n in range(6)
        ]
    else:
        path = f"{ann}/memories"
        bodies = [(path, {"text": f"{text} {n}", "kind": "journal"}) for n in range(6)]
    for to, body in bodies:
        client.post(to, json=body).raise_for_status()
    if listing == "history":
        for number in range(6):
            client.patch(f"{path}/m-1", json={"text": f"{text} again {number}"}).raise_for_status()
        path += "/m-1/history"
    fields = {"steps": "position", "messages": "position", "history": "version"}
    return path, fields.get(listing, "memory_key" if "details" in listing else "id")


@pytest.mark.parametrize(
    "listing", ["steps", "messages", "agents", "details", "found details", "audit", "memories", "history"]
)
def test_pages_end_at_a_number_of_bytes(
    client: httpx2.Client, ann: str, listing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, field = make_large(client, ann, listing)
    whole = client.get(path, params={"limit": 500, **dict(httpx2.URL(path).params)}).json()
    monkeypatch.setattr(paging, "MAX_PAGE_BYTES", 20_000)
    monkeypatch.setitem(paging.read_page.__kwdefaults__ or {}, "at_once", 2)

    found, cursor, pages = [], "", 0
    while cursor is not None:
        wanted: dict[str, Any] = {"limit": 500, "cursor": cursor, **dict(httpx2.URL(path).params)}
        answer = client.get(path, params=wanted)
        found += answer.json()["items"]
        cursor, pages = answer.json()["next_cursor"], pages + 1
        assert len(answer.content) < 22_000

    assert [each[field] for each in found] == [each[field] for each in whole["items"]]
    assert len({each[field] for each in found}) == len(found) >= (20 if listing == "steps" else 6)
    assert pages >= 3


def test_a_page_holds_one_item_of_any_size(client: httpx2.Client, ann: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = make_large(client, ann, "steps")
    monkeypatch.setattr(paging, "MAX_PAGE_BYTES", 100)

    positions, cursor = [], ""
    while cursor is not None:
        page = client.get(path, params={"limit": 500, "cursor": cursor}).json()
        positions.append([each["position"] for each in page["items"]])
        cursor = page["next_cursor"]

    assert positions == [[number] for number in range(1, 21)]


def test_a_page_is_not_read_from_the_store_at_once(
    client: httpx2.Client, wellkept: Wellkept, ann: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = make_large(client, ann, "steps")
    monkeypatch.setattr(paging, "MAX_PAGE_BYTES", 20_000)
    wanted: list[int] = []
    read = TenantWorkflows.steps

    def noted(self: TenantWorkflows, workflow: str, *, after: int, limit: int) -> object:
        wanted.append(limit)
        return read(self, workflow, after=after, limit=limit)

    monkeypatch.setattr(TenantWorkflows, "steps", noted)
    client.get(path, params={"limit": 500}).raise_for_status()

    assert wanted == [paging.READ_LARGE_AT_ONCE]


def test_pages_of_the_console_end_at_a_number_of_bytes(
    client: httpx2.Client, ann: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = ann.rpartition("/")[2]
    make_large(client, ann, "messages")
    monkeypatch.setattr(conversations, "fit_bytes", partial(fit_bytes, most=20_000))
    path = f"/admin/agents/{agent}/sessions/{agent}"

    first = client.get(path)
    second = client.get(path, params={"after": 2})

    assert [each.text.count("☕" * 3000) for each in (first, second)] == [2, 2]
    assert "after=2" in first.text
