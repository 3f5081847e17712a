"""`/api/export` and `/api/import` over a real socket."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.types import Message

from tests.server.live import client_of, serving
from tests.waiting import pass_turn
from wellkept.api.wellkept import Wellkept
from wellkept.server.app import create_app
from wellkept.server.http import limits
from wellkept.settings import Settings

pytestmark = pytest.mark.proves("X6")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    """Two servers with nothing in common: an admin of acme at each of them."""
    settings = Settings(embedder="off", rate_limit=0)
    with (
        Wellkept(f"sqlite:///{tmp_path / 'here.db'}", settings=settings) as here,
        Wellkept(f"sqlite:///{tmp_path / 'there.db'}", settings=settings) as there,
        serving(here, no_auth=False) as one,
        serving(there, no_auth=False) as other,
        client_of(one, here.tenant("acme").keys.create("admin").key) as first,
        client_of(other, there.tenant("acme").keys.create("admin").key) as second,
    ):
        yield first, second


def fill(client: httpx2.Client) -> None:
    client.post("/api/agents/atlas/memories", json={"text": "Prefers tabs"}).raise_for_status()
    client.post(
        "/api/agents/atlas/details", json={"content": "line\n" * 200_000, "description": "log"}
    ).raise_for_status()
    client.post("/api/chat/sessions/s-1/messages", json={"user": "a", "assistant": "b"})


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_a_tenant_moves_from_one_server_to_another(pair: tuple[httpx2.Client, httpx2.Client], compression: str) -> None:
    here, there = pair
    fill(here)

    sent = here.get("/api/export", params={"compression": compression})
    told = there.post("/api/import", content=sent.content, params={"dry_run": True})
    moved = there.post("/api/import", content=sent.content)
    again = there.post("/api/import", content=sent.content)

    assert sent.headers["Content-Disposition"].startswith('attachment; filename="acme.jsonl')
    assert int(sent.headers["Content-Length"]) == len(sent.content)
    assert moved.status_code == 200, moved.text
    assert told.json() == moved.json() | {"dry_run": True}
    assert moved.json()["added"]["memories"] == 1
    assert again.json()["added"] == {}
    assert there.get("/api/agents/atlas/memories/m-1").json()["text"] == "Prefers tabs"
    key = there.get("/api/agents/atlas/details").json()["items"][0]["memory_key"]
    assert there.get(f"/api/agents/atlas/details/{key}", params={"tail": 1}).json()["content"].startswith("line")
    assert there.get("/api/audit/verify").json()["ok"] is True


def test_core_memories_of_an_unsigned_file_wait_unless_it_is_trusted(
    pair: tuple[httpx2.Client, httpx2.Client],
) -> None:
    here, there = pair
    here.post("/api/agents/atlas/memories", json={"text": "I am careful", "kind": "core"}).raise_for_status()
    sent = here.get("/api/export").content

    told = there.post("/api/import", content=sent, params={"trusted": True, "dry_run": True}).json()
    moved = there.post("/api/import", content=sent).json()

    assert told["problems"] == []
    assert "1 core memories wait for review" in moved["problems"][0]
    assert (moved["flagged"], moved["flagged_count"]) == ([], 0)
    assert there.get("/api/agents/atlas/memories/m-1").json()["held_at"] is not None


def test_a_file_comes_as_a_form_too(pair: tuple[httpx2.Client, httpx2.Client]) -> None:
    here, there = pair
    fill(here)
    sent = here.get("/api/export").content

    moved = there.post("/api/import", files={"file": ("acme.jsonl", sent)})

    assert moved.json()["added"]["memories"] == 1
    assert there.post("/api/import", files={"else": ("acme.jsonl", sent)}).status_code == 400


def test_what_is_refused_says_why_and_changes_nothing(pair: tuple[httpx2.Client, httpx2.Client]) -> None:
    here, there = pair
    fill(here)
    sent = here.get("/api/export").content
    there.post("/api/agents/atlas/memories", json={"text": "something else"}).raise_for_status()

    clash = there.post("/api/import", content=sent)
    torn = there.post("/api/import", content=sent[: len(sent) // 2])
    nothing = there.post("/api/import", content=b"")
    other = there.post("/api/import", content=sent, params={"format": "sheep"})
    unknown = there.post("/api/import", content=sent, params={"mode": "fast"})
    merged = there.post("/api/import", content=sent, params={"merge": True})

    assert (clash.status_code, clash.json()["code"]) == (409, "conflict")
    assert (torn.status_code, "cut off" in torn.json()["error"]) == (400, True)
    assert nothing.status_code == 400
    assert other.status_code == 400
    assert unknown.status_code == 422
    assert merged.json()["refused"][0]["reason"] == "something else has this id here"
    assert there.get("/api/agents/atlas/memories/m-1").json()["text"] == "something else"


def test_only_an_admin_moves_a_tenant(wellkept: Wellkept, tmp_path: Path) -> None:
    key = wellkept.tenant("walled").keys.create("write").key
    with serving(wellkept, no_auth=False) as address, client_of(address, key) as writer:
        assert writer.get("/api/export").status_code == 403
        assert writer.post("/api/import", content=b"x").status_code == 403
        assert httpx2.get(f"{address}/api/export", trust_env=False).status_code == 401


def test_the_tenant_is_the_keys_and_not_the_files(
    pair: tuple[httpx2.Client, httpx2.Client], wellkept: Wellkept
) -> None:
    here, _ = pair
    fill(here)
    sent = here.get("/api/export").content
    key = wellkept.tenant("other").keys.create("admin").key
    with serving(wellkept, no_auth=False) as address, client_of(address, key) as client:
        client.post("/api/import", content=sent).raise_for_status()

    assert wellkept.tenant("acme").agents.list() == []
    assert [each.id for each in wellkept.tenant("other").agents.list()] == ["atlas"]


def test_a_file_may_be_larger_than_other_bodies_and_has_a_limit_of_its_own(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = b"x" * (limits.MAX_BODY_BYTES + 1)
    assert client.post("/api/audit", content=large).status_code == 413
    assert client.post("/api/import", content=large).status_code == 400

    monkeypatch.setattr(limits, "MAX_FILE_BYTES", 1000)
    assert client.post("/api/import", content=b"x" * 1001).status_code == 413


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop in which time passes when a test says so."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def slowly(app: FastAPI, path: str, *, pause: float) -> int:
    """The status of the answer to a body that comes byte by byte, each after so many seconds."""
    rest = list(b"nothing")
    statuses: list[Any] = []
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}

    async def receive() -> Message:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        loop.ahead += pause
        await pass_turn(3)  # meanwhile, what is due happens
        byte = bytes([rest.pop(0)])
        return {"type": "http.request", "body": byte, "more_body": bool(rest)}

    async def send(message: Message) -> None:
        statuses.append(message.get("status"))

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(app(scope, receive, send))
    return statuses[0]


def test_a_file_may_take_its_time_as_long_as_it_moves(wellkept: Wellkept) -> None:
    app, soon = create_app(wellkept, no_auth=True), limits.MAX_BODY_SECONDS / 2

    assert slowly(app, "/api/import", pause=soon) == 400, "it is nothing, but has come"
    assert slowly(app, "/api/import", pause=3 * soon) == 408
    assert slowly(app, "/api/audit", pause=soon) == 408, "no file has as long as it likes"


def test_no_file_is_left_behind(client: httpx2.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    exported = client.get("/api/export", params={"compression": "gzip"})

    assert json.loads(gzip.decompress(exported.content).splitlines()[0])["wellkept"] == "export"
    assert client.post("/api/import", content=exported.content).status_code == 200
    assert client.post("/api/import", content=b"nonsense").status_code == 400
    assert list(tmp_path.iterdir()) == []
