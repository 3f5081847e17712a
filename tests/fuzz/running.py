"""Sends fuzzed requests to a server over real sockets and judges its answers.

A failure is a status of 500 and above (but for 503 with Retry-After, which the server says on purpose when it is busy,
and 502 of a model that is not there), or a request that is neither answered nor hung up on within `PATIENCE` seconds.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.fuzz.requests import Made

PATIENCE = 30.0
INCOMPLETE_SECONDS = 1.0
"""After so long without an answer a request whose framing was changed is taken for incomplete, and ended."""

AT_ONCE = 12
SHOWN_BYTES = 1_500
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


@dataclass
class Outcome:
    """What came of the requests."""

    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def sent(self) -> int:
        return self.statuses.total()


async def send_all(
    port: int, numbers: Iterable[int], making: Callable[[int], Made], *, max_failures: int = 20
) -> Outcome:
    """Send the requests of these numbers, some at once; stop early when too many fail."""
    outcome, waiting = Outcome(), iter(numbers)

    async def work() -> None:
        for number in waiting:
            if len(outcome.failures) >= max_failures:
                return
            made = making(number)
            status, problem = await _ask(port, made)
            outcome.statuses[status] += 1
            if problem:
                shown = made.content[:SHOWN_BYTES]
                outcome.failures.append(f"request {number}: {problem}\n    {shown!r}")

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return outcome


async def _ask(port: int, made: Made) -> tuple[str, str]:
    """Return the status of the first answer ("closed": none came), and what is wrong with it."""
    heads: list[bytes] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64 * 1024 * 1024)
    try:
        with suppress(ConnectionError):
            writer.write(made.content)
            await asyncio.wait_for(writer.drain(), PATIENCE)
        try:
            answer = await asyncio.wait_for(
                _answer(reader, made.method, heads), PATIENCE if made.is_framed else INCOMPLETE_SECONDS
            )
        except TimeoutError:
            if made.is_framed:
                return "hang", f"no answer within {PATIENCE:.0f} seconds"
            with suppress(OSError):
                writer.write_eof()
            try:
                answer = b"".join(heads) + await asyncio.wait_for(reader.read(), PATIENCE)
            except TimeoutError:
                return "hang", f"not hung up on within {PATIENCE:.0f} seconds after its end"
    except ConnectionError:
        return "closed", ""
    finally:
        writer.close()
        with suppress(OSError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), PATIENCE)
    return _judged(answer)


async def _answer(reader: asyncio.StreamReader, method: str, heads: list[bytes]) -> bytes:
    """Read one answer; nothing if the server hangs up without one. Its head is kept for whoever gives up waiting."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as ended:
            return ended.partial
        if not head.startswith(b"HTTP/1.1 100 "):
            break
    heads.append(head)
    length = LENGTH.search(head)
    is_empty = method == "HEAD" or head[9:12] in (b"204", b"304")
    try:
        if length is not None and not is_empty:
            return head + await reader.readexactly(int(length[1]))
        if b"transfer-encoding: chunked" in head.lower() and not is_empty:
            return head + await reader.readuntil(b"0\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        return head + ended.partial
    return head


def _judged(answer: bytes) -> tuple[str, str]:
    if not answer:
        return "closed", ""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head[9:12].decode("latin-1")
    if not re.fullmatch(r"HTTP/1\.1 [1-5]\d\d", head[:12].decode("latin-1")):
        return "?", f"no HTTP: {answer[:200]!r}"
    lower = head.lower()
    is_meant = (status == "503" and b"retry-after:" in lower) or (status == "502" and b'"code":"model"' in body)
    if status >= "500" and not is_meant:
        return status, f"answered {answer[:600]!r}"
    if b"cache-control:" not in lower or b"x-content-type-options: nosniff" not in lower:
        return status, f"headers missing: {head[:600]!r}"
    return status, ""
