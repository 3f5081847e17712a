"""Connections: headers must arrive in time and must end, or the connection is closed.

A client that sends its headers a byte at a time would otherwise hold a connection forever, and endless headers would
fill the memory. Uvicorn only limits how long a connection may idle between requests. Slow and large bodies are refused
by `limits`.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from wellkept.server.http.addresses import Connections
from wellkept.server.http.errors import error_response
from wellkept.server.http.requests import add_protection

MAX_HEADER_SECONDS = 10.0
"""Seconds that a client has to send the headers of a request."""

EXCESS_SECONDS = 1.0
"""Seconds for the headers on connections over the limit, which are open only to be refused."""

MAX_HEADER_BYTES = 64 * 1024
MAX_STALL_SECONDS = 60.0
"""Seconds without progress after which a client that does not read its answer is disconnected."""

DRAIN_SECONDS = 0.5
"""Seconds that a client which just connected gets to send its request when the server stops."""

TOO_MANY = "This address has too many open connections; reuse one of them, or wait."
NOT_HTTP = "This is not a valid HTTP/1.1 request, or its headers are too long."

_OFFER = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)


class ImpatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 with limits on the time and size of headers and on stalled reads."""

    _deadline: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _unread = 0  # bytes that have neither ended the headers nor been part of a body
    _is_excess = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_excess = not self._connections.add(self._host)
        self._expect_headers()

    @property
    def _connections(self) -> Connections:
        connections: Connections = self.app_state["connections"]
        return connections

    @property
    def _host(self) -> str:
        return self.client[0] if self.client else ""

    def data_received(self, data: bytes) -> None:
        # Refuse only after reading: closing the socket with unread data would discard the answer.
        if self._is_excess:
            self._refuse(429, TOO_MANY, headers={"Retry-After": str(math.ceil(MAX_HEADER_SECONDS))})
            return
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
            self._refuse(400, NOT_HTTP)
        if cycle is not None and is_in_body:
            # The route must stop waiting for the body and must not answer.
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    def _refuse(self, status: int, sentence: str, headers: Mapping[str, str] = {}) -> None:
        refusal = error_response(status, sentence, headers={"Connection": "close", **headers})
        headers_sent = b"".join(b"%s: %s\r\n" % header for header in add_protection(refusal.raw_headers))
        self.transport.write(STATUS_LINE[status] + headers_sent + b"\r\n" + bytes(refusal.body))
        self.transport.close()

    def _is_between_requests(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def _expect_headers(self) -> None:
        # Further bytes do not extend the deadline.
        if self._deadline is None:
            seconds = EXCESS_SECONDS if self._is_excess else MAX_HEADER_SECONDS
            self._deadline = self.loop.call_later(seconds, self._hang_up)

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
