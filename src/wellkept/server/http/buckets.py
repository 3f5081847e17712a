"""Token buckets: in memory that the processes of a machine share, and of all servers on one database.

The database holds the bucket of each key. A machine takes tokens from it in batches, so that most requests wait for no
one: below the local share of a limit it takes none at all, above it the next batch is fetched while the last one is
used. So one machine keeps the limit exactly but for its share, and several exceed it by their shares at most.
"""

from __future__ import annotations

import asyncio
import math
import mmap
import os
import struct
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b, sha256
from pathlib import Path
from time import monotonic

from anyio.to_thread import run_sync

from wellkept.errors import WellkeptError

SLOTS = 16_384
PROBES = 8
"""Slots looked at for a key; when all hold other keys that are not full, the one used longest ago is replaced."""

SLOT = struct.Struct("<Qdd")
"""Hash of the key, tokens, and the time they were counted. A hash of 0 marks a slot that was never used."""


class Buckets:
    """A token bucket for each key: `rate` a second on average, `burst` at once. A rate of 0 sets no limit.

    The memory is bounded whatever keys are sent. With a `path` the buckets are shared by all processes that name the
    same file; a lock on the file, which ends with its process, keeps them apart. Within a process only the event loop's
    thread may use them. The clock counts from the start of the machine, so all processes agree on it.
    """

    def __init__(self, *, rate: float, burst: float, path: Path | None = None) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._file = -1 if path is None else _open_sized(path)
        # A fresh mapping is all zero.
        self._memory = mmap.mmap(self._file, SLOTS * SLOT.size)
        if path is not None:
            weakref.finalize(self, os.close, self._file)

    def take(self, key: str) -> tuple[float, float]:
        """Take a token; return the seconds to wait if there is none, and the tokens that are left."""
        if not self._rate:
            return 0.0, self._burst
        with self._locked():
            offset, hash, tokens, now = self._find(key)
            is_taken = tokens >= 1
            SLOT.pack_into(self._memory, offset, hash, tokens - is_taken, now)
        return 0.0 if is_taken else (1 - tokens) / self._rate, tokens - is_taken

    def add(self, key: str, count: int) -> None:
        """Add tokens, also above `burst`."""
        with self._locked():
            offset, hash, tokens, now = self._find(key)
            SLOT.pack_into(self._memory, offset, hash, tokens + count, now)

    def is_empty(self, key: str) -> bool:
        """Return True if the next `take` would have to wait."""
        if not self._rate:
            return False
        with self._locked():
            return self._find(key)[2] < 1

    def _find(self, key: str) -> tuple[int, int, float, float]:
        """Return the offset of a key's slot, its hash, its tokens, and the time."""
        now, hash = monotonic(), int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) or 1
        free, oldest = -1, (float("inf"), 0)
        for probe in range(PROBES):
            offset = (hash + probe) % SLOTS * SLOT.size
            other, tokens, then = SLOT.unpack_from(self._memory, offset)
            # Refilled at `rate` a second since it was counted, up to `burst`. Those that were added stay.
            tokens = max(tokens, min(self._burst, tokens + (now - then) * self._rate))
            if other == hash:
                return offset, hash, tokens, now
            if free < 0 and (not other or tokens >= self._burst):
                free = offset
            oldest = min(oldest, (then, offset))
        return free if free >= 0 else oldest[1], hash, self._burst, now

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._file < 0:
            yield
            return
        import portalocker

        portalocker.lock(self._file, portalocker.LockFlags.EXCLUSIVE)
        try:
            yield
        finally:
            portalocker.unlock(self._file)


def _open_sized(path: Path) -> int:
    """Open a file of the size of all slots, for its owner only, and create it if needed."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    # Setting the same size again changes nothing.
    os.ftruncate(file, SLOTS * SLOT.size)
    return file


SHARE = 0.02
"""Share of the rate and burst of a limit that each machine grants by itself."""

BATCH_SECONDS = 0.2
"""Seconds of the rate that a batch lasts for."""

EMPTY_SECONDS = 0.1
"""Seconds after which a bucket that was found empty is asked again."""

MAX_EMPTY = 10_000
"""Number of empty buckets that are remembered."""

Lease = Callable[..., tuple[int, float]]
"""Function that takes tokens from a bucket; it returns their number, and the seconds until the bucket is full."""


class SharedBuckets:
    """A token bucket for each key: `rate` a second on average, `burst` at once. A rate of 0 sets no limit.

    Only the event loop's thread may use it. Without `lease` it counts for this machine alone.
    """

    def __init__(self, kind: str, *, rate: float, burst: int, path: Path | None, lease: Lease | None) -> None:
        self._kind = kind
        self._rate = rate
        self._burst = max(burst, 1)
        self._lease = lease if rate else None
        share = 1.0 if self._lease is None else SHARE
        self._local = Buckets(rate=rate * share, burst=self._burst * share, path=path)
        self._batch = min(self._burst, max(1, math.ceil(self._burst * SHARE), math.ceil(rate * BATCH_SECONDS)))
        self._fetches: dict[str, asyncio.Task[None]] = {}
        # Buckets that were found empty: when to ask again, and when there will be a token.
        self._empty: dict[str, tuple[float, float]] = {}

    async def take(self, key: str) -> float:
        """Take a token; return the seconds to wait if there is none."""
        pause, left = self._local.take(key)
        if self._lease is None:
            return pause
        if not pause:
            if left < self._batch / 2 and left < self._burst * SHARE / 2:
                self._fetch(key)
            return 0.0
        if (fetch := self._fetch(key)) is not None:
            await asyncio.shield(fetch)
            pause, _ = self._local.take(key)
        return pause and max(self._empty.get(key, (0.0, 0.0))[1] - monotonic(), EMPTY_SECONDS)

    async def is_empty(self, key: str) -> bool:
        """Return True if the next `take` would have to wait."""
        if self._local.is_empty(key) and (fetch := self._fetch(key)) is not None:
            await asyncio.shield(fetch)
        return self._local.is_empty(key)

    def _fetch(self, key: str) -> asyncio.Task[None] | None:
        """Start to fetch a batch, unless that is under way; return None if the bucket was found empty just now."""
        if self._lease is None or monotonic() < self._empty.get(key, (0.0, 0.0))[0]:
            return None
        if key not in self._fetches:
            self._fetches[key] = task = asyncio.create_task(self._fetch_batch(key))
            task.add_done_callback(lambda _: self._fetches.pop(key, None))
        return self._fetches[key]

    async def _fetch_batch(self, key: str) -> None:
        assert self._lease is not None
        name = sha256(f"{self._kind} {key}".encode()).hexdigest()
        try:
            granted, full_in = await run_sync(self._ask, name)
        except WellkeptError:
            # The request itself will report what is wrong with the database.
            granted, full_in = self._batch, 0.0
        if granted:
            self._local.add(key, granted)
        if granted < self._batch:
            if len(self._empty) >= MAX_EMPTY:
                self._empty.clear()
            now = monotonic()
            # The bucket has a token when it lacks burst - 1.
            self._empty[key] = (now + EMPTY_SECONDS, now + max(0.0, full_in - (self._burst - 1) / self._rate))
        else:
            self._empty.pop(key, None)

    def _ask(self, name: str) -> tuple[int, float]:
        assert self._lease is not None
        return self._lease(name, self._batch, rate=self._rate, burst=self._burst)
