"""Connections to a PostgreSQL server, and detection of outages.

While the server is unreachable, every call fails immediately instead of waiting for a connection. A background thread
detects both the outage and its end:

- Connections refused or dropped: the pool loses its last connection and cannot open another.
- Server frozen or network cut: a call has waited `SLOW_CALL` seconds, the server has sent nothing meanwhile, and a
  test connection is not established within its `connect_timeout`. Then the waiting calls are woken by shutting down
  their sockets. A statement that is merely slow is left alone, because the test connection succeeds.
- Read limit ignored (see `wellkept.deadline.limit_reads`): the server normally ends a statement in time. If it does
  not, the socket of that call is shut down, whatever the state of the server.
- Recovery: a connection is tried every `CHECK_INTERVAL` seconds. When one succeeds, a new pool replaces the old one,
  whose connections are all suspect.
"""

from __future__ import annotations

import logging
import re
import select
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

from wellkept.deadline import READ_TIMED_OUT, is_read_overdue, read_seconds_left
from wellkept.errors import (
    Conflict,
    DiskFull,
    Invalid,
    ReadOnly,
    SchemaMismatch,
    StoreAway,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreTimeout,
    WellkeptError,
)
from wellkept.store.engine import CLOSED, SCHEMA_INCOMPLETE, UNSTORABLE

log = logging.getLogger("wellkept")

RETRY_AFTER_BUSY = 1.0
RETRY_AFTER_AWAY = 1.0
AWAY = "The PostgreSQL server cannot be reached or went away; check its address and log, or try again in a moment."
OTHER_AUDIT_KEY = "The audit log of this tenant is keyed. Set audit_key to its original key to write."
NODE_AWAY = "The node of the database cluster that holds this tenant cannot be reached; see the database's log."


def is_from_node(error: psycopg.Error) -> bool:
    """Return True if the coordinator of a cluster cannot connect to the node that holds the rows."""
    return (error.sqlstate or "").startswith("08")


def is_shutdown(error: psycopg.Error) -> bool:
    """Return True if the server ends the connection, which is not marked as broken before the socket is closed."""
    return isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow)


def build_outage(message: str) -> StoreError:
    """Return an error after which a retry reaches the server as soon as it is back."""
    error = StoreError(message)
    error.retry_after = RETRY_AFTER_AWAY
    return error


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert the driver's errors to ours, with the original as the cause."""
    try:
        yield
    except WellkeptError:
        raise
    except (PoolTimeout, errors.QueryCanceled) as error:
        if read_seconds_left() is not None:
            raise StoreTimeout(READ_TIMED_OUT) from error
        raise StoreBusy("The database is busy. Try again.", retry_after=RETRY_AFTER_BUSY) from error
    except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
        raise StoreBusy("The database is busy. Try again.", retry_after=RETRY_AFTER_BUSY) from error
    except (errors.SerializationFailure, errors.TooManyConnections) as error:
        raise StoreBusy("The database is busy. Try again.", retry_after=RETRY_AFTER_BUSY) from error
    except errors.DiskFull as error:
        raise DiskFull("The database's disk is full; nothing was written. Free some space and try again.") from error
    except errors.ReadOnlySqlTransaction as error:
        raise ReadOnly("The PostgreSQL server is read-only: it is a standby, or configured that way.") from error
    except (OverflowError, UnicodeEncodeError, errors.NumericValueOutOfRange, errors.ProgramLimitExceeded) as error:
        raise Invalid(UNSTORABLE) from error
    except errors.NotNullViolation as error:
        # The name of the table is that of a shard on a cluster.
        if (error.diag.table_name or "").startswith("audit_waiting"):
            raise ReadOnly(OTHER_AUDIT_KEY) from error
        raise Conflict(f"The database refused the write ({error.diag.column_name}).") from error
    except errors.IntegrityError as error:
        # Omit the driver's message, which quotes the row.
        raise Conflict(f"The database refused the write ({error.diag.constraint_name}).") from error
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        raise StoreDamaged(f"The PostgreSQL database is damaged ({error.sqlstate}); its log says where.") from error
    except (errors.UndefinedTable, errors.UndefinedColumn) as error:
        raise SchemaMismatch(SCHEMA_INCOMPLETE) from error
    except psycopg.OperationalError as error:
        if is_read_overdue():
            raise StoreTimeout(READ_TIMED_OUT) from error
        if is_from_node(error):
            raise StoreAway(NODE_AWAY) from error
        raise build_outage(AWAY) from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL failed ({error.sqlstate}: {type(error).__name__}).") from error


