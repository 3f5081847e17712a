"""Spans by OpenTelemetry's conventions for GenAI memory, without a word of anybody's text."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SOURCES = Path(__file__).parents[2] / "src"
SECRET = "AKIAIOSFODNN7EXAMPLQ"
PROGRAM = f"""
import sys
from wellkept import Wellkept, Settings
from wellkept.errors import Invalid
from wellkept.providers.otlp import export_spans

with export_spans(sys.argv[1]), Wellkept(":memory:", settings=Settings(embedder="off")) as store:
    ann = store.agent("ann", "acme")
    ann.remember("a private matter")
    ann.remember_many(["one more", "and another"])
    ann.recall("private matter", limit=1)
    ann.search("private")
    ann.update("m-1", text="another matter")
    ann.forget("m-1")
    try:
        ann.remember("{SECRET}")
    except Invalid:
        print("refused", "opentelemetry" in sys.modules)
"""


class Collector(ThreadingHTTPServer):
    """Takes down what is sent to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, bytes]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as opened:
        thread = threading.Thread(target=opened.serve_forever)
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


def run(endpoint: str) -> str:
    """In a process of its own, because a process has one place for spans and keeps it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("WELLKEPT_", "OTEL_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, endpoint],
        env={
            **environment,
            "PYTHONPATH": str(SOURCES),
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "100",
        },
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_operation_is_a_span_that_tells_no_text(collector: Collector) -> None:
    assert run(collector.address) == "refused True"

    assert {path for path, _ in collector.received} == {"/v1/traces"}
    raw = b"".join(body for _, body in collector.received)
    for word in (b"matter", b"private", b"one more", SECRET.encode(), b"appears to contain"):
        assert word not in raw
    spans = [
        span
        for _, body in collector.received
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    told = [{each.key: each.value.string_value or each.value.int_value for each in span.attributes} for span in spans]
    assert [span.name for span in spans] == [each["gen_ai.operation.name"] for each in told]
    assert [span.name for span in spans] == [
        *["create_memory"] * 2,
        *["search_memory"] * 2,
        "update_memory",
        "delete_memory",
        "create_memory",
    ]
    assert {each["gen_ai.memory.store.id"] for each in told} == {"acme/ann"}
    assert [each.get("gen_ai.memory.record.count") for each in told] == [1, 2, 1, 1, 1, 1, None]
    assert [each.get("gen_ai.memory.record.id") for each in told] == ["m-1", None, None, None, "m-1", "m-1", None]
    assert told[-1]["error.type"] == "secret_rejected"
    assert [span.status.code for span in spans] == [0] * 6 + [2]
    assert not [event for span in spans for event in span.events]


def test_without_an_endpoint_nothing_is_loaded_and_nothing_is_sent(collector: Collector) -> None:
    assert run("") == "refused False"
    assert collector.received == []
