"""Large bodies are read beside the event loop, with the same checks as small ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from wellkept.language import values as json_values
from wellkept.server.threads import SMALL_BODY

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
RECALL = "/api/agents/large/recall"
ROUTES = {
    "direct": RECALL,
    "run": "/agent/run",
    "document": "/api/kb/documents",
}
DEEP = "[" * 40 + "]" * 40
PADDING = {"small": "", "large": "x" * SMALL_BODY}
BODIES: dict[str, tuple[Callable[[str], bytes], int, str]] = {
    "deep": (lambda pad: f'{{"a": "{pad}", "b": {DEEP}}}'.encode(), 400, "nested too deeply"),
    "twice": (lambda pad: f'{{"a": "{pad}", "b": 1, "b": 2}}'.encode(), 400, "'b' twice"),
    "half a pair": (lambda pad: f'{{"a": "{pad}\\ud83d"}}'.encode(), 400, "surrogate"),
    "half a pair, capital": (lambda pad: f'{{"a": "{pad}\\uD83D"}}'.encode(), 400, "surrogate"),
    "UTF-16": (lambda pad: f'{{"a": "{pad}"}}'.encode("utf-16"), 400, "in UTF-8"),
    "no JSON": (lambda pad: f'{{"a": "{pad}"'.encode(), 400, "valid JSON"),
    "too many values": (lambda pad: f'["{pad}"{",1" * 50_001}]'.encode(), 413, "50,000 brackets and commas"),
    "unknown names": (lambda pad: json.dumps({f"k{n}{pad[:9000]}": 1 for n in range(9)}).encode(), 422, "no field 'k0"),
}


@pytest.mark.parametrize("size", PADDING)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("body", BODIES)
def test_bodies_of_every_size_are_checked(client: httpx2.Client, body: str, route: str, size: str) -> None:
    make, status, says = BODIES[body]
    refusal = client.post(ROUTES[route], content=make(PADDING[size]), headers=JSON)
    assert (refusal.status_code, says in refusal.json()["error"]) == (status, True), refusal.text[:300]
    assert len(refusal.content) < 500


def test_other_json_types_are_checked_too(client: httpx2.Client) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    refusal = client.post(RECALL, content=b'{"query": "a", "query": "b"}', headers=headers)
    assert (refusal.status_code, "twice" in refusal.json()["error"]) == (400, True)


def test_large_bodies_are_parsed_once_and_not_on_the_event_loop(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    loads = json.loads

    def noting(text: Any, **options: Any) -> Any:
        if len(text) > SMALL_BODY:
            threads.append(threading.current_thread())
        return loads(text, **options)

    monkeypatch.setattr(json_values.json, "loads", noting)
    for body in ({"query": "word " * SMALL_BODY}, {f"k{n}": 1 for n in range(10_000)}):
        client.post(RECALL, json=body)
    assert [each.name for each in threads] == ["wellkept-request"] * 2


def test_many_small_values_and_long_texts_are_accepted(client: httpx2.Client) -> None:
    text = 'a, [b], {c}, \\ "d" ' * 20_000
    kept = client.post("/api/agents/large/details", json={"content": text, "metadata": {"n": [1] * 500}})
    assert kept.status_code == 201, kept.text
    assert client.post("/api/kb/documents", json={"text": text, "title": "Long"}).status_code == 201


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b'{"query": "' + b"word " * SMALL_BODY + b'"}', 400, "not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "a": "' + b"x" * SMALL_BODY, 400, "not a JSON-RPC message"),
        (b"[" * 40_000 + b" " * SMALL_BODY, 400, "not a JSON-RPC message"),
        (b"[" + b"[]," * 60_000 + b"1]", 413, "too many values"),
    ],
)
def test_mcp_refuses_large_bodies_that_are_no_message(
    client: httpx2.Client, body: bytes, status: int, says: str
) -> None:
    refusal = client.post("/mcp?agent=large", content=body, headers=JSON)
    assert (refusal.status_code, says in refusal.text, len(refusal.content) < 500) == (status, True, True)


def test_mcp_answers_large_messages(client: httpx2.Client) -> None:
    call = {"name": "recall", "arguments": {"query": "word " * 20_000, "nothing": 1}}
    answer = client.post(
        "/mcp?agent=large", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, headers=JSON
    )
    assert (answer.status_code, "no argument 'nothing'" in answer.text) == (200, True), answer.text[:300]