@contextmanager
def translate_admin_errors() -> Iterator[None]:
    """Convert the errors of statements that change the schema or roles, with the server's message and hint.

    Ordinary statements hide them, because they may quote a row.
    """
    with translate_errors():
        try:
            yield
        except (errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled, errors.DiskFull):
            raise
        except psycopg.Error as error:
            said = describe_failure(error)
            if not said:
                raise
            raise StoreError(said) from error


def describe_failure(error: psycopg.Error) -> str:
    """Return the server's message and hint as a sentence; empty if it has none, or one that may quote a value."""
    state, message, hint = error.sqlstate or "", error.diag.message_primary, error.diag.message_hint
    # Class 22 is about values; one of them reports wrong arguments of functions.
    if not message or (state.startswith("22") and not isinstance(error, errors.InvalidParameterValue)):
        return ""
    return f"PostgreSQL refused ({state}): {message.rstrip('.')}." + (f" Hint: {hint}" if hint else "")


Connection = psycopg.Connection[tuple[Any, ...]]

CHECK_INTERVAL = 0.5
"""Seconds between two checks of the running calls and, during an outage, between two attempts to connect."""

SLOW_CALL = 1.0
"""Seconds a call may wait before a test connection is opened."""

GRACE = 0.25
"""Seconds beyond the limit of a read in which the server may still report that it ended the statement."""

CLOSE_PATIENCE = 0.1
"""Seconds to wait for each thread of a pool that is closed."""

MAX_NOTICES = 10
"""Messages that are read from an idle connection before it is used anyway."""

