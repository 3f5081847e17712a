"""What Prometheus is told: enough to watch the server, and nothing about anybody."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2

from recollect.api.recollect import Recollect
from recollect.settings import Settings
from tests.server.live import client_of, serving
from tests.server.test_health import BrokenEmbedder


def numbers(client: httpx2.Client) -> dict[str, float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    lines = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_requests_are_counted_by_route_and_never_by_what_is_in_them(client: httpx2.Client, ann: str) -> None:
    for text in ("a private matter", "another"):
        client.post(f"{ann}/memories", json={"text": text})
    client.get(f"{ann}/memories", params={"q": "a private matter"})
    client.get("/api/nothing/here")
    client.request("PROPFIND", "/api/agents")
    told = numbers(client)

    counted = 'recollect_requests_total{method="POST",route="/api/agents/{agent}/memories",status="201"}'
    assert told[counted] >= 2
    assert told['recollect_requests_total{method="GET",route="(unknown)",status="404"}'] >= 1
    assert told['recollect_requests_total{method="other",route="(unknown)",status="405"}'] >= 1
    assert told['recollect_request_seconds_count{method="GET",route="/api/agents/{agent}/memories"}'] >= 1
    assert told["recollect_requests_under_way"] == 1, "this one"
    assert told["recollect_store_bytes"] > 10_000
    assert told["recollect_waiting_vectors"] == told["recollect_embedder_failing"] == 0
    everything = " ".join(told)
    assert "private" not in everything
    assert ann.rpartition("/")[2] not in everything
    assert not re.search(r"default|here", everything)


def test_metrics_take_an_operators_key(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", tenant="ours", rate_limit=0.0001, rate_burst=2)
    with Recollect(settings=settings, embedder=BrokenEmbedder()) as recollect:
        ours = recollect.tenant("ours").add_key("operator").key
        admin, fast = recollect.tenant("ours").add_key("admin").key, recollect.tenant("fast").add_key("read").key
        recollect.agent("ann").remember("tabs")
        with serving(recollect, no_auth=False) as address:
            with client_of(address, fast) as client:
                statuses = [client.get("/api/agents").status_code for _ in range(4)]
            with client_of(address, admin) as client:
                refused = client.get("/metrics")
            with client_of(address, ours) as client:
                told = numbers(client)

    assert statuses == [200, 200, 429, 429]
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert told['recollect_refused_total{why="rate"}'] == 2
    assert told["recollect_waiting_vectors"] == told["recollect_embedder_failing"] == 1
    assert "ours" not in " ".join(told)


def test_a_store_that_does_not_answer_is_left_out() -> None:
    with Recollect(":memory:", settings=Settings()) as recollect, serving(recollect) as address:
        recollect.close()
        with client_of(address) as client:
            told = numbers(client)

    assert "recollect_store_bytes" not in told
    assert told["recollect_requests_under_way"] == 1
