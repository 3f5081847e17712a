"""What other programs remembered, sent over HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tests.providers.test_importers import GRAPH, MEM0, chatgpt, lines, written, zipped

pytestmark = pytest.mark.proves("X6")


def test_a_file_is_recognised_tried_and_taken_in(client: httpx2.Client, ann: str, tmp_path: Path) -> None:
    agent, content = ann.rpartition("/")[2], lines(GRAPH).encode()
    tried = client.post("/api/import", params={"agent": agent, "dry_run": True}, content=content).json()
    assert client.get(ann).status_code == 404

    done = client.post("/api/import", params={"agent": agent, "format": "mcp-memory"}, content=content).json()

    assert (tried["format"], tried["added"], done["added"]) == ("mcp-memory", {"memories": 4}, {"memories": 4})
    memories = client.get(f"{ann}/memories").json()["items"]
    assert {each["origin"] for each in memories} == {"import"}
    assert "John_Smith works_at Anthropic" in {each["text"] for each in memories}


def test_what_does_not_come_in_is_named(client: httpx2.Client, ann: str, tmp_path: Path) -> None:
    agent = ann.rpartition("/")[2]
    archive = zipped(tmp_path / "export.zip", conversations=chatgpt())
    with archive.open("rb") as file:
        turns = client.post("/api/import", params={"agent": agent}, files={"file": ("export.zip", file)}).json()
    facts = client.post(
        "/api/import", params={"agent": agent}, content=written(tmp_path / "m.json", MEM0).read_bytes()
    ).json()

    assert (turns["format"], turns["added"], turns["refused_count"]) == ("chatgpt", {"turns": 2}, 3)
    assert facts["refused"][0] == {"place": "memory 3", "reason": "It has no text under `memory`."}
    nonsense = client.post("/api/import", params={"agent": agent}, content=b"hello")
    assert (nonsense.status_code, nonsense.json()["code"]) == (400, "invalid")


def test_imported_chats_are_recalled_if_asked_for(client: httpx2.Client, ann: str, tmp_path: Path) -> None:
    agent, content = (
        ann.rpartition("/")[2],
        written(tmp_path / "c.json", [{**chatgpt()[0], "conversation_id": "c-77"}]).read_bytes(),
    )

    client.post("/api/import", params={"agent": agent, "remember": True}, content=content)

    found = client.post(f"{ann}/recall", json={"query": "capital of France", "sources": ["memory"]}).json()["hits"]
    assert "Paris." in [hit["text"] for hit in found]
    memories = client.get(f"{ann}/memories", params={"kind": "episode"}).json()["items"]
    assert {each["origin"] for each in memories} == {"import"}
