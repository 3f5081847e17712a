"""Filters and metadata over REST and in the console."""

from __future__ import annotations

import json
import uuid

import httpx2
import pytest

from tests.server.console import Browser, read
from tests.server.test_agents_and_memories import remember, texts
from wellkept.api.wellkept import Wellkept


@pytest.fixture
def trips(client: httpx2.Client, ann: str) -> str:
    remember(client, ann, "Dinner in Oslo", tags=["food"], metadata={"city": "Oslo", "stars": 4})
    remember(client, ann, "Dinner in Rome", tags=["food"], metadata={"city": "Rome", "stars": 5})
    remember(client, ann, "Museum in Oslo", metadata={"city": "Oslo"})
    return ann


def test_memories_are_listed_by_a_filter(client: httpx2.Client, trips: str) -> None:
    assert texts(client, trips, where="tags = food and metadata.city = 'Oslo'") == ["Dinner in Oslo"]
    assert texts(client, trips, where=json.dumps({">": ["metadata.stars", 4]})) == ["Dinner in Rome"]
    assert texts(client, trips, where="metadata.city = Oslo", tag="food") == ["Dinner in Oslo"]
    assert texts(client, trips, where="state = live and created > 2020-01-01", limit=2) == [
        "Museum in Oslo",
        "Dinner in Rome",
    ]


@pytest.mark.parametrize("where", ["metadata.city = Rome", {"and": [{"=": ["metadata.city", "Rome"]}]}])
def test_recall_explain_and_context_take_a_filter(client: httpx2.Client, trips: str, where: object) -> None:
    asked = {"query": "dinner", "min_relevance": 0, "where": where}
    assert [hit["text"] for hit in client.post(f"{trips}/recall", json=asked).json()["hits"]] == ["Dinner in Rome"]
    explained = client.post(f"{trips}/explain", json={**asked, "id": "m-1"}).json()
    assert explained["outcome"] == "filtered"
    body = {"session_id": f"s-{uuid.uuid4().hex}", "message": "dinner?", "min_relevance": 0, "where": where}
    assert client.post(f"{trips}/context", json=body).status_code == 200


def test_a_wrong_filter_is_placed(client: httpx2.Client, trips: str) -> None:
    wrong = "The filter is wrong at character 7: expected a value after `=` instead of the end."
    answers = [
        client.get(f"{trips}/memories", params={"where": "tags ="}),
        client.post(f"{trips}/recall", json={"query": "dinner", "where": "tags ="}),
        client.post(f"{trips}/context", json={"session_id": "s", "message": "dinner", "where": "tags ="}),
        client.post(f"{trips}/memories/restore", json={"where": "tags ="}),
        client.get("/api/chat/sessions", params={"where": "user ="}),
        client.get("/api/kb/documents", params={"where": "title="}),
        client.post("/api/kb/search", json={"query": "dinner", "where": "title="}),
    ]
    assert [(each.status_code, each.json()["code"]) for each in answers] == [(400, "invalid")] * len(answers)
    assert [each.json()["error"] for each in answers] == [wrong] * len(answers)
    nested = client.post(f"{trips}/recall", json={"query": "dinner", "where": {"and": [{"=": ["x", 1]}]}})
    assert "wrong at and[0]: there is no field `x`" in nested.json()["error"]


def test_metadata_is_changed_with_history(client: httpx2.Client, trips: str) -> None:
    edited = client.patch(f"{trips}/memories/m-1", json={"metadata": {"city": "Bergen"}})
    assert (edited.status_code, edited.json()["metadata"], edited.json()["version"]) == (200, {"city": "Bergen"}, 2)
    (version,) = client.get(f"{trips}/memories/m-1/history").json()["items"]
    assert version["metadata"] == {"city": "Oslo", "stars": 4}
    assert client.patch(f"{trips}/memories/m-1", json={"metadata": {}}).json()["metadata"] == {}
    secret = client.patch(f"{trips}/memories/m-1", json={"metadata": {"password": "hunter2"}})
    assert (secret.status_code, secret.json()["code"]) == (400, "secret_rejected")


def test_documents_and_sessions_have_metadata(client: httpx2.Client, ann: str) -> None:
    word = f"zorg{uuid.uuid4().hex[:8]}"
    for lang in ("en", "de"):
        sent = {"text": f"# {word} {lang}\n\nThe {word} is paid.", "metadata": {"lang": lang}}
        assert client.post("/api/kb/documents", json=sent).json()["metadata"] == {"lang": lang}
    form = {"metadata": '{"lang": "fr"}'}
    uploaded = client.post("/api/kb/documents", data=form, files={"file": (f"{word}.md", f"The {word} is paid.")})
    assert uploaded.json()["metadata"] == {"lang": "fr"}
    damaged = client.post("/api/kb/documents", data={"metadata": "{"}, files={"file": ("a.md", "The tea.")})
    assert (damaged.status_code, damaged.json()["error"]) == (400, "metadata is a JSON object, as text.")
    question = {"query": f"{word} paid", "where": "metadata.lang in (en, fr)"}
    hits = client.post("/api/kb/search", json=question).json()["hits"]
    assert sorted(hit["title"] for hit in hits) == sorted([f"{word} en", word])
    listed = client.get("/api/kb/documents", params={"where": f"title = '{word} en' and metadata.lang = en"}).json()
    (found,) = listed["items"]
    edited = client.patch(f"/api/kb/documents/{found['id']}", json={"metadata": {"lang": "nl"}}).json()
    assert edited["metadata"] == {"lang": "nl"}

    agent = ann.rpartition("/")[2]
    made = client.post("/api/chat/sessions", json={"agent_id": agent, "metadata": {"channel": word}})
    assert (made.status_code, made.json()["metadata"]) == (201, {"channel": word})
    sessions = client.get("/api/chat/sessions", params={"where": f"metadata.channel = {word}"}).json()["items"]
    assert [each["id"] for each in sessions] == [made.json()["id"]]


def test_the_console_filters_and_shows_metadata(wellkept: Wellkept, browser: Browser) -> None:
    agent = wellkept.agent(f"ann-{uuid.uuid4().hex[:8]}")
    agent.remember("Dinner in Oslo", metadata={"city": "Oslo", "note": "<b>bold</b>"})
    agent.remember("Dinner in Rome", metadata={"city": "Rome"})
    home = f"/admin/agents/{agent.owner.agent}"

    found = read(browser.get(home, where="metadata.city = Oslo"))
    assert "Dinner in Oslo" in found
    assert "Dinner in Rome" not in found
    assert "wrong at character 7" in read(browser.get(home, where="tags ="))
    shown = browser.get(f"{home}/memories/m-1")
    assert "metadata.city Oslo" in read(shown)
    assert "<b>bold</b>" not in shown.text
