"""SQLite engine: many readers, one writer thread, and group commit.

A write that finds no other write in progress runs immediately on the caller's thread. All others queue for the writer
thread. It opens a transaction, runs all waiting jobs (each in its own savepoint, so that a failing job affects no
other), commits once, and then releases the callers. Meanwhile the next jobs queue up. So a single writer pays one fsync
per write, and sixteen concurrent ones share one.

Several processes may use one file: each has its own writer thread, and SQLite's lock lets one commit at a time.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw

from recollect.deadline import check_read_limit, is_read_overdue
from recollect.errors import StoreError
from recollect.store.engine import CLOSED, FORKED, RegisteredEmbedder, Row, Unit
from recollect.store.queries import as_numbered, load_queries
from recollect.store.snapshots import Snapshots
from recollect.store.sqlite import scrub
from recollect.store.sqlite.errors import find_disk_problems, translate_errors
from recollect.store.sqlite.files import CONTENTS_SUFFIX, EMPTY, claim_contents, create_database_file, has_contents
from recollect.store.sqlite.index import SqliteIndex
from recollect.store.sqlite.schema import migrate, read_applied
from recollect.store.tables.rows import stamp

T = TypeVar("T")

OLDEST_SAFE_SQLITE = (3, 51, 3)
"""Minimum version. In older ones, a checkpoint racing with a writer could corrupt a database in WAL mode."""

MAX_JOBS_PER_COMMIT = 512
STATEMENT_CACHE = 200
WAL_RETRY_PAUSE = 0.02
STEPS_BETWEEN_CHECKS = 50_000
"""Steps of SQLite's virtual machine between two looks at the clock, a few milliseconds of work."""

NOBODY = 0


class SqliteEngine:
    """One SQLite file, or a database in memory."""

    name = "sqlite"
    store_id = 0  # an in-memory database has no files beside it

    def __init__(self, path: str, *, busy_timeout: float, index_cache_bytes: int) -> None:
        """Open the database and create or upgrade its schema. `path` is ":memory:" or the path of a file.

        Raises: StoreError, SchemaMismatch.
        """
        if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < OLDEST_SAFE_SQLITE:
            raise StoreError(f"SQLite {apsw.sqlite_lib_version()} can corrupt databases; run: pip install -U apsw")
        self._pid = os.getpid()
        self._busy_timeout = busy_timeout
        self._in_memory = path == ":memory:"
        # A name with a leading slash in the memdb VFS is shared by all connections of this process.
        self._target = f"file:/recollect-{uuid.uuid4()}?vfs=memdb" if self._in_memory else str(Path(path).absolute())
        self.content_folder = None if self._in_memory else Path(f"{self._target}{CONTENTS_SUFFIX}")
        self._queries = {name: as_numbered(sql) for name, sql in load_queries(self.name).items()}
        self._readers: deque[apsw.Connection] = deque()
        self._snapshots: Snapshots[_SqliteUnit] = Snapshots()
        self._closed = threading.Event()
        if self.content_folder is not None:
            create_database_file(Path(self._target), self.content_folder)
        with translate_errors():
            connection = self._connect()
            # Check for texts first: another process may be creating the schema, and stores no text before that.
            has_texts = self.content_folder is not None and has_contents(self.content_folder)
            if has_texts and not read_applied(connection):
                raise StoreError(EMPTY.format(path=self._target, beside=self.content_folder))
            migrate(connection)
            if self.content_folder is not None:
                self.store_id = claim_contents(connection, Path(self._target), self.content_folder)
            self._writer = _Writer(connection, self._queries)
        self.index = SqliteIndex(self.read, numbers=self.numbers, max_bytes=index_cache_bytes)

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        self._check_usable()
        if (shared := self._snapshots.find(tenant)) is not None:
            with translate_errors():
                return work(shared)
        with translate_errors(), self._reader() as connection:
            unit = _SqliteUnit(connection, self._queries, tenant)
            connection.execute("BEGIN")
            try:
                return work(unit)
            finally:
                connection.execute("ROLLBACK")

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        def read_all(unit: Any) -> T:
            unit.take_snapshot()
            with self._snapshots.share(unit):
                return work()

        # A database in memory has no write-ahead log: a transaction that stays open keeps every writer out.
        return work() if self._in_memory else self.read(tenant, read_all)

    def write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        self._check_usable()
        return self._writer.run(tenant, work)

    def numbers(self, seqs: Sequence[int]) -> str:
        return json.dumps(list(seqs))

    def texts(self, texts: Sequence[str]) -> str:
        return json.dumps(list(texts))

    def use_embedder(self, embedder: RegisteredEmbedder) -> None:
        self.index.use(embedder)

    def forget(self, tenant: str) -> None:
        self.index.forget(tenant)

    def scrub(self, tables: Sequence[str], *, compact: bool | None) -> Sequence[str]:
        self._check_usable()
        if self._in_memory:
            return ()
        if compact:
            return self._writer.alone(scrub.compact)
        if compact is False:
            return [scrub.NOT_SCRUBBED]
        with translate_errors():
            connection = self._connect()
            try:
                return scrub.overwrite_unused(connection, Path(self._target), self._writer.paused)
            finally:
                connection.close()

    def problems(self) -> Sequence[str]:
        return () if self._in_memory else find_disk_problems(Path(self._target).parent)

    def close(self) -> None:
        """Finish the waiting writes, then close. Calling it again does nothing."""
        if self._closed.is_set() or os.getpid() != self._pid:
            return
        self._closed.set()
        with suppress(IndexError):  # a search that is still under way may take the last one
            while True:
                self._readers.pop().close()
        self._writer.stop()

    def _check_usable(self) -> None:
        if self._closed.is_set():
            raise StoreError(CLOSED)
        if os.getpid() != self._pid:
            raise StoreError(FORKED)

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        """A connection nobody else is using: as many are opened as there are threads reading at once."""
        try:
            connection = self._readers.pop()
        except IndexError:
            connection = self._connect(readonly=True)
        try:
            yield connection
        finally:
            if self._closed.is_set():
                connection.close()
            else:
                self._readers.append(connection)

    def _connect(self, *, readonly: bool = False) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        if self._in_memory:
            # Never for files: a path may contain "?".
            flags |= apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(self._target, flags=flags, statementcachesize=STATEMENT_CACHE)
        connection.set_busy_timeout(int(self._busy_timeout * 1000))
        if not readonly:
            self._use_write_ahead_log(connection)
        connection.pragma("synchronous", "FULL")
        connection.pragma("foreign_keys", True)
        connection.pragma("secure_delete", True)
        connection.pragma("query_only", readonly)
        if readonly:
            connection.set_progress_handler(is_read_overdue, STEPS_BETWEEN_CHECKS)
        return connection

    def _use_write_ahead_log(self, connection: apsw.Connection) -> None:
        """Switch to WAL mode. Retry, because SQLite does not wait here for another process that creates the file."""
        deadline = int(self._busy_timeout / WAL_RETRY_PAUSE)
        for attempt in range(deadline + 1):
            try:
                # An in-memory database answers "memory" and needs no log.
                connection.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if attempt == deadline:
                    raise
                time.sleep(WAL_RETRY_PAUSE)
            else:
                return


