"""Connections: an address has a number of them, and headers must arrive in time and must end, or they are closed.

A client that sends its headers a byte at a time would otherwise hold a connection forever, and endless headers would
fill the memory. Uvicorn only limits how long a connection may idle between requests. Slow and large bodies are refused
by `limits`.

Behind a reverse proxy all clients have the proxy's address. The setting `trusted_proxies` names it: then connections
are not limited, and clients are distinguished by the header X-Forwarded-For.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections import Counter
from collections.abc import Iterable

import prometheus_client
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from wellkept.errors import Invalid
from wellkept.server.http.buckets import network_of
from wellkept.server.http.errors import error_response
from wellkept.server.http.requests import add_protection

MAX_HEADER_SECONDS = 10.0
"""Seconds that a client has to send the headers of a request."""

MAX_HEADER_BYTES = 64 * 1024
MAX_STALL_SECONDS = 60.0
"""Seconds without progress after which a client that does not read its answer is disconnected."""

DRAIN_SECONDS = 0.5
"""Seconds that a client which just connected gets to send its request when the server stops."""

NOT_HTTP = "This is not a valid HTTP/1.1 request, or its headers are too long."

_OFFER = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)


def check_proxies(names: Iterable[str]) -> None:
    """Check the setting `trusted_proxies`. Raises: Invalid when a name is neither an address nor a network."""
    try:
        for name in names:
            ipaddress.ip_network(name)
    except ValueError as error:
        raise Invalid(f"trusted_proxies takes addresses and networks such as 10.0.0.0/8: {error}.") from error


class Connections:
    """Counts the open connections of each address; only the event loop's thread may call it."""

    def __init__(self, *, most: int, refused: prometheus_client.Counter) -> None:
        """Allow `most` to each address; 0 sets no limit."""
        self._most = most
        self._refused = refused
        self._open: Counter[str] = Counter()

    def add(self, host: str) -> bool:
        """Count a new connection; return False if its address has too many."""
        address = network_of(host)
        self._open[address] += 1
        is_over = 0 < self._most < self._open[address]
        if is_over:
            self._refused.inc()
        return not is_over

    def remove(self, host: str) -> None:
        """Count a closed connection."""
        address = network_of(host)
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]


class ImpatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 with limits on the time and size of headers and on stalled reads."""

    _deadline: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _unread = 0  # bytes that have neither ended the headers nor been part of a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._connections.add(self._host):
            self._expect_headers()
        else:
            transport.abort()

    @property
    def _connections(self) -> Connections:
        connections: Connections = self.app_state["connections"]
        return connections

    @property
    def _host(self) -> str:
        return self.client[0] if self.client else ""

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        super().data_received(_without_offer(data) if self._is_between_requests() else data)
        if self._is_between_requests():
            self._expect_headers()
        else:
            self._stop_waiting()
        if self._unread > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response(NOT_HTTP)

    def on_headers_complete(self) -> None:
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def shutdown(self) -> None:
        """Finish when the server stops; the request of a client that just connected is still answered."""
        if self.cycle is None and not self.transport.is_closing():
            self.loop.call_later(DRAIN_SECONDS, super().shutdown)
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._connections.remove(self._host)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the timer that closes the connection if the client does not read its answer."""
        super().pause_writing()
        self._stall = self.loop.call_later(MAX_STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def send_400_response(self, msg: str) -> None:
        """Refuse an invalid request, in the same shape as every other error."""
        cycle: RequestResponseCycle | None = self.cycle
        is_in_body = cycle is not None and cycle.more_body and not cycle.response_started and not self.pipeline
        # Otherwise an answer is being sent and must not be interrupted.
        if self._is_between_requests() or is_in_body:
            refusal = error_response(400, NOT_HTTP, headers={"Connection": "close"})
            headers = b"".join(b"%s: %s\r\n" % each for each in add_protection(refusal.raw_headers))
            self.transport.write(STATUS_LINE[400] + headers + b"\r\n" + bytes(refusal.body))
        if cycle is not None and is_in_body:
            # The route must stop waiting for the body and must not answer.
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    def _is_between_requests(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def _expect_headers(self) -> None:
        # Further bytes do not extend the deadline.
        if self._deadline is None:
            self._deadline = self.loop.call_later(MAX_HEADER_SECONDS, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _hang_up(self) -> None:
        self._deadline = None
        if self._is_between_requests() and not self.transport.is_closing():
            self.transport.close()


def _without_offer(data: bytes) -> bytes:
    """Remove an Upgrade header: the parser would leave the body unread. Ignoring the offer declines it.

    >>> _without_offer(b"GET / HTTP/1.1\\r\\nUpgrade: h2c\\r\\nHost: local\\r\\n\\r\\n")
    b'GET / HTTP/1.1\\r\\nHost: local\\r\\n\\r\\n'
    """
    if not _OFFER.search(data):
        return data
    head, end, body = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"", head) + end + body
