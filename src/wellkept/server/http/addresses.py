"""Limits for each address: connections it has open, and wrong keys it sends.

Behind a reverse proxy all clients have the proxy's address. The setting `trusted_proxies` names it: then its
connections are not limited, and clients are distinguished by the header X-Forwarded-For.
"""

from __future__ import annotations

import ipaddress
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
from wellkept.server.http.buckets import SharedBuckets
from wellkept.server.http.metrics import Metrics

MAX_SUSPECTS = 8
"""Concurrent look-ups of unknown keys for addresses that have sent too many wrong ones."""

MAX_FILES = 65_536

TOO_MANY_KEYS = "Too many wrong keys came from this address; check the key and try again later."


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


class Connections:
    """Counts the open connections of each address; only the event loop's thread may call it."""

    def __init__(self, *, per_address: int, proxies: Iterable[str] = (), metrics: Metrics) -> None:
        """Raises: Invalid."""
        self._per_address = per_address
        self._proxies = parse_proxies(proxies)
        self._refused = metrics.refused.labels("connections")
        self._open: Counter[str] = Counter()

    def add(self, host: str) -> bool:
        """Count a new connection; return False if its address has too many."""
        address = network_of(host)
        self._open[address] += 1
        is_over = 0 < self._per_address < self._open[address] and not self._is_proxy(host)
        if is_over:
            self._refused.inc()
        return not is_over

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

    Only failures count, so a valid key still works from the same address: one that was verified a moment ago at once,
    others by one of a few concurrent look-ups, which cost the store little.
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

    async def verify(self, sent: str, scope: Scope) -> ApiKey:
        """Return the record of a key.

        Raises: Unauthorized; HTTPException (429) when its address has sent too many wrong ones; StoreError.
        """
        recent = self._wellkept.keys.recent(sent)
        if recent is not None:
            return recent
        is_suspect = await self._failures.is_empty(_address(scope))
        if is_suspect and self._suspects >= MAX_SUSPECTS:
            await self.count_failure(scope)
        self._suspects += is_suspect
        try:
            return await run_sync(self._wellkept.keys.verify, sent)
        except Unauthorized:
            await self.count_failure(scope)
            raise
        finally:
            self._suspects -= is_suspect

    async def count_failure(self, scope: Scope) -> None:
        """Count a wrong key of this request's address. Raises: HTTPException (429) when there were too many."""
        self._failed.inc()
        pause = await self._failures.take(_address(scope))
        if pause:
            scope["state"]["refused"] = "failures"
            raise HTTPException(429, TOO_MANY_KEYS, headers={"Retry-After": str(math.ceil(pause))})


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return network_of(client[0]) if client else ""
