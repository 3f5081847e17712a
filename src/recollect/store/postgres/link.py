"""The connections to a PostgreSQL server, and the news of whether it can be reached.

While the server is away every call fails at once, instead of waiting for a connection that cannot come. A thread finds
out both that it went and that it is back:

- Refused, killed, dropped or locked out: the pool loses its last connection and cannot open another.
- Frozen, or cut off: a call has waited `SLOW` seconds, nothing was heard from the server meanwhile, and a connection
  that is opened to ask does not come about within its `connect_timeout`. Then whoever waits for an answer is woken by
  shutting its socket. A statement that merely takes long is left alone: the server answers the question.
- Silent although a read has a limit (see `recollect.deadline.limit_reads`): the server itself ends a statement in
  time. When it does not, the socket of that call is shut, whatever is the matter with the server.
- Back: it is asked every `GLANCE` seconds, and gets a new pool, since every connection of the old one is suspect.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from math import inf
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from recollect.deadline import read_seconds_left
from recollect.errors import StoreAway, StoreError
from recollect.store.engine import CLOSED

Connection = psycopg.Connection[tuple[Any, ...]]

GLANCE = 0.5
"""Seconds between two looks at the calls under way and, while the server is away, between two attempts to reach it."""

SLOW = 1.0
"""Seconds a call may wait before the server is asked whether it is still there."""

GRACE = 0.25
"""Seconds that a server has, beyond the limit of a read, to say that it gave up."""

CLOSE_PATIENCE = 0.1
"""Seconds each thread of a pool that is given up is waited for."""

OPTIONS = {
    "connect_timeout": 3,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""What a URL may set otherwise. The last four end a connection whose other side vanished without a word."""

log = logging.getLogger("recollect")


