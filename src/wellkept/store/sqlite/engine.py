"""SQLite engine: many readers, one writer (see `store.sqlite.writer`), and the search index.

Several processes may use one file: each has its own writer thread, and SQLite's lock lets one commit at a time.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import apsw

from wellkept.deadline import check_deadline, is_read_overdue
from wellkept.errors import StoreError
from wellkept.model import BackupReport, ClusterNode
from wellkept.store.engine import CLOSED, FORKED, Progress, RegisteredEmbedder, Snapshots, Unit
from wellkept.store.migrations import (
    MESSAGES,
    SESSIONS,
    Migration,
    adoption_statements,
    check_applied,
    lacks_summary,
    load_migrations,
)
from wellkept.store.notes.disk import OWNER_ONLY_FILE, make_private
from wellkept.store.queries import load_queries
from wellkept.store.search.encoding import COMPACT_ENCODING
from wellkept.store.search.memory_search import MemorySearch
from wellkept.store.sqlite import scrub
from wellkept.store.sqlite.backup import PAGES, WAL_SUFFIX, write_backup
from wellkept.store.sqlite.writer import (
    SqliteUnit,
    SqliteWriter,
    convert_binding,
    find_disk_problems,
    make_statement,
    translate_errors,
)
from wellkept.store.tables.details import FOLDER_SUFFIX

T = TypeVar("T")

OLDEST_SAFE_SQLITE = (3, 51, 3)
"""Minimum version. In older ones, a checkpoint racing with a writer could corrupt a database in WAL mode."""

STATEMENT_CACHE = 200
LARGEST_IDLE_LOG = 16 * 1024 * 1024
"""Bytes to which the write-ahead log is cut once a large transaction has been copied into the database."""

WAL_RETRY_PAUSE = 0.02
"""Seconds between attempts to switch to WAL mode."""

STEPS_BETWEEN_CHECKS = 50_000
"""Steps of SQLite's virtual machine between two checks of the deadline, a few milliseconds of work."""


class SqliteEngine:
    """One SQLite file, or a database in memory."""

    name = "sqlite"
    has_single_writer = True

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
        self._target = f"file:/wellkept-{uuid.uuid4()}?vfs=memdb" if self._in_memory else str(Path(path).absolute())
        self.content_folder = None if self._in_memory else Path(f"{self._target}{FOLDER_SUFFIX}")
        self._queries = {name: make_statement(sql) for name, sql in load_queries(self.name).items()}
        self._readers: deque[apsw.Connection] = deque()
        self._snapshots: Snapshots[SqliteUnit] = Snapshots()
        self._closed = threading.Event()
        if not self._in_memory:
            create_database_file(Path(self._target))
        with translate_errors():
            connection = self._connect()
            migrate(connection)
            self._writer = SqliteWriter(connection, self._queries)
        self.index = MemorySearch(
            "sqlite", self.read, encoding=COMPACT_ENCODING, max_bytes=index_cache_bytes, keeps_last=True
        )

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        self._check_usable()
        if (shared := self._snapshots.find(tenant)) is not None:
            with translate_errors():
                return work(shared)
        with translate_errors(), self._reader() as connection:
            unit = SqliteUnit(connection, self._queries, tenant)
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

    def use_embedder(self, embedder: RegisteredEmbedder) -> None:
        self.index.use(embedder)

    def own_indexes(self, embedder: RegisteredEmbedder) -> Mapping[str, str]:
        return {}

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

    def back_up(self, file: IO[bytes], *, scratch: Path, now: datetime, progress: Progress | None) -> BackupReport:
        self._check_usable()
        return write_backup(file, self._copy_database, scratch=scratch, now=now, progress=progress)

    def _copy_database(self, target: Path) -> None:
        """Copy the database of one moment to a new file; writers continue meanwhile."""
        with translate_errors(), self._reader() as source:
            source.execute("BEGIN")
            destination = apsw.Connection(str(target))
            try:
                # The first read fixes the moment.
                source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
                with destination.backup("main", source, "main") as copying:
                    while not copying.done:
                        copying.step(PAGES)
                        check_deadline()
            finally:
                destination.close()
                source.execute("ROLLBACK")

    def problems(self) -> Sequence[str]:
        return () if self._in_memory else find_disk_problems(Path(self._target).parent)

    def check_nodes(self) -> Sequence[ClusterNode]:
        return ()

    def close(self) -> None:
        """Finish the waiting writes, then close. Calling it again does nothing."""
        if self._closed.is_set() or os.getpid() != self._pid:
            return
        self._closed.set()
        # Ends with the last idle connection; those in use are closed when they are returned.
        with suppress(IndexError):
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
        """Borrow a read-only connection from the pool, which grows to the number of concurrent readers."""
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
        connection.convert_binding = convert_binding
        connection.set_busy_timeout(int(self._busy_timeout * 1000))
        # Without this, each new value of a parameter that is compared with the constant of a partial index prepares the
        # statement again.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        if not readonly:
            self._use_write_ahead_log(connection)
        connection.pragma("synchronous", "FULL")
        connection.pragma("foreign_keys", True)
        connection.pragma("secure_delete", True)
        connection.pragma("journal_size_limit", LARGEST_IDLE_LOG)
        connection.pragma("query_only", readonly)
        if readonly:
            connection.set_progress_handler(is_read_overdue, STEPS_BETWEEN_CHECKS)
        return connection

    def _use_write_ahead_log(self, connection: apsw.Connection) -> None:
        """Switch to WAL mode. Retry, because SQLite does not wait here for another process that creates the file."""
        retries = int(self._busy_timeout / WAL_RETRY_PAUSE)
        for attempt in range(retries + 1):
            try:
                # An in-memory database answers "memory" and needs no log.
                connection.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if attempt == retries:
                    raise
                time.sleep(WAL_RETRY_PAUSE)
            else:
                return


