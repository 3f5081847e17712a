"""Connections that say nothing, or say it too slowly, are hung up on.

A client that sends its headers a byte at a time would otherwise hold a connection for ever. The server below knows only
how long a connection may rest between two requests. A body that dawdles is refused by `guard`.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MAX_HEADER_SECONDS = 10.0


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 whose headers have to arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_between_requests():
            self._expect_headers()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

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
