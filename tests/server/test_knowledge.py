"""`/api/kb`: documents as JSON and as uploads, and finding their passages."""

from __future__ import annotations

import uuid
from typing import Any

import httpx2
import pytest

from tests.documents import PAGE, pdf

pytestmark = pytest.mark.proves("E5")

KB = "/api/kb/documents"


@pytest.fixture
def word() -> str:
    """A word nobody else uses."""
    return f"w{uuid.uuid4().hex[:12]}"


def posted(client: httpx2.Client, **body: Any) -> httpx2.Response:
    return client.post(KB, json=body)


def test_a_document_is_taken_in_found_changed_and_deleted(client: httpx2.Client, word: str) -> None:
    sent = {"title": f"Policy {word}", "text": f"Refunds of {word} are paid within 14 days.", "category": "policy"}
    answer = posted(client, **sent)

    assert answer.status_code == 201
    document = answer.json()
    assert (document["title"], document["category"], document["change"]) == (sent["title"], "policy", "added")
    assert (document["is_published"], document["passages"], document["flag"]) == (True, 1, None)
    again = posted(client, **sent)
    assert (again.status_code, again.json()) == (200, document | {"change": "unchanged"})
    changed = posted(client, **sent | {"text": f"Refunds of {word} are paid within 30 days."})
    assert (changed.status_code, changed.json()["id"], changed.json()["change"]) == (200, document["id"], "updated")

    (hit,) = client.post("/api/kb/search", json={"query": f"refunds {word}", "limit": 1}).json()["hits"]
    assert hit["text"] == f"Policy {word}\n\nRefunds of {word} are paid within 30 days."
    assert (hit["document_id"], hit["title"], hit["source"]) == (document["id"], sent["title"], "knowledge")

    one = f"{KB}/{document['id']}"
    whole = client.get(one).json()
    assert whole["passages"] == [{"position": 0, "text": hit["text"]}]
    patched = client.patch(one, json={"category": "law", "is_published": False}).json()
    assert (patched["category"], patched["is_published"], patched["title"]) == ("law", False, sent["title"])
    found = client.post("/api/kb/search", json={"query": word, "categories": ["law", "policy"]}).json()["hits"]
    assert [hit for hit in found if word in hit["text"]] == []
    assert client.delete(one).status_code == 204
    for request in (client.get, client.delete):
        assert request(one).status_code == 404


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", b"# Refunds\n\nWithin 14 days."),
        ("a.html", PAGE.encode()),
        ("a.pdf", pdf("Refunds are paid within 14 days.")),
        ("a", b"Refunds are paid within 14 days."),
    ],
)
def test_a_file_is_uploaded(client: httpx2.Client, word: str, name: str, content: bytes) -> None:
    files = {"file": (f"../../{word}-{name}", content)}
    answer = client.post(KB, files=files, data={"title": f"Title {word}", "category": word, "is_published": "true"})

    assert answer.status_code == 201, answer.text
    assert answer.json()["source"] == f"{word}-{name}"
    hits = client.post("/api/kb/search", json={"query": "refunds days", "categories": [word]}).json()["hits"]
    assert "14 days" in hits[0]["text"]
    assert client.post(KB, files=files).json()["change"] == "unchanged"


def test_what_cannot_be_taken_in_is_refused_in_our_shape(client: httpx2.Client) -> None:
    refused = [
        (posted(client, text=" "), 400, "invalid"),
        (posted(client, title="x"), 422, "unprocessable"),
        (posted(client, text="x", titel="x"), 422, "unprocessable"),
        (posted(client, text="my password is hunter2", secrets="reject"), 400, "secret_rejected"),
        (posted(client, text="x", secrets="flag"), 422, "unprocessable"),
        (client.post(KB, content=b"{", headers={"Content-Type": "application/json"}), 400, "invalid"),
        (client.post(KB), 400, "invalid"),
        (client.post(KB, files={"file": ("a.pdf", b"no")}), 400, "invalid"),
        (client.post(KB, files={"file": ("", b"x")}), 400, "invalid"),
        (client.post(KB, files={"data": ("a.md", b"x")}), 400, "invalid"),
        (client.post(KB, files={"file": ("a.md", b"x")}, data={"is_published": "perhaps"}), 400, "invalid"),
        (client.post(KB, files={"file": ("a.md", b"\xff\xfe\x00\xd8")}), 400, "invalid"),
        (client.post(KB, files={"file": ("a.md", b"x" * 9_000_000)}), 413, "too_large"),
        (client.get(f"{KB}/d-none"), 404, "not_found"),
        (client.patch(f"{KB}/d-none", json={"title": "x"}), 404, "not_found"),
        (client.post("/api/kb/search", json={"query": "x", "limit": 0}), 400, "invalid"),
        (client.post("/api/kb/search", json={"query": "x", "categories": "x"}), 422, "unprocessable"),
    ]
    for answer, status, code in refused:
        body = answer.json()
        assert (answer.status_code, body["ok"], body["code"]) == (status, False, code), answer.text
        assert "hunter2" not in answer.text


def test_documents_are_listed_in_pages(client: httpx2.Client, word: str) -> None:
    made = {posted(client, title=f"{word} {number}", text="x").json()["id"] for number in range(3)}

    listed, cursor = [], ""
    while cursor is not None:
        page = client.get(KB, params={"limit": 2, "cursor": cursor}).json()
        listed += [each["id"] for each in page["items"]]
        cursor = page["next_cursor"]
    assert made <= set(listed)
    assert listed == sorted(listed)


def test_an_agent_is_limited_to_categories(client: httpx2.Client, ann: str, word: str) -> None:
    posted(client, title=f"{word} a", text=f"{word} apples", category=f"{word}-a")
    posted(client, title=f"{word} b", text=f"{word} bananas", category=f"{word}-b")
    agent = client.post(
        "/api/agents", json={"id": ann.rpartition("/")[2], "knowledge_categories": [f"{word}-a"]}
    ).json()

    assert agent["knowledge_categories"] == [f"{word}-a"]
    hits = client.post(f"{ann}/recall", json={"query": word, "sources": ["knowledge"]}).json()["hits"]
    assert [hit["text"] for hit in hits] == [f"{word} a\n\n{word} apples"]
    assert client.patch(ann, json={"knowledge_categories": []}).json()["knowledge_categories"] == []