def migrate(connection: apsw.Connection) -> None:
    """Apply pending migrations, all or none, under the write lock; other processes wait and find them applied."""
    migrations = load_migrations("sqlite")
    if check_applied(migrations, read_applied(connection)) or lacks_summary(_columns_of(connection)):
        connection.execute("BEGIN IMMEDIATE")
        try:
            _apply_pending(connection, migrations)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def read_applied(connection: apsw.Connection) -> Mapping[int, str]:
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").fetchone():
        return {}
    return {row[0]: row[1] for row in connection.execute("SELECT number, checksum FROM schema_migrations")}


def _columns_of(connection: apsw.Connection, table: str = SESSIONS) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def _apply_pending(connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
    applied = read_applied(connection)
    before, after = adoption_statements("sqlite", applied, _columns_of(connection), _columns_of(connection, MESSAGES))
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations "
        "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL) STRICT"
    )
    for statement in before:
        connection.execute(statement)
    for migration in check_applied(migrations, applied):
        for statement in (*migration.statements, *after):
            connection.execute(statement)
        after = ()
        connection.execute(
            "INSERT INTO schema_migrations (number, name, checksum) VALUES (?, ?, ?)",
            (migration.number, migration.name, migration.checksum),
        )


EMPTY = (
    "The database {path} is missing or empty, but {log} still holds what was written to it. Restore the database from "
    "a backup. To start a new store here, move {log} away."
)


def create_database_file(path: Path) -> None:
    """Create the database's file and folder with owner-only permissions; leave existing ones unchanged.

    Raises: StoreError if the file is missing or empty while its write-ahead log is not.
    """
    path = Path(os.path.realpath(path))
    log = Path(f"{path}{WAL_SUFFIX}")
    try:
        make_private(path.parent)
        # Check the log before the database: another process may be creating both, the database first.
        is_logged = _file_size(log) > 0
        if _file_size(path):
            return
        if is_logged:
            raise StoreError(EMPTY.format(path=path, log=log))
        with contextlib.suppress(FileExistsError):
            _create_empty(path)
    except OSError as error:
        raise StoreError(f"The database {path} cannot be created: {error.strerror}.") from error


def find_exposed(path: Path) -> Sequence[Path]:
    """Return the files and folders of a store that other users of this machine may read or write."""
    files = [Path(f"{path}{suffix}") for suffix in ("", WAL_SUFFIX, "-shm", FOLDER_SUFFIX)]
    return [each for each in files if each.exists() and each.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]


def _file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _create_empty(path: Path) -> None:
    """Create an empty file without opening it: closing it would release SQLite's locks on it in this process."""
    try:
        os.mknod(path, OWNER_ONLY_FILE | stat.S_IFREG)
    except PermissionError:
        # macOS reserves mknod for root.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, OWNER_ONLY_FILE))