_Queries = Mapping[str, tuple[str, tuple[str, ...]]]


class _SqliteUnit:
    """One transaction or savepoint."""

    __slots__ = ("_connection", "_queries", "began", "tenant")

    def __init__(self, connection: apsw.Connection, queries: _Queries, tenant: str) -> None:
        self._connection = connection
        self._queries = queries
        self.tenant = tenant
        self.began = time.monotonic()

    def take_snapshot(self) -> None:
        """Fix what this transaction sees: BEGIN alone leaves that to the first statement."""
        self._connection.execute("SELECT count(*) FROM sqlite_schema WHERE rowid = 1").fetchall()

    def all(self, name: str, /, **values: Any) -> Sequence[Row]:
        check_read_limit()
        sql, names = self._queries[name]
        return self._connection.execute(sql, _bound(values, names)).fetchall()

    def one(self, name: str, /, **values: Any) -> Row | None:
        check_read_limit()
        sql, names = self._queries[name]
        row: Row | None = self._connection.execute(sql, _bound(values, names)).fetchone()
        return row

    def run(self, name: str, /, **values: Any) -> int:
        sql, names = self._queries[name]
        self._connection.execute(sql, _bound(values, names))
        return self._connection.changes()

    def run_many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        sql, names = self._queries[name]
        self._connection.executemany(sql, (_bound(values, names) for values in rows))


def _bound(values: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    return [stamp(value) if type(value) is datetime else value for value in map(values.__getitem__, names)]


@dataclass(slots=True)
class _Job:
    """Work of one caller and its outcome. The lock is released when the outcome is durable."""

    tenant: str
    work: Callable[[Unit], Any]
    context: Context = field(default_factory=copy_context)  # of the caller, entered on the writer thread
    done: threading.Lock = field(default_factory=threading.Lock)
    result: Any = None
    error: BaseException | None = None


class _Writer:
    """Owner of the only writing connection, which one thread uses at a time.

    Waking another thread and waiting for it costs as much as the write itself, so a caller that finds the connection
    free writes on its own thread. As soon as a caller has to wait, jobs queue for the writer thread, which commits them
    together.
    """

    def __init__(self, connection: apsw.Connection, queries: _Queries) -> None:
        self._connection = connection
        self._queries = queries
        self._turn = threading.Lock()  # held while using the connection
        self._writing = NOBODY  # id of the thread that uses the connection
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()  # guards `_waiting` and `_is_stopped`
        self._waiting = 0  # jobs queued and not yet done
        self._is_stopped = False
        self._thread = threading.Thread(target=self._serve, name="recollect-writer", daemon=True)
        self._thread.start()

    def run(self, tenant: str, work: Callable[[Unit], T]) -> T:
        if self._writing == threading.get_ident():
            raise StoreError("A transaction cannot start another write and wait for it.")
        # Queued jobs go first: a busy caller must not overtake them repeatedly.
        if not self._waiting and self._turn.acquire(blocking=False):
            try:
                return self._write_alone(tenant, work)
            finally:
                self._turn.release()
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
        with self._turn:
            if self._is_stopped:
                raise StoreError(CLOSED)
            yield

    def stop(self) -> None:
        with self._gate:
            self._is_stopped = True
            self._jobs.put(None)
        self._thread.join()
        with self._turn:
            self._connection.close()

    def _write_alone(self, tenant: str, work: Callable[[Unit], T]) -> T:
        if self._is_stopped:
            raise StoreError(CLOSED)
        self._writing = threading.get_ident()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            result = work(_SqliteUnit(self._connection, self._queries, tenant))
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            with translate_errors():
                raise
        finally:
            self._writing = NOBODY
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
            with self._turn:
                self._writing = self_id
                try:
                    with translate_errors(), self._transaction():
                        self._run_group(group)
                except BaseException as error:  # noqa: BLE001  raised in every caller of the group
                    for each in group:
                        each.error = each.error or error
                self._writing = NOBODY
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
                unit = _SqliteUnit(self._connection, self._queries, job.tenant)
                job.result = job.context.run(job.work, unit)
        except BaseException as error:  # raised again in the caller's thread
            job.error = error
            # A full disk may have ended the whole transaction.
            if not self._connection.in_transaction:
                raise
            self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")
