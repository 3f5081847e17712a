"""Connections that say nothing, say it too slowly or say too much before they ask anything, are hung up on.

A client that sends its headers a byte at a time would otherwise hold a connection for ever, and one whose headers never
end would fill the memory. The server below knows only how long a connection may rest between two requests. A body that
dawdles, or is too large, is refused by `guard`.
"""

from __future__ import annotations

import asyncio
import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from recollect.server.errors import error_response

MAX_HEADER_SECONDS = 10.0
MAX_HEADER_BYTES = 64 * 1024
NOT_HTTP = "This is not a request by the rules of HTTP/1.1, or its headers are too long."

_OFFER = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)


class ImpatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose headers have to arrive in time, and to end."""

    _deadline: asyncio.TimerHandle | None = None
    _unread = 0  # bytes that have neither ended the headers nor been part of a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

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

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What is no request reaches none of our routes, but is refused in the same shape."""
        if self._is_between_requests():  # else an answer is under way, and nothing may be said in the middle of it
            refusal = error_response(400, NOT_HTTP, headers={"Connection": "close"})
            headers = b"".join(b"%s: %s\r\n" % header for header in refusal.raw_headers)
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + headers + b"\r\n" + bytes(refusal.body))
        self.transport.close()

    def _is_between_requests(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def _expect_headers(self) -> None:
        if self._deadline is None:  # each further byte does not buy more time
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
    """Some clients offer another protocol with a request and its body, and the parser would leave the body unread. To
    pass over the offer is how a server declines it.

    >>> _without_offer(b"GET / HTTP/1.1\\r\\nUpgrade: h2c\\r\\nHost: local\\r\\n\\r\\n")
    b'GET / HTTP/1.1\\r\\nHost: local\\r\\n\\r\\n'
    """
    if not _OFFER.search(data):
        return data
    head, end, body = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"", head) + end + body
