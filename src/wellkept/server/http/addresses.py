"""Limits for each address: connections it has open, and wrong keys it sends.

Behind a reverse proxy all clients have the proxy's address. The setting `trusted_proxies` names it: then its
connections are not limited, and clients are distinguished by the header X-Forwarded-For.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import math
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from anyio.to_thread import run_sync
from fastapi import HTTPException
from starlette.types import Scope

from wellkept.api.wellkept import Wellkept
from wellkept.errors import Invalid, Unauthorized
from wellkept.model import ApiKey
from wellkept.server.http.metrics import Metrics
from wellkept.server.http.shared_limits import SharedBuckets

MAX_SUSPECTS = 8
"""Concurrent look-ups of unknown keys for addresses that have sent too many wrong ones."""

MAX_GOOD = 10_000
"""Maximum number of valid keys that are remembered, as hashes."""

MAX_FILES = 65_536
RESERVED_FILES = 128
"""Open files left for the database and for what requests read and write."""

TOO_MANY_KEYS = "Too many wrong keys came from this address; check the key and try again later."

REPORT_SECONDS = 60.0

log = logging.getLogger("wellkept.server")


@lru_cache(maxsize=4096)
def network_of(host: str) -> str:
    """Return the unit that limits apply to: an IPv4 address, or the /64 of an IPv6 address (one customer).

    >>> network_of("192.0.2.7"), network_of("2001:db8::1:2:3:4"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    address = _parse_ip(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return host if address is None else str(address)


def _parse_ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    # A Unix socket has no address.
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def parse_proxies(names: Iterable[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Parse the setting `trusted_proxies`. Raises: Invalid when a name is neither an address nor a network."""
    try:
        return [ipaddress.ip_network(name) for name in names]
    except ValueError as error:
        raise Invalid(f"trusted_proxies takes addresses and networks such as 10.0.0.0/8: {error}.") from error


def raise_open_file_limit() -> None:
    """Raise the limit on open files as far as the system allows; each connection is one."""
    try:
        resource = import_module("resource")
    # Windows has no such limit.
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def _open_file_limit() -> int:
    try:
        resource = import_module("resource")
    except ImportError:
        return MAX_FILES
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_FILES if soft == resource.RLIM_INFINITY else soft


class Connections:
    """Counts the open connections of each address; only the event loop's thread may call it."""

    def __init__(self, *, per_address: int, proxies: Iterable[str] = (), metrics: Metrics) -> None:
        """Raises: Invalid."""
        self._per_address = per_address
        self._proxies = parse_proxies(proxies)
        self._refused = metrics.refused.labels("connections")
        self._open: Counter[str] = Counter()
        self._most = _open_file_limit() - RESERVED_FILES
        self._report = RefusalLog("Refused %d connections, the last from %s: too many are open.")

    def add(self, host: str) -> bool:
        """Count a new connection; return False if its address, or the whole server, has too many."""
        address = network_of(host)
        self._open[address] += 1
        is_over = 0 < self._per_address < self._open[address] and not self._is_proxy(host)
        if not is_over and self._open.total() <= self._most:
            return True
        self._refused.inc()
        self._report.add(address)
        return False

    def remove(self, host: str) -> None:
        """Count a closed connection."""
        address = network_of(host)
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]

    def _is_proxy(self, host: str) -> bool:
        address = _parse_ip(host)
        return address is not None and any(address in network for network in self._proxies)


class KeyCheck:
    """Verifies keys, and slows down addresses that keep sending wrong ones.

    Only failures count, so a valid key still works from the same address. Keys that were valid before are always
    verified; for unknown ones an address over its limit gets a few concurrent look-ups, which costs the store little
    and still admits a new client.
    """

    def __init__(self, wellkept: Wellkept, metrics: Metrics, failures: Path | None = None) -> None:
        """Count failures together with the other processes that name the same file, or use the same database."""
        self._wellkept = wellkept
        per_minute = wellkept.settings.max_failed_keys
        self._failures = SharedBuckets(
            "address", rate=per_minute / 60, burst=per_minute, path=failures, lease=wellkept.lease_tokens
        )
        self._failed = metrics.failed_keys
        self._suspects = 0
        self._good: dict[bytes, None] = {}  # hashes, the oldest first
        self._report = RefusalLog("Answered %d wrong keys with 429, the last from %s.")

    async def verify(self, sent: str, scope: Scope) -> ApiKey:
        """Return the record of a key.

        Raises: Unauthorized; HTTPException (429) when its address has sent too many wrong ones; StoreError.
        """
        recent = self._wellkept.recent_key(sent)
        if recent is not None:
            return recent
        digest = hashlib.sha256(sent.encode()).digest()
        is_suspect = digest not in self._good and await self._failures.is_empty(_address(scope))
        if is_suspect and self._suspects >= MAX_SUSPECTS:
            await self.count_failure(scope)
        self._suspects += is_suspect
        try:
            key = await run_sync(self._wellkept.verify_key, sent)
        except Unauthorized:
            self._good.pop(digest, None)
            await self.count_failure(scope)
            raise
        finally:
            self._suspects -= is_suspect
        if len(self._good) >= MAX_GOOD:
            del self._good[next(iter(self._good))]
        self._good[digest] = None
        return key

    async def count_failure(self, scope: Scope) -> None:
        """Count a wrong key of this request's address. Raises: HTTPException (429) when there were too many."""
        address = _address(scope)
        self._failed.inc()
        pause = await self._failures.take(address)
        if pause:
            scope["state"]["refused"] = "failures"
            self._report.add(address)
            raise HTTPException(429, TOO_MANY_KEYS, headers={"Retry-After": str(math.ceil(pause))})


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return network_of(client[0]) if client else ""


class RefusalLog:
    """Logs refusals, at most one line in `REPORT_SECONDS`, with their number and the address of the last one."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._count = 0
        self._quiet_until = 0.0

    def add(self, address: str) -> None:
        """Count a refusal, and log it if nothing was logged lately."""
        self._count += 1
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until:
            log.warning(self._line, self._count, address)
            self._count, self._quiet_until = 0, now + REPORT_SECONDS
