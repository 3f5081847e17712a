"""Health really asks the store, and names what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx2

from recollect import __version__
from recollect.api import Recollect
from recollect.errors import ModelError
from recollect.settings import Settings
from tests.server.live import client_of, serving


class BrokenEmbedder:
    """Always fails."""

    name = "broken"
    dimensions = 4

    def embed(self, texts: Sequence[str]) -> Any:
        raise ModelError("The embedder is not there.")


def test_a_healthy_server(client: httpx2.Client) -> None:
    assert client.get("/health").json() == {
        "status": "ok",
        "version": __version__,
        "engine": "sqlite",
        "embedder": "static",
        "problems": [],
    }


def test_a_store_that_does_not_answer() -> None:
    with Recollect(":memory:", settings=Settings()) as recollect, serving(recollect) as address:
        recollect.close()
        with client_of(address) as client:
            answer = client.get("/health")

    assert answer.status_code == 503
    body = answer.json()
    assert (body["ok"], body["code"], body["status"], body["engine"]) == (False, "store", "degraded", "sqlite")
    assert body["problems"] == [body["error"]] == ["This store is closed; open a new one."]


def test_memories_without_vectors_are_named() -> None:
    with (
        Recollect(":memory:", settings=Settings(), embedder=BrokenEmbedder()) as recollect,
        serving(recollect) as address,
        client_of(address) as client,
    ):
        assert client.get("/health").json()["status"] == "ok"
        assert client.post("/api/agents/ann/memories", json={"text": "tabs"}).status_code == 201
        answer = client.get("/health")
        hits = client.post("/api/agents/ann/recall", json={"query": "tabs"}).json()["hits"]

    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["problems"] == [
        "The embedder failed: The embedder is not there.",
        "Texts that wait for their vector, and are found by their words alone until then: 1.",
    ]
    assert [hit["text"] for hit in hits] == ["tabs"]
