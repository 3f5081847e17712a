"""A listing has no gaps and no repeats, whatever is written meanwhile."""

from __future__ import annotations

import httpx2
import pytest

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
