"""SQLite transactions: one writer thread, group commit, and the translation of errors.

A write that finds no other write in progress runs immediately on the caller's thread. All others queue for the writer
thread. It opens a transaction, runs all waiting jobs (each in its own savepoint, so that a failing job affects no
other), commits once, and then releases the callers. Meanwhile the next jobs queue up. So a single writer pays one fsync
per write, and sixteen concurrent ones share one.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw

from wellkept.deadline import READ_TIMED_OUT, check_read_limit
from wellkept.errors import (
    Conflict,
    DiskFull,
    Invalid,
    ReadOnly,
    SchemaMismatch,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreTimeout,
    WellkeptError,
)
from wellkept.store.conditions import PLACE, Clause
from wellkept.store.engine import CLOSED, SCHEMA_INCOMPLETE, UNSTORABLE, Row, Unit
from wellkept.store.queries import FOR_USER, MAX_FORMATTED, as_numbered, load_queries, peek, select
from wellkept.store.tables.rows import stamp

T = TypeVar("T")

MAX_JOBS_PER_COMMIT = 512
NO_THREAD = 0
"""Value of a thread id when no thread is writing."""

Binder = Callable[[Mapping[str, Any]], Sequence[Any]]
Queries = Mapping[str, tuple[str, Binder]]
"""Statements by name, each with the function that puts its parameters in order."""

RETRY_AFTER_BUSY = 1.0
UNWRITTEN = frozenset(
    {
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_DIR_FSYNC,
        apsw.SQLITE_IOERR_TRUNCATE,
        apsw.SQLITE_IOERR_SHMSIZE,
    }
)
"""Result codes of failed writes (full or failing disk, quota). The database can still be read."""

LITTLE_FREE = 8 * 1024 * 1024
"""Free bytes below which writes may fail: the write-ahead log alone may take half of this before a checkpoint."""

LOST = re.compile("no such (table|column)|table .* has no column")
"""Messages that report a missing part of the schema."""


class SqliteUnit:
    """One transaction or savepoint."""

    __slots__ = ("_connection", "_queries", "began", "memo", "tenant")

    def __init__(self, connection: apsw.Connection, queries: Queries, tenant: str) -> None:
        self._connection = connection
        self._queries = queries
        self.tenant = tenant
        self.began = time.monotonic()
        self.memo: dict[Any, Any] = {}

    def take_snapshot(self) -> None:
        """Fix what this transaction sees: BEGIN alone leaves that to the first statement."""
        self._connection.execute("SELECT count(*) FROM sqlite_schema WHERE rowid = 1").fetchall()

    def all(self, name: str, where: Clause | None = None, /, **values: Any) -> Sequence[Row]:
        check_read_limit()
        sql, bind = self._queries[name + FOR_USER if "user" in values else name]
        if where is not None:
            sql, bind = make_statement(select(load_queries("sqlite"), name, values).replace(PLACE, where.sql))
            values |= where.values
        return self._connection.execute(sql, bind(values)).fetchall()

    def one(self, name: str, /, **values: Any) -> Row | None:
        check_read_limit()
        sql, bind = self._queries[name + FOR_USER if "user" in values else name]
        row: Row | None = self._connection.execute(sql, bind(values)).fetchone()
        return row

    def run(self, name: str, /, **values: Any) -> int:
        self.put(name, **values)
        return self._connection.changes()

    def put(self, name: str, /, **values: Any) -> None:
        sql, bind = self._queries[name + FOR_USER if "user" in values else name]
        self._connection.execute(sql, bind(values))

    def ask(self, name: str, /, **values: Any) -> Callable[[], Row | None]:
        row = self.one(name, **values)
        return lambda: row

    def run_many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        for first, all_rows in peek(rows):
            sql, bind = select(self._queries, name, first)
            self._connection.executemany(sql, map(bind, all_rows))


@lru_cache(MAX_FORMATTED)
def make_statement(sql: str) -> tuple[str, Binder]:
    """Return a statement as the driver takes it, and the function that puts its parameters in order."""
    numbered, names = as_numbered(sql)
    # With fewer than two names, `itemgetter` returns no sequence.
    return numbered, itemgetter(*names) if len(names) > 1 else lambda values: [values[name] for name in names]


def convert_binding(cursor: object, number: int, value: object) -> Any:
    """Convert a value of a type that the driver does not know: a time, or a list, which statements read as JSON."""
    return stamp(value) if isinstance(value, datetime) else json.dumps(value) if isinstance(value, list) else value


@dataclass(slots=True)
class _Job:
    """Work of one caller and its outcome. The lock is released when the outcome is durable."""

    tenant: str
    work: Callable[[Unit], Any]
    context: Context = field(default_factory=copy_context)  # of the caller, entered on the writer thread
    done: threading.Lock = field(default_factory=threading.Lock)
    result: Any = None
    error: BaseException | None = None


class SqliteWriter:
    """Owner of the only writing connection, which one thread uses at a time.

    Waking another thread and waiting for it costs as much as the write itself, so a caller that finds the connection
    free writes on its own thread. As soon as a caller has to wait, jobs queue for the writer thread, which commits them
    together.
    """

    def __init__(self, connection: apsw.Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries
        self._connection_lock = threading.Lock()  # held while using the connection
        self._writing = NO_THREAD  # id of the thread that uses the connection
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()  # guards `_waiting` and `_is_stopped`
        self._waiting = 0  # jobs queued and not yet done
        self._is_stopped = False
        self._thread = threading.Thread(target=self._serve, name="wellkept-writer", daemon=True)
        self._thread.start()

    def run(self, tenant: str, work: Callable[[Unit], T]) -> T:
        if self._writing == threading.get_ident():
            raise StoreError("A transaction cannot start another write and wait for it.")
        # Queued jobs go first: a busy caller must not overtake them repeatedly.
        if not self._waiting and self._connection_lock.acquire(blocking=False):
            try:
                return self._write_alone(tenant, work)
            finally:
                self._connection_lock.release()
        result: T = self._queue(_Job(tenant, work))
        return result

    def alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` outside a transaction while all writers wait."""
        with self.paused(), translate_errors():
            return work(self._connection)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Block the writers of this process."""
        if self._writing == threading.get_ident():
            raise StoreError("The file cannot be rewritten inside a transaction.")
        with self._connection_lock:
            if self._is_stopped:
                raise StoreError(CLOSED)
            yield

    def stop(self) -> None:
        with self._gate:
            self._is_stopped = True
            self._jobs.put(None)
        self._thread.join()
        with self._connection_lock:
            self._connection.close()

    def _write_alone(self, tenant: str, work: Callable[[Unit], T]) -> T:
        if self._is_stopped:
            raise StoreError(CLOSED)
        self._writing = threading.get_ident()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            result = work(SqliteUnit(self._connection, self._queries, tenant))
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            with translate_errors():
                raise
        finally:
            self._writing = NO_THREAD
        return result

    def _queue(self, job: _Job) -> Any:
        job.done.acquire()
        with self._gate:
            # A job queued after the None that ends the thread would wait forever.
            if self._is_stopped:
                raise StoreError(CLOSED)
            self._waiting += 1
            self._jobs.put(job)
        job.done.acquire()
        if job.error is not None:
            raise job.error
        return job.result

    def _serve(self) -> None:
        self_id = threading.get_ident()
        while (job := self._jobs.get()) is not None:
            group = [job]
            with self._connection_lock:
                self._writing = self_id
                try:
                    with translate_errors(), self._transaction():
                        self._run_group(group)
                except BaseException as error:  # noqa: BLE001  raised in every caller of the group
                    for each in group:
                        each.error = each.error or error
                self._writing = NO_THREAD
            with self._gate:
                self._waiting -= len(group)
            for each in group:
                each.done.release()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction already.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _run_group(self, group: list[_Job]) -> None:
        """Run the first job and all that are queued after it."""
        self._run_job(group[0])
        while len(group) < MAX_JOBS_PER_COMMIT and not self._jobs.empty():
            job = self._jobs.get()
            # Keep the stop signal for the main loop, after this commit.
            if job is None:
                self._jobs.put(None)
                return
            group.append(job)
            self._run_job(job)

    def _run_job(self, job: _Job) -> None:
        self._connection.execute("SAVEPOINT job")
        try:
            with translate_errors():
                unit = SqliteUnit(self._connection, self._queries, job.tenant)
                job.result = job.context.run(job.work, unit)
        except BaseException as error:  # raised again in the caller's thread
            job.error = error
            # A full disk may have ended the whole transaction.
            if not self._connection.in_transaction:
                raise
            self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert the driver's errors to ours, with the original as the cause."""
    try:
        yield
    except WellkeptError:
        raise
    except apsw.InterruptError as error:
        raise StoreTimeout(READ_TIMED_OUT) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        message = "The database is busy: another process has been writing for too long. Try again."
        raise StoreBusy(message, retry_after=RETRY_AFTER_BUSY) from error
    except (OverflowError, UnicodeEncodeError, apsw.TooBigError) as error:
        raise Invalid(UNSTORABLE) from error
    except apsw.ConstraintError as error:
        raise Conflict(f"The database refused the write: {error}.") from error
    except apsw.FullError as error:
        raise DiskFull("The disk is full; nothing was written. Free some space and try again.") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreDamaged(f"The database file is damaged or not a wellkept database ({error}).") from error
    except apsw.CantOpenError as error:
        raise StoreError("The database file cannot be opened; check the path and its permissions.") from error
    except apsw.ReadOnlyError as error:
        raise ReadOnly("The database file cannot be written to; check its permissions.") from error
    except apsw.IOError as error:
        is_unwritten = getattr(error, "extendedresult", 0) in UNWRITTEN
        if is_unwritten and has_size_limit():
            message = (
                f"Disk I/O failed ({error}): the disk may be full, or a file as large as this process may make it."
            )
            raise DiskFull(f"{message} Free some space, or raise the limit (ulimit -f).") from error
        message = f"Disk I/O failed ({error}): the disk may be full, failing or gone."
        raise (ReadOnly if is_unwritten else StoreError)(message) from error
    except apsw.Error as error:
        if isinstance(error, apsw.SQLError) and LOST.match(str(error)):
            raise SchemaMismatch(SCHEMA_INCOMPLETE) from error
        raise StoreError(f"SQLite failed: {error}.") from error


def has_size_limit() -> bool:
    """Return True if files that this process writes may not grow beyond some size."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return False
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY


def find_disk_problems(folder: Path) -> Sequence[str]:
    """Return the problems that will prevent writes to the database in this folder, as sentences."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return (f"The database's folder cannot be read: {error.strerror}.",)
    return ("The disk is nearly full: writes may fail at any time. Free some space.",) if free < LITTLE_FREE else ()