class PostgresLink:
    """A pool of connections that is there while the server is."""

    def __init__(
        self, url: str, *, busy_timeout: float, pool_size: int, configure: Callable[[Connection], None]
    ) -> None:
        """Open no connection yet; see `open`."""
        given = conninfo_to_dict(url)
        self.address = _address(given)
        self._url = url
        self._options: dict[str, Any] = {name: value for name, value in OPTIONS.items() if name not in given}
        self._options |= {"autocommit": True, "application_name": "recollect"}
        self.pool_size = pool_size
        self._busy_timeout = busy_timeout
        self._configure = configure
        self._lock = threading.Lock()  # guards the pool's exchange and the sockets of the calls under way
        self._pool: ConnectionPool[Connection] | None = None
        self._away = ""  # why there is no pool, as a sentence
        self._is_closed = False
        self._calls: set[_Call] = set()
        self._heard = 0.0  # when the server last answered
        self._wanted = threading.Event()
        self.on_return: Callable[[], None] = lambda: None

    def connect(self) -> Connection:
        """Open a connection of one's own.

        Raises: StoreAway.
        """
        try:
            return psycopg.connect(self._url, **self._options)
        except psycopg.OperationalError as error:
            raise StoreAway(self._sentence(error)) from error

    def open(self) -> None:
        """Raises: PoolTimeout."""
        self._pool = self._opened_pool()
        watch = threading.Thread(
            target=_watch, args=(weakref.ref(self), self._wanted), name="recollect-postgres", daemon=True
        )
        watch.start()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            pool, self._pool = self._pool, None
        self._wanted.set()
        if pool is not None:
            pool.close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection; one that is not committed is rolled back.

        Raises: StoreAway; StoreError when closed; PoolTimeout when all are in use.
        """
        call = _Call()
        self._calls.add(call)
        try:
            with ExitStack() as returning:
                connection = call.connection = self._lent(returning)
                call.fd = socket.dup(connection.fileno())
                try:
                    yield connection
                finally:
                    with self._lock:
                        socket.close(call.fd)
                        call.fd = -1
                    if not connection.broken:
                        self._heard = time.monotonic()
        finally:
            self._calls.discard(call)

    @contextmanager
    def awaiting(self, connection: Connection, *, within: float) -> Iterator[None]:
        """Hang up unless the statement of this block is answered in time."""
        call = next(each for each in list(self._calls) if each.connection is connection)
        call.until = time.monotonic() + within + GRACE
        try:
            yield
        finally:
            call.until = inf

    def _lent(self, returning: ExitStack) -> Connection:
        while True:
            pool = self._pool
            if pool is None:
                raise StoreError(CLOSED) if self._is_closed else StoreAway(self._away)
            with suppress(PoolClosed):  # while we waited; perhaps another one has taken its place
                return returning.enter_context(pool.connection(timeout=self._patience()))

    def _patience(self) -> float:
        """Return the seconds to wait for a connection of the pool."""
        left = read_seconds_left()
        return self._busy_timeout if left is None else min(self._busy_timeout, max(0.0, left))

    def _opened_pool(self) -> ConnectionPool[Connection]:
        """Raises: PoolTimeout."""
        pool: ConnectionPool[Connection] = ConnectionPool(
            self._url,
            min_size=1,
            max_size=self.pool_size,
            timeout=self._busy_timeout,
            reconnect_timeout=0,  # it would double its pauses; we ask the server ourselves
            reconnect_failed=lambda _: self._wanted.set(),
            configure=self._configure,
            open=False,
            kwargs=self._options,
        )
        pool.open(wait=True, timeout=self._busy_timeout)
        return pool

    def look(self) -> bool:
        """Find out whether the server went or came back. Return False once there is nothing left to watch."""
        if self._is_closed:
            return False
        self._hang_up_overdue()
        pool = self._pool
        if pool is None:
            self._return()
        elif pool.get_stats()["pool_size"] == 0:
            self._examine(pool, has_connections=False)
        elif self._is_anybody_waiting():
            self._examine(pool, has_connections=True)
        return True

    def _hang_up_overdue(self) -> None:
        now = time.monotonic()
        with self._lock:
            for call in list(self._calls):
                if call.fd >= 0 and now > call.until:
                    _shut(call.fd)

    def _is_anybody_waiting(self) -> bool:
        since = min((call.since for call in list(self._calls)), default=None)
        return since is not None and time.monotonic() - max(since, self._heard) > SLOW

    def _examine(self, pool: ConnectionPool[Connection], *, has_connections: bool) -> None:
        began = time.monotonic()
        try:
            self.connect().close()
        except StoreAway as error:
            is_refusal = _refusal(error.__cause__) is not None  # it is there, but lets nobody else in
            if has_connections and (is_refusal or self._heard > began):
                self._heard = time.monotonic()
            else:
                self._leave(pool, str(error))
        else:
            self._heard = time.monotonic()
            if not has_connections:  # those who wait for a connection of this pool would wait in vain
                self._return()

    def _leave(self, pool: ConnectionPool[Connection], reason: str) -> None:
        log.error("%s", reason)
        with self._lock:
            self._away, self._pool = reason, None
            for call in list(self._calls):
                if call.fd >= 0:
                    _shut(call.fd)
        pool.close(CLOSE_PATIENCE)  # which ends the waiting of whoever wanted a connection

    def _return(self) -> None:
        try:
            self.connect().close()
            pool = self._opened_pool()
        except StoreAway as error:
            self._away = str(error)  # it may be away for another reason by now
            return
        except PoolTimeout:
            return
        self.on_return()
        with self._lock:
            unused = pool if self._is_closed else self._pool
            self._pool = None if self._is_closed else pool
        if unused is not None:
            unused.close(CLOSE_PATIENCE)
        log.warning("The database at %s answers.", self.address)

    def _sentence(self, error: psycopg.OperationalError) -> str:
        refusal = _refusal(error)
        if refusal is not None:
            why = f"it lets nobody in: {refusal}"
        elif isinstance(error, errors.ConnectionTimeout):
            why = "it does not answer"
        else:
            why = str(error).rpartition(" failed: ")[2].partition("\n")[0].rstrip(".")
            why = why[:1].lower() + why[1:]
        return f"The database at {self.address} cannot be reached ({why}). Try again in a moment."


class _Call:
    """A call under way."""

    __slots__ = ("connection", "fd", "since", "until")

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.connection: Connection | None = None
        self.until = inf  # when it is overdue
        self.fd = -1  # a duplicate of its socket's number, which nobody else is given while we hold it


def _watch(link_ref: weakref.ref[PostgresLink], wanted: threading.Event) -> None:
    """Look after a link for as long as there is one; not a method, or the thread itself would keep it."""
    while True:
        wanted.wait(GLANCE)
        wanted.clear()
        link = link_ref()
        try:
            if link is None or not link.look():
                return
        except Exception:
            log.exception("Whether the database can be reached could not be found out; it is tried again.")
        del link


def _shut(fd: int) -> None:
    """Let whoever reads from a socket find its end."""
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd)
    with suppress(OSError):
        held.shutdown(socket.SHUT_RDWR)
    held.detach()


def _refusal(error: BaseException | None) -> str | None:
    """What the server itself said, without the names in it; None when it was not the server who spoke.

    It is known by the two spaces behind the severity, which comes first and in the server's language.
    """
    said = re.search(r"(?:^|failed: )[^\s:]+:  (.+)", str(error))
    return None if said is None else re.sub(r' "[^"]*"', "", said[1]).rstrip(".")


def _address(given: dict[str, Any]) -> str:
    """
    >>> _address({"host": "db.example", "port": 6432}), _address({})
    ('db.example:6432', 'the local socket')
    """
    host = given.get("host") or given.get("hostaddr")
    if not host:
        return "the local socket"
    port = given.get("port") or 5432
    return ", ".join(f"{each}:{port}" for each in str(host).split(","))
