"""Limits for each key and each address: token buckets in memory, which the processes of a machine share."""

from __future__ import annotations

import ipaddress
import mmap
import os
import struct
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from time import monotonic

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

    def take(self, key: str) -> float:
        """Take a token; return the seconds to wait if there is none."""
        if not self._rate:
            return 0.0
        with self._locked():
            offset, hash, tokens, now = self._find(key)
            is_taken = tokens >= 1
            SLOT.pack_into(self._memory, offset, hash, tokens - is_taken, now)
        return 0.0 if is_taken else (1 - tokens) / self._rate

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
            # Refilled at `rate` a second since it was counted, up to `burst`.
            tokens = min(self._burst, tokens + (now - then) * self._rate)
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


@lru_cache(maxsize=4096)
def network_of(host: str) -> str:
    """Return the unit that limits apply to: an IPv4 address, or the /64 of an IPv6 address (one customer).

    >>> network_of("192.0.2.7"), network_of("2001:db8::1:2:3:4"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    # A Unix socket has no address.
    except ValueError:
        return host
    address = getattr(address, "ipv4_mapped", None) or address
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)
