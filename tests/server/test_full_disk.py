"""A disk without any room: writes are refused, everything else goes on, and `/health` says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, resource, sys
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings
from tests.server.live import client_of, serving

with (
    Wellkept(settings=Settings(url=sys.argv[1], context_calls_kept=0, summary_enabled=True)) as wellkept,
    serving(wellkept) as address,
    client_of(address) as client,
):
    ann, said = "/api/agents/ann", {}
    key = client.post(f"{ann}/memories", json={"text": "Ann prefers tabs"}).json()["id"]
    for number in range(60):
        wellkept.agent("ann").log_turn("s", user=f"Question {number} {'word ' * 40}", assistant=f"Answer {number}")
    before = client.get("/health").json()["status"]

    resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))  # no file takes another byte
    said["write"] = client.post(f"{ann}/memories", json={"text": "no room"})
    said["health"] = client.get("/health")
    said["read"] = client.get(f"{ann}/memories/{key}")
    said["search"] = client.get(f"{ann}/memories", params={"q": "tabs"})
    said["recall"] = client.post(f"{ann}/recall", json={"query": "tabs or spaces?"})
    wishes = {"session_id": "s", "message": "and now?", "budget": 1300}
    said["context"] = client.post(f"{ann}/context", json=wishes)
    said["context with a key"] = client.post(f"{ann}/context", json=wishes, headers={"Idempotency-Key": "k"})
    said["export"] = client.get("/api/export", params={"compression": "gzip"})
    said["delete"] = client.delete(f"{ann}/memories/{key}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    said["again"] = client.post(f"{ann}/memories", json={"text": "room again"})
    said["healthy"] = client.get("/health")
    print(json.dumps({
        name: [each.status_code, len(each.content) if name == "export" else each.text] for name, each in said.items()
    } | {"before": before}))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answers of a server whose files cannot grow."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'memory.db'}"
    command = [sys.executable, "-c", PROGRAM, url]
    child = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert child.returncode == 0, child.stderr
    answers: dict[str, Any] = json.loads(child.stdout)
    return answers


def test_a_write_is_refused_and_health_names_it_until_one_succeeds(said: dict[str, Any]) -> None:
    assert said["before"] == "ok"
    status, text = said["write"]
    assert status == 503
    assert "full" in json.loads(text)["error"]
    status, text = said["health"]
    assert (status, json.loads(text)["status"]) == (200, "degraded")
    assert json.loads(text)["problems"][0].startswith("Writes fail: ")
    assert said["again"][0] == 201
    assert json.loads(said["healthy"][1])["status"] == "ok"


@pytest.mark.parametrize("name", ["read", "search", "recall", "export", "context with a key"])
def test_whatever_only_reads_is_answered(said: dict[str, Any], name: str) -> None:
    assert said[name][0] == 200


def test_a_prompt_is_shortened_without_references(said: dict[str, Any]) -> None:
    status, text = said["context"]
    assert status == 200, text
    made = json.loads(text)
    assert made["messages"][-1]["content"] == "and now?"
    assert made["tokens"] <= 1300
    assert "MemoryRef" not in text
    assert any("the store cannot be written" in each["message"] for each in made["truncations"])
