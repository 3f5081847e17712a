"""A server that misbehaves as it is told, one connection at a time."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

DROP = "drop"
"""Read the request, and hang up."""


def answer(status: int, body: Any = None, **headers: str) -> bytes:
    content = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


def refusal(status: int, code: str, sentence: str = "No.", **headers: str) -> bytes:
    return answer(status, {"ok": False, "error": sentence, "code": code}, **headers)


@dataclass
class FlakyServer:
    address: str
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def keys(self) -> list[str | None]:
        """The Idempotency-Key of each request."""
        return [headers.get("idempotency-key") for _, headers in self.requests]


@contextmanager
def flaky(*script: bytes | str) -> Iterator[FlakyServer]:
    """Answer each connection by the next line of the script."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = FlakyServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    thread = threading.Thread(target=_serve, args=(listener, server, script))
    thread.start()
    try:
        yield server
    finally:
        # Accepted, this ends a thread that waits for a request which never came.
        while thread.is_alive():
            try:
                socket.create_connection(listener.getsockname(), timeout=1).close()
            except OSError:
                break
            thread.join(0.2)
        thread.join()
        listener.close()


def _serve(listener: socket.socket, server: FlakyServer, script: Sequence[bytes | str]) -> None:
    for line in script:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            first = stream.readline().decode().strip()
            headers = dict(_headers(stream))
            stream.read(int(headers.get("content-length", "0")))
            if not first:
                return
            server.requests.append((first, headers))
            if isinstance(line, bytes):
                connection.sendall(line)


def _headers(stream: Any) -> Iterator[tuple[str, str]]:
    while line := stream.readline().decode().strip():
        name, _, value = line.partition(":")
        yield name.lower(), value.strip()
