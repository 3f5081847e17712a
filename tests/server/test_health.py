"""Health really asks the store, and names what is wrong."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

from tests.server.conftest import MovableClock
from tests.server.live import client_of, serving
from tests.waiting import eventually
from wellkept import __version__
from wellkept.api.wellkept import Wellkept
from wellkept.errors import ModelError
from wellkept.server.rest import health
from wellkept.settings import Settings


class BrokenEmbedder:
    """Always fails."""

    name = "broken"
    dimensions = 4

    def embed(self, texts: Sequence[str]) -> Any:
        raise ModelError("The embedder is not there.")


def test_a_healthy_server(client: httpx2.Client, wellkept: Wellkept, clock: MovableClock) -> None:
    answer = client.get("/health").json()
    maintenance = answer.pop("maintenance")
    assert answer == {
        "status": "ok",
        "version": __version__,
        "engine": "sqlite",
        "embedder": "minilm",
        "problems": [],
    }
    # The server runs it by itself, a minute after its start at the latest.
    assert (maintenance["last_at"], maintenance["error"], maintenance["counts"]) == (None, "", None)
    assert datetime.fromisoformat(maintenance["next_at"]) - clock() < timedelta(seconds=66)
    wellkept.maintain()
    after = client.get("/health").json()["maintenance"]
    assert after["counts"]["archived"] == 0
    assert datetime.fromisoformat(after["next_at"]) - datetime.fromisoformat(after["last_at"]) >= timedelta(hours=1)


def test_a_store_that_does_not_answer() -> None:
    with Wellkept(":memory:", settings=Settings()) as wellkept, serving(wellkept) as address:
        wellkept.close()
        with client_of(address) as client:
            answer = client.get("/health")

    assert answer.status_code == 503
    body = answer.json()
    assert (body["ok"], body["code"], body["status"], body["engine"]) == (False, "store", "degraded", "sqlite")
    assert body["problems"] == [body["error"]] == ["This store is closed; open a new one."]


def test_memories_without_vectors_are_named() -> None:
    with (
        Wellkept(":memory:", settings=Settings(), embedder=BrokenEmbedder()) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        assert client.get("/health").json()["status"] == "ok"
        assert client.post("/api/agents/ann/memories", json={"text": "tabs"}).status_code == 201
        eventually(lambda: wellkept.embedding.problem)
        answer = client.get("/health")
        hits = client.post("/api/agents/ann/recall", json={"query": "tabs"}).json()["hits"]

    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["problems"] == [
        "The embedder failed: The embedder is not there.",
        "Texts without a vector yet, found by their words alone until then: 1.",
    ]
    assert [hit["text"] for hit in hits] == ["tabs"]


class Slow:
    """Remote embedder that answers queries at once, and embeds texts when it is released."""

    name = "slow"
    dimensions = 4
    is_remote = True

    def __init__(self) -> None:
        self.is_asked, self.released = threading.Event(), threading.Event()

    def embed_query(self, text: str) -> Any:
        return [1.0, 0.0, 0.0, 0.0]

    def embed(self, texts: Sequence[str]) -> Any:
        self.is_asked.set()
        self.released.wait(60)
        return [[1.0, 0.0, 0.0, 0.0] for _ in texts]


def test_text_the_embedder_is_working_on_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Slow()
    with (
        Wellkept(":memory:", settings=Settings(), embedder=embedder) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        assert client.post("/api/agents/ann/memories", json={"text": "tabs"}).status_code == 201
        assert embedder.is_asked.wait(60)
        assert wellkept.embedding.count_waiting() == 1
        soon = client.get("/health").json()
        monkeypatch.setattr(health, "QUEUE_STANDS", 0.0)
        late = client.get("/health").json()
        embedder.released.set()
        eventually(lambda: wellkept.embedding.count_waiting() == 0)

    assert (soon["status"], soon["problems"]) == ("ok", [])
    assert late["status"] == "degraded"
    assert late["problems"][0] == "Texts without a vector yet, found by their words alone until then: 1."
    assert late["problems"][1].startswith("The background queue embedding has not moved for ")


class Refusing:
    """Has no vector for some texts."""

    name = "refusing"
    dimensions = 4

    def embed(self, texts: Sequence[str]) -> Any:
        if any("cursed" in text for text in texts):
            raise ModelError("The embedder wants nothing of the sort.")
        return [[1.0, 0.0, 0.0, 0.0] for _ in texts]


def test_refused_texts_are_named_to_their_own_tenant_only() -> None:
    with Wellkept(":memory:", settings=Settings(), embedder=Refusing()) as wellkept:
        keys = [wellkept.tenant(name).keys.create("read").key for name in ("evil", "good")]
        wellkept.agent("eve", tenant="evil").remember("a cursed text")
        eventually(lambda: len(wellkept.embedding.refused()) == 1)
        with serving(wellkept, no_auth=False) as address:
            told = []
            for key in keys:
                with client_of(address, key) as client:
                    told.append(client.get("/health").json())

    assert told[0]["status"] == "degraded"
    assert told[0]["problems"][-1] == (
        "Texts the embedder refuses, tried again later: 1; eve m-1: The embedder wants nothing of the sort."
    )
    assert (told[1]["status"], told[1]["problems"]) == ("ok", [])


def test_standing_queue_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "QUEUE_STANDS", 0.0)
    file = tmp_path / "memory.db"
    with Wellkept(f"sqlite:///{file}", settings=Settings()) as wellkept, serving(wellkept) as address:
        wellkept.agent("ann").remember("Prefers tabs")
        connection = apsw.Connection(str(file))
        connection.execute("CREATE TRIGGER broken BEFORE INSERT ON context_calls BEGIN SELECT json('{'); END")
        wellkept.agent("ann").context("tabs?", session="s-1")
        eventually(lambda: wellkept.background()[0].failures)
        with client_of(address) as client:
            told = client.get("/health").json()
            metrics = client.get("/metrics").text
        connection.execute("DROP TRIGGER broken")
        connection.close()

    assert told["status"] == "degraded"
    assert [problem.partition(" has not moved")[0] for problem in told["problems"]] == [
        "The background queue context-calls"
    ]
    assert 'wellkept_background_set_aside{worker="context-calls"} 1.0' in metrics
    assert 'wellkept_background_running{worker="embedding"} 1.0' in metrics
    assert 'wellkept_background_failures_total{worker="context-calls"}' in metrics
    assert "ann" not in metrics


def test_a_model_that_is_left_alone_is_named() -> None:
    def fail(messages: object) -> str:
        raise ModelError("The model is not there.")

    settings = Settings(summary_enabled=True, summary_threshold=2, summary_keep_last=1)
    with (
        Wellkept(":memory:", settings=settings, model=fail) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        for number in range(3):
            wellkept.agent("ann").log_turn("s", user=f"question {number}", assistant="answer")
        assert client.get("/health").json()["status"] == "ok"
        assert client.post("/api/agents/ann/context", json={"session_id": "s", "message": "hello"}).status_code == 200
        answer = client.get("/health")

    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["problems"] == [
        "A model failed and is paused; wellkept continues without it: The model is not there."
    ]
