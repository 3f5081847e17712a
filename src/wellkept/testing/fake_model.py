"""A scripted HTTP server on a real socket, in the place of an OpenAI-compatible endpoint.

It answers by its `script`, one entry a request, and then as `usual`; what it was sent is in `requests`. An answer is a
function of the handler and the body, so it can do what real endpoints do: hang, drip, hang up, refuse, redirect, or
answer with half a document, the wrong one, or too much.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = Callable[["ModelHandler", Any], None]


class ModelHandler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server_of: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server_of.lock:
            self.server_of.requests.append((self.path, dict(self.headers.items()), body))
            self.server_of.connections.add(self.client_address)
            answer = self.server_of.script.popleft() if self.server_of.script else self.server_of.usual
        answer(self, body)

    def reply(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


def completion(text: object) -> dict[str, Any]:
    """Return what a chat endpoint answers with."""
    return {"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}


def says(text: object) -> Answer:
    """Answer every question with the same text."""
    return content(completion(text))


def content(answer: object) -> Answer:
    """Answer with this document, or with these bytes."""
    encoded = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return lambda handler, body: handler.reply(200, encoded)


def calls(tool: str, **arguments: Any) -> Answer:
    """Ask for a tool, streamed if that was wanted."""
    call = {"id": "call-1", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}

    def answer(handler: ModelHandler, body: Any) -> None:
        if body.get("stream"):
            stream(handler, {"role": "assistant", "tool_calls": [{"index": 0, **call}]}, finish="tool_calls")
        else:
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            handler.reply(200, json.dumps({"choices": [{"message": message}]}).encode())

    return answer


def talks(*pieces: str) -> Answer:
    """Answer piece by piece if a stream was wanted, else with all of them at once."""

    def answer(handler: ModelHandler, body: Any) -> None:
        if body.get("stream"):
            stream(handler, *({"content": piece} for piece in pieces))
        else:
            says("".join(pieces))(handler, body)

    return answer


def breaks_off(*pieces: str) -> Answer:
    """Stream these pieces, and hangs up without having finished."""

    def answer(handler: ModelHandler, body: Any) -> None:
        stream(handler, *({"content": piece} for piece in pieces), is_whole=False)
        resets(handler, body)

    return answer


def ends(*pieces: str, last_line: str = "") -> Answer:
    """Stream these pieces and ends in good order, but without saying that this was all, unless by a last line."""

    def answer(handler: ModelHandler, body: Any) -> None:
        stream(handler, *({"content": piece} for piece in pieces), is_whole=False)
        sent = f"data: {last_line}\n\n".encode() if last_line else b""
        handler.wfile.write((f"{len(sent):x}\r\n".encode() + sent + b"\r\n" if sent else b"") + b"0\r\n\r\n")

    return answer


def trickles(*pieces: str) -> Answer:
    """Stream these pieces, and then says nothing any more."""

    def answer(handler: ModelHandler, body: Any) -> None:
        stream(handler, *({"content": piece} for piece in pieces), is_whole=False)
        hangs(handler, body)

    return answer


def stream(handler: ModelHandler, *deltas: Any, finish: str = "stop", is_whole: bool = True) -> None:
    """Send what a chat endpoint streams."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}] if is_whole else []
    lines = [json.dumps({"object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    for line in [*lines, "[DONE]"] if is_whole else lines:
        sent = f"data: {line}\n\n".encode()
        handler.wfile.write(f"{len(sent):x}\r\n".encode() + sent + b"\r\n")
        handler.wfile.flush()
    if is_whole:
        handler.wfile.write(b"0\r\n\r\n")


def status(code: int, **headers: str) -> Answer:
    """Refuse."""
    return lambda handler, body: handler.reply(code, b'{"error": {"message": "no"}}', **headers)


def hangs(handler: ModelHandler, body: Any) -> None:
    """Take the question and says nothing."""
    handler.server_of.released.wait()
    handler.close_connection = True


def drips(handler: ModelHandler, body: Any) -> None:
    """Send an answer that never ends."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    while not handler.server_of.released.wait(0.05):
        handler.wfile.write(b" ")


def drips_headers(handler: ModelHandler, body: Any) -> None:
    """Send headers that never end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.server_of.released.wait(0.05):
        handler.wfile.write(b"x")


def resets(handler: ModelHandler, body: Any) -> None:
    """Hang up in the middle, without a goodbye."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def stops_half_way(handler: ModelHandler, body: Any) -> None:
    """Promise a document and sends half of it."""
    whole = json.dumps(completion("a whole answer")).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(whole)))
    handler.end_headers()
    handler.wfile.write(whole[: len(whole) // 2])
    handler.close_connection = True


class ModelServer:
    """An endpoint on loopback, for as long as the `with` block lasts. Before it, nobody listens at its address."""

    def __init__(self, usual: Answer | None = None) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.connections: set[Any] = set()
        self.script: deque[Answer] = deque()
        self.usual: Answer = says("A summary.") if usual is None else usual
        self.lock = threading.Lock()
        self.released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), type("Bound", (ModelHandler,), {"server_of": self}), False)
        self._server.server_bind()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def bodies(self) -> list[Any]:
        return [body for _, _, body in self.requests]

    def __enter__(self) -> Self:
        self._server.server_activate()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that gave up on a hanging answer
