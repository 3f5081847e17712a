"""Connections that say nothing, say it too slowly or say too much before they ask anything, are hung up on.

A client that sends its headers a byte at a time would otherwise hold a connection for ever, and one whose headers never
end would fill the memory. The server below knows only how long a connection may rest between two requests. A body that
dawdles, or is too large, is refused by `guard`.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from recollect.server.addresses import Connections
from recollect.server.errors import error_response
from recollect.server.headers import protected

MAX_HEADER_SECONDS = 10.0
EXCESS_SECONDS = 1.0
"""The same for connections that are only waited for to tell them that there are too many."""

MAX_HEADER_BYTES = 64 * 1024
MAX_STALL_SECONDS = 60.0
TOO_MANY = "This address has too many connections open; use one of them again, or wait."
NOT_HTTP = "This is not a request by the rules of HTTP/1.1, or its headers are too long."

_OFFER = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)


class ImpatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose headers have to arrive in time, and to end."""

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
        if self._is_excess:  # answered only now: closing with a request unread would take the answer back
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

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._connections.remove(self._host)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read its answer; one that goes on like that is hung up on."""
        super().pause_writing()
        self._stall = self.loop.call_later(MAX_STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def send_400_response(self, msg: str) -> None:
        """What is no request reaches none of our routes, but is refused in the same shape."""
        cycle: RequestResponseCycle | None = self.cycle
        is_in_body = cycle is not None and cycle.more_body and not cycle.response_started and not self.pipeline
        if self._is_between_requests() or is_in_body:  # else an answer is under way, and may not be interrupted
            self._refuse(400, NOT_HTTP)
        if cycle is not None and is_in_body:
            cycle.disconnected = True  # its route shall wait for no more, and add nothing
            cycle.message_event.set()
        self.transport.close()

    def _refuse(self, status: int, sentence: str, headers: Mapping[str, str] = {}) -> None:
        refusal = error_response(status, sentence, headers={"Connection": "close", **headers})
        told = b"".join(b"%s: %s\r\n" % header for header in protected(refusal.raw_headers))
        self.transport.write(STATUS_LINE[status] + told + b"\r\n" + bytes(refusal.body))
        self.transport.close()

    def _is_between_requests(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def _expect_headers(self) -> None:
        if self._deadline is None:  # each further byte does not buy more time
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
    """Some clients offer another protocol with a request and its body, and the parser would leave the body unread. To
    pass over the offer is how a server declines it.

    >>> _without_offer(b"GET / HTTP/1.1\\r\\nUpgrade: h2c\\r\\nHost: local\\r\\n\\r\\n")
    b'GET / HTTP/1.1\\r\\nHost: local\\r\\n\\r\\n'
    """
    if not _OFFER.search(data):
        return data
    head, end, body = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"", head) + end + body
