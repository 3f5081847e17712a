"""What Prometheus is told: enough to watch the server, and nothing about anybody."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2

from tests.server.live import client_of, serving
from tests.server.test_health import BrokenEmbedder
from tests.waiting import eventually
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings

SECRET = "the key is AKIAQ3EGRD5FJZ7XWB2M"
LONG = "and so the story went on and on, with many a word. " * 12
STEPS = ("fold", "drop", "reference")
MCP_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


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
    eventually(lambda: numbers(client)["wellkept_waiting_vectors"] == 0)
    told = numbers(client)

    counted = 'wellkept_requests_total{method="POST",route="/api/agents/{agent}/memories",status="201"}'
    assert told[counted] >= 2
    assert told['wellkept_requests_total{method="GET",route="(unknown)",status="404"}'] >= 1
    assert told['wellkept_requests_total{method="other",route="(unknown)",status="405"}'] >= 1
    assert told['wellkept_request_seconds_count{method="GET",route="/api/agents/{agent}/memories"}'] >= 1
    assert told["wellkept_requests_under_way"] == 1, "this one"
    assert told["wellkept_store_bytes"] > 10_000
    assert told["wellkept_waiting_vectors"] == told["wellkept_embedder_failing"] == 0
    everything = " ".join(told)
    assert "private" not in everything
    assert ann.rpartition("/")[2] not in everything
    assert not re.search(r"default|here", everything)


def test_metrics_take_an_operators_key(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", tenant="ours", rate_limit=0.0001, rate_burst=2)
    with Wellkept(settings=settings, embedder=BrokenEmbedder()) as wellkept:
        ours = wellkept.tenant("ours").keys.create("operator").key
        admin, fast = wellkept.tenant("ours").keys.create("admin").key, wellkept.tenant("fast").keys.create("read").key
        wellkept.agent("ann").remember("tabs")
        eventually(lambda: wellkept.embedding.problem)
        with serving(wellkept, no_auth=False) as address:
            with client_of(address, fast) as client:
                statuses = [client.get("/api/agents").status_code for _ in range(4)]
            with client_of(address, admin) as client:
                refused = client.get("/metrics")
            with client_of(address, ours) as client:
                told = numbers(client)

    assert statuses == [200, 200, 429, 429]
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert told['wellkept_refused_total{why="rate"}'] == 2
    assert told["wellkept_waiting_vectors"] == told["wellkept_embedder_failing"] == 1
    assert "ours" not in " ".join(told)


def test_a_store_that_does_not_answer_is_left_out() -> None:
    with Wellkept(":memory:", settings=Settings()) as wellkept, serving(wellkept) as address:
        wellkept.close()
        with client_of(address) as client:
            told = numbers(client)

    assert "wellkept_store_bytes" not in told
    assert told["wellkept_requests_under_way"] == 1


def test_recalls_prompts_secrets_and_indexes_are_counted(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", tenant="ours")
    with Wellkept(settings=settings) as wellkept, serving(wellkept) as address, client_of(address) as client:
        ann = "/api/agents/ann"
        client.post(f"{ann}/memories", json={"text": "Prefers tabs over spaces", "kind": "note"})
        assert client.post(f"{ann}/memories", json={"text": SECRET}).status_code == 400
        assert client.post(f"{ann}/recall", json={"query": "tabs or spaces?"}).json()["hits"]
        assert not client.post(f"{ann}/recall", json={"query": "Thank you!"}).json()["hits"]
        for turn in range(8):
            wellkept.agent("ann").log_turn("s-1", user=f"say {turn} {LONG}", assistant=LONG)
        prompt = {"session_id": "s-1", "message": "tabs or spaces?", "budget": 1_000}
        assert client.post(f"{ann}/context", json=prompt).json()["truncations"]
        wellkept.maintain()
        told = numbers(client)

    assert told['wellkept_recalls_total{outcome="found",verb="recall"}'] == 1
    assert told['wellkept_recalls_total{outcome="empty",verb="recall"}'] == 1
    assert told['wellkept_recalls_total{outcome="found",verb="context"}'] == 1
    assert told['wellkept_recall_source_seconds_count{source="memory"}'] >= 3
    assert told['wellkept_recall_unanswered_total{source="memory"}'] == 0
    assert told['wellkept_secrets_total{action="reject"}'] == 1
    assert told["wellkept_prompt_tokens_count"] == told["wellkept_prompts_truncated_total"] == 1
    assert 0 < told["wellkept_prompt_tokens_sum"] <= 1_000
    assert told["wellkept_prompt_tokens_removed_total"] > 0
    assert sum(told[f'wellkept_prompt_truncations_total{{step="{step}"}}'] for step in STEPS) >= 1
    assert told['wellkept_index_lookups_total{outcome="loaded"}'] >= 1
    assert told['wellkept_index_lookups_total{outcome="hit"}'] >= 1
    assert told['wellkept_memories{kind="note",state="live"}'] == 1
    assert told['wellkept_memories{kind="core",state="held"}'] == 0
    assert told["wellkept_maintenance_failed"] == 0
    assert told["wellkept_maintenance_timestamp_seconds"] > 1_700_000_000
    assert not re.search("ours|ann|tabs|[Tt]hank|s-1", " ".join(told))


def test_recalls_of_a_tool_over_mcp_are_counted() -> None:
    with Wellkept(":memory:", settings=Settings()) as wellkept, serving(wellkept) as address:
        wellkept.agent("ann").remember("Prefers tabs over spaces")
        with client_of(address) as client:
            call = {"name": "recall", "arguments": {"query": "tabs or spaces?"}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            answer = client.post("/mcp?agent=ann", json=message, headers=MCP_HEADERS)
            told = numbers(client)

    assert "Prefers tabs" in answer.text
    assert told['wellkept_recalls_total{outcome="found",verb="recall"}'] == 1


def test_counts_of_many_threads_add_up() -> None:
    with Wellkept(":memory:", settings=Settings(rate_limit=0)) as wellkept, serving(wellkept) as address:
        wellkept.agent("ann").remember("Prefers tabs over spaces")

        def recall(_: int) -> None:
            with client_of(address) as client:
                for _ in range(10):
                    assert client.post("/api/agents/ann/recall", json={"query": "tabs?"}).status_code == 200

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(recall, range(8)))
        with client_of(address) as client:
            told = numbers(client)

    assert told['wellkept_recalls_total{outcome="found",verb="recall"}'] == 80
    assert told['wellkept_recall_source_seconds_count{source="memory"}'] == 80


def test_work_outside_of_requests_counts_for_nobody() -> None:
    with Wellkept(":memory:", settings=Settings()) as wellkept, serving(wellkept) as address:
        wellkept.agent("ann").remember("Prefers tabs over spaces")
        assert wellkept.agent("ann").recall("tabs?")
        with client_of(address) as client:
            told = numbers(client)

    assert told['wellkept_recalls_total{outcome="found",verb="recall"}'] == 0
