"""A small HTTP client for load: connections that ask one question after the other, and what came of it.

Written by hand because a full client costs more processor time than the server it is to load.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

Question = tuple[str, str, Any]
"""Method, path and body (None: none)."""


@dataclass
class Outcome:
    """What a load was answered with."""

    statuses: Counter[int] = field(default_factory=Counter)
    without_advice: int = 0  # refusals for too much that did not say when to come back
    broken: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return sum(self.statuses.values()) / self.seconds

    def percentile(self, share: float) -> float:
        return sorted(self.waits)[min(len(self.waits) - 1, int(share * len(self.waits)))]


@dataclass(frozen=True)
class Load:
    """Where to, with which key."""

    address: str
    key: str = ""

    def run(self, ask: Callable[[int, int], Question], *, connections: int, seconds: float) -> Outcome:
        """Ask from so many connections for so long; `ask` gets the connection's number and how often it has asked."""
        return asyncio.run(self._run(ask, connections, seconds))

    async def _run(self, ask: Callable[[int, int], Question], connections: int, seconds: float) -> Outcome:
        outcome = Outcome()
        begun = time.perf_counter()
        until = begun + seconds
        await asyncio.gather(*(self._connection(number, ask, until, outcome) for number in range(connections)))
        outcome.seconds = time.perf_counter() - begun
        return outcome

    async def _connection(
        self, number: int, ask: Callable[[int, int], Question], until: float, outcome: Outcome
    ) -> None:
        where = urlsplit(self.address)
        streams = None
        count = 0
        while (now := time.perf_counter()) < until:
            try:
                if streams is None:
                    streams = await asyncio.open_connection(where.hostname, where.port)
                status, headers, is_open = await self._asked(*streams, ask(number, count))
            except (OSError, EOFError, ValueError) as error:
                outcome.broken.append(f"{type(error).__name__}: {error}")
                streams = None
                continue
            count += 1
            outcome.waits.append(time.perf_counter() - now)
            outcome.statuses[status] += 1
            outcome.without_advice += status in (429, 503) and b"\r\nretry-after:" not in headers
            if not is_open:
                streams[1].close()
                streams = None
        if streams is not None:
            streams[1].close()

    async def _asked(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: Question
    ) -> tuple[int, bytes, bool]:
        """The status, the headers in small letters, and whether the connection can be used again."""
        method, path, body = question
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(content)}"]
        lines += ["Content-Type: application/json"] if content else []
        lines += [f"Authorization: Bearer {self.key}"] if self.key else []
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        if b"\r\ncontent-length: " in head:
            await reader.readexactly(int(head.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]))
        elif status != 204:
            raise ValueError("an answer without a length")
        return status, head, b"\r\nconnection: close" not in head