OPTIONS = {
    "connect_timeout": 3,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Default options, which a URL may override. The last four end a connection whose peer vanished silently."""

IDENTIFY_SERVER = """
SELECT pg_postmaster_start_time(), oid FROM pg_database WHERE datname = current_database()
"""


class PostgresLink:
    """Connection pool that exists only while the server is reachable."""

    def __init__(self, url: str, *, busy_timeout: float, pool_size: int, prepare_threshold: int) -> None:
        """Prepare the link; `open` opens the connections. Statements are never prepared with a threshold of 0."""
        try:
            params = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            # Its message quotes the part that is wrong, which may be the password.
            raise Invalid("The address of the database is wrong; it is postgresql://user@host/database.") from None
        self.address = _format_address(params)
        self._url = url
        self._options: dict[str, Any] = {name: value for name, value in OPTIONS.items() if name not in params}
        # The driver prepares from the next execution on with 0, and never with None.
        self._options |= {"autocommit": True, "application_name": "wellkept"}
        self._options["prepare_threshold"] = prepare_threshold or None
        self.pool_size = pool_size
        self._busy_timeout = busy_timeout
        self._lock = threading.Lock()  # guards the exchange of the pool and the sockets of running calls
        self._pool: ConnectionPool[Connection] | None = None
        self._outage = ""  # reason for the outage, as a sentence
        self._is_closed = False
        self._calls: set[_Call] = set()
        self._last_heard = 0.0  # time of the server's last answer
        self._check_requested = threading.Event()
        self._server: tuple[Any, ...] | None = None  # start and database of the last connection
        self.on_other_server: Callable[[], None] = lambda: None

    def connect(self) -> Connection:
        """Open a connection outside the pool. Raises: StoreAway."""
        try:
            return psycopg.connect(self._url, **self._options)
        except psycopg.OperationalError as error:
            raise StoreAway(self._describe(error)) from error

    def open(self) -> None:
        """Open the pool and start the background thread. Raises: PoolTimeout."""
        self._pool = self._open_pool()
        watch = threading.Thread(
            target=_watch, args=(weakref.ref(self), self._check_requested), name="wellkept-postgres", daemon=True
        )
        watch.start()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            pool, self._pool = self._pool, None
        self._check_requested.set()
        if pool is not None:
            pool.close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Borrow a connection; an uncommitted transaction is rolled back.

        Raises: StoreAway; StoreError when closed; PoolTimeout when all are in use.
        """
        call = _Call()
        self._calls.add(call)
        try:
            with ExitStack() as stack:
                connection = call.connection = self._borrow(stack)
                call.fd = socket.dup(connection.fileno())
                try:
                    yield connection
                finally:
                    with self._lock:
                        socket.close(call.fd)
                        call.fd = -1
                    if not connection.broken:
                        self._last_heard = time.monotonic()
        finally:
            self._calls.discard(call)

    @contextmanager
    def awaiting(self, connection: Connection, *, within: float) -> Iterator[None]:
        """Shut down the connection if the statement of this block is not answered within the limit."""
        call = next(each for each in list(self._calls) if each.connection is connection)
        call.until = time.monotonic() + within + GRACE
        try:
            yield
        finally:
            call.until = inf

    def _borrow(self, stack: ExitStack) -> Connection:
        while True:
            pool = self._pool
            if pool is None:
                raise StoreError(CLOSED) if self._is_closed else StoreAway(self._outage)
            # The pool may be closed while we wait; then use the one that replaced it, if any.
            with suppress(PoolClosed):
                return stack.enter_context(pool.connection(timeout=self._patience()))

    def _patience(self) -> float:
        """Return the seconds to wait for a connection of the pool."""
        left = read_seconds_left()
        return self._busy_timeout if left is None else min(self._busy_timeout, max(0.0, left))

    def _open_pool(self) -> ConnectionPool[Connection]:
        """Create and open a pool. Raises: PoolTimeout."""
        pool: ConnectionPool[Connection] = ConnectionPool(
            self._url,
            min_size=1,
            max_size=self.pool_size,
            timeout=self._busy_timeout,
            # The pool would double its pauses; we try to reconnect ourselves.
            reconnect_timeout=0,
            reconnect_failed=lambda _: self._check_requested.set(),
            open=False,
            configure=self._compare_server,
            kwargs=self._options,
        )
        pool.open(wait=True, timeout=self._busy_timeout)
        return pool

    def _compare_server(self, connection: Connection) -> None:
        """Report a database that is not the one of earlier connections, before anybody uses the connection.

        After a restart, from a backup or on a standby, a database may have an older state. A connection that was only
        closed leaves both numbers as they are.
        """
        server = connection.execute(IDENTIFY_SERVER, prepare=False).fetchone()
        with self._lock:
            before, self._server = self._server, server
        if before is not None and before != server:
            self.on_other_server()

    def check(self) -> bool:
        """Detect an outage or its end. Return False if the link is closed."""
        if self._is_closed:
            return False
        self._shut_down_overdue()
        pool = self._pool
        if pool is None:
            self._reconnect()
        elif pool.get_stats()["pool_size"] == 0:
            self._probe(pool, has_connections=False)
        elif self._has_slow_call():
            self._probe(pool, has_connections=True)
        return True

    def _shut_down_overdue(self) -> None:
        now = time.monotonic()
        with self._lock:
            for call in list(self._calls):
                if call.fd >= 0 and now > call.until:
                    _shutdown(call.fd)

    def _has_slow_call(self) -> bool:
        since = min((call.since for call in list(self._calls)), default=None)
        return since is not None and time.monotonic() - max(since, self._last_heard) > SLOW_CALL

    def _probe(self, pool: ConnectionPool[Connection], *, has_connections: bool) -> None:
        began = time.monotonic()
        try:
            self.connect().close()
        except StoreAway as error:
            # A refusal shows that the server is running and only accepts no new connections.
            is_refusal = _server_message(error.__cause__) is not None
            if has_connections and (is_refusal or self._last_heard > began):
                self._last_heard = time.monotonic()
            else:
                self._disconnect(pool, str(error))
        else:
            self._last_heard = time.monotonic()
            # Calls that wait for a connection of the empty pool would time out.
            if not has_connections:
                self._reconnect()

    def _disconnect(self, pool: ConnectionPool[Connection], reason: str) -> None:
        log.error("%s", reason)
        with self._lock:
            self._outage, self._pool = reason, None
            for call in list(self._calls):
                if call.fd >= 0:
                    _shutdown(call.fd)
        # Closing the pool also wakes the calls that wait for a connection.
        pool.close(CLOSE_PATIENCE)

    def _reconnect(self) -> None:
        try:
            self.connect().close()
            pool = self._open_pool()
        except StoreAway as error:
            # The reason may have changed.
            self._outage = str(error)
            return
        except PoolTimeout:
            return
        with self._lock:
            unused = pool if self._is_closed else self._pool
            self._pool = None if self._is_closed else pool
        if unused is not None:
            unused.close(CLOSE_PATIENCE)
        log.warning("The database at %s is reachable again.", self.address)

    def _describe(self, error: psycopg.OperationalError) -> str:
        refusal = _server_message(error)
        if refusal is not None:
            why = f"it refuses connections: {refusal}"
        elif isinstance(error, errors.ConnectionTimeout):
            why = "it does not answer"
        else:
            why = str(error).rpartition(" failed: ")[2].partition("\n")[0].rstrip(".")
            why = why[:1].lower() + why[1:]
        return f"The database at {self.address} cannot be reached ({why}). Try again in a moment."


def check_alive(connection: Connection) -> None:
    """Notice without a round trip that the server has closed an idle connection. Raises: OperationalError."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    # What arrives on an idle connection is a notice, or a last message and then the end.
    for _ in range(MAX_NOTICES):
        if not poll.poll(0):
            return
        connection.pgconn.consume_input()


def connect_once(url: str) -> Connection:
    """Open a connection of its own for administration. Raises: StoreAway."""
    return PostgresLink(url, busy_timeout=0, pool_size=1, prepare_threshold=0).connect()


class _Call:
    """Running call."""

    __slots__ = ("connection", "fd", "since", "until")

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.connection: Connection | None = None
        # Time at which the call is overdue.
        self.until = inf
        # Duplicate of the socket's descriptor, which the system cannot reuse while we hold it.
        self.fd = -1


def _watch(link_ref: weakref.ref[PostgresLink], check_requested: threading.Event) -> None:
    """Check a link periodically while it exists. Not a method, because the thread would keep the link alive."""
    while True:
        check_requested.wait(CHECK_INTERVAL)
        check_requested.clear()
        link = link_ref()
        try:
            if link is None or not link.check():
                return
        except Exception:
            log.exception("The check of the database connection failed; trying again.")
        del link


def _shutdown(fd: int) -> None:
    """Shut down a socket, so that a blocked read returns."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd)
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.detach()


def _server_message(error: BaseException | None) -> str | None:
    """Return the server's own error message without quoted names; None if the error is not from the server.

    Server messages have two spaces after the severity, which comes first and in the server's language.
    """
    message = re.search(r"(?:^|failed: )[^\s:]+:  (.+)", str(error))
    return None if message is None else re.sub(r' "[^"]*"', "", message[1]).rstrip(".")


def _format_address(params: dict[str, Any]) -> str:
    """Format the host and port of a connection for messages.

    >>> _format_address({"host": "db.example", "port": 6432}), _format_address({})
    ('db.example:6432', 'the local socket')
    """
    host = params.get("host") or params.get("hostaddr")
    if not host:
        return "the local socket"
    port = params.get("port") or 5432
    return ", ".join(f"{each}:{port}" for each in str(host).split(","))
