"""PostgreSQL engine: a connection pool and one short transaction for each unit of work.

Row-level security backs up the `tenant_id = …` of every statement. Each transaction starts by setting its tenant with
`SET LOCAL` (a plain literal, because Citus forwards nothing else to its workers), which lasts until the transaction
ends; without it no row is visible. Roles that bypass row-level security (superusers, BYPASSRLS) are refused at start.

Transactions on PostgreSQL: a time limit for reads, and writes in pipeline mode.

In pipeline mode a statement is sent at once, and the server answers when somebody asks for a result. A transaction that
asks once takes two round trips: to that result, and to the end of the commit.

Removal of the bytes of deleted rows from PostgreSQL's files, as far as an ordinary role can.

A plain VACUUM makes the space of removed rows reusable, but their bytes stay on the pages until then. VACUUM FULL
rewrites the tables and locks each of them for all tenants meanwhile.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.abc import PQGen
from psycopg.generators import fetch
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from wellkept.deadline import check_read_limit, read_seconds_left
from wellkept.errors import Invalid, StoreAway, StoreError
from wellkept.language.names import check_tenant
from wellkept.model import BackupReport, ClusterNode
from wellkept.store.conditions import PLACE, Clause
from wellkept.store.engine import FORKED, Progress, RegisteredEmbedder, Row, Snapshots, Unit
from wellkept.store.migrations import TENANT_SETTING
from wellkept.store.postgres.citus import ClusterNodes
from wellkept.store.postgres.index import MAX_INDEXED_DIMENSIONS, PostgresIndex
from wellkept.store.postgres.link import (
    Connection,
    PostgresLink,
    build_outage,
    check_alive,
    connect_once,
    is_from_node,
    is_shutdown,
    translate_admin_errors,
    translate_errors,
)
from wellkept.store.postgres.schema import check_role, check_tables, prepare_schema
from wellkept.store.queries import as_pyformat, load_queries, peek, select

T = TypeVar("T")
log = logging.getLogger("wellkept")

TIMEOUT_SLACK = 0.1
"""Seconds by which a statement timeout may be too long before a new one is set, which costs a round trip."""

SENT_AS_BYTES = frozenset(
    {"weigh_entries", "entries_where", "memory_index_after", "memory_index_rows"}
    | {"memory_index_versions", "chunk_index_after", "chunk_index_rows", "chunk_index_versions"}
)
"""Statements that return bytes, which are twice as long in the text format."""


FAILED = "A statement failed and nobody said so; nothing was written."


@contextmanager
def open_pipeline(connection: Connection) -> Iterator[psycopg.Pipeline]:
    """Put a connection into pipeline mode. Its end waits for all answers.

    Raises: the error of a statement that nobody waited for.
    """
    try:
        with connection.pipeline() as pipeline:
            is_done = False
            try:
                yield pipeline
                is_done = True
            finally:
                if not is_done:
                    # Read the other answers, whose errors the end of the pipeline would log.
                    with suppress(psycopg.Error):
                        pipeline.sync()
    except errors.PipelineAborted as error:
        # The statements behind a failed one are answered with this; the error of the failed one came before.
        first: BaseException | None = error
        while isinstance(first, errors.PipelineAborted):
            first = first.__context__
        raise (first or error) from None


def send_together(connection: Connection, statements: Sequence[str]) -> None:
    """Run statements without parameters in one round trip, each as a message of its own.

    In one message Citus would send the whole of it to its workers again with each SET LOCAL. This is what
    `Connection.pipeline` does, at a quarter of its cost. Raises: psycopg.Error.
    """
    pgconn = connection.pgconn
    pgconn.enter_pipeline_mode()
    try:
        for statement in statements:
            pgconn.send_query_params(statement.encode(), None)
        pgconn.pipeline_sync()
        failed = connection.wait(_read_answers(pgconn))
    finally:
        # It cannot leave the mode before all answers are read; whoever gets the connection back then closes it.
        with suppress(psycopg.OperationalError):
            pgconn.exit_pipeline_mode()
    if failed is not None:
        raise errors.error_from_result(failed)


def _read_answers(pgconn: PGconn) -> PQGen[PGresult | None]:
    """Read the answers up to the end of the pipeline; return the first failed one."""
    failed: PGresult | None = None
    while True:
        answer = yield from fetch(pgconn)
        if answer is None:
            continue
        if answer.status == ExecStatus.PIPELINE_SYNC:
            return failed
        if answer.status == ExecStatus.FATAL_ERROR and failed is None:
            failed = answer


class PostgresUnit:
    """One transaction."""

    __slots__ = (
        *("_begin", "_connection", "_ended", "_link", "_pipeline", "_queries", "_timeout"),
        *("began", "is_cut_off", "is_ending", "memo", "tenant"),
    )

    def __init__(
        self,
        connection: Connection,
        queries: Mapping[str, str],
        tenant: str,
        *,
        link: PostgresLink,
        begin: Sequence[str] = (),
        pipeline: psycopg.Pipeline | None = None,
    ) -> None:
        self._connection = connection
        self._pipeline = pipeline
        self._link = link
        self._queries = queries
        self._begin = begin
        self._ended: psycopg.Cursor[tuple[Any, ...]] | None = None  # COMMIT in a pipeline
        self._timeout: float | None = None  # the statement timeout in force, in seconds
        self.tenant = tenant
        self.began = time.monotonic()
        self.memo: dict[Any, Any] = {}
        self.is_cut_off = False  # a node of the cluster did not answer
        self.is_ending = False  # COMMIT was sent

    def begin(self) -> None:
        """Begin the transaction, in one round trip."""
        check_read_limit()
        self.began = time.monotonic()
        self._timeout = read_seconds_left()
        if self._pipeline is not None:
            for statement in self._begin:
                self._connection.execute(statement, prepare=False)
        else:
            limit = () if self._timeout is None else (_timeout_statement(self._timeout),)
            with self._awaiting():
                send_together(self._connection, (*self._begin, *limit))

    def commit(self) -> None:
        """Commit. In a pipeline, call `check_committed` after its end, which waits for the answer."""
        if self._pipeline is None:
            if self._connection.pgconn.transaction_status == TransactionStatus.INERROR:
                raise StoreError(FAILED)
            self._connection.commit()
            return
        self.is_ending = True
        self._ended = self._connection.execute("COMMIT", prepare=False)

    def check_committed(self) -> None:
        """Check the answer to COMMIT: after a failed statement it rolls back. Raises: StoreError."""
        if self._ended is not None and self._ended.statusmessage != "COMMIT":
            raise StoreError(FAILED)

    def begin_again_if_failed(self) -> None:
        """Replace a transaction that a failed statement has ended."""
        if self._connection.pgconn.transaction_status == TransactionStatus.INERROR:
            self._connection.rollback()
            self.begin()

    def end_if_failed(self) -> None:
        """Roll back a transaction that a failed statement has ended."""
        if self._connection.pgconn.transaction_status == TransactionStatus.INERROR:
            self._connection.rollback()

    def _update_timeout(self) -> None:
        """Set the statement timeout to the time left for reading, if it is not close to it already.

        Raises: StoreTimeout when no time is left.
        """
        check_read_limit()
        left = read_seconds_left()
        # Keep a timeout of at least half the time left: setting another costs a round trip.
        if left is not None and not (self._timeout and left / 2 <= self._timeout <= left + TIMEOUT_SLACK):
            self._timeout = left
            self._send(_timeout_statement(left))

    def _send(
        self, sql: str, values: Mapping[str, Any] | None = None, *, binary: bool = False
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        with self._awaiting():
            return self._connection.execute(sql, values, prepare=None if values is not None else False, binary=binary)

    def _awaiting(self) -> AbstractContextManager[None]:
        left = read_seconds_left()
        return nullcontext() if left is None else self._link.awaiting(self._connection, within=left)

    def all(self, name: str, where: Clause | None = None, /, **values: Any) -> Sequence[Row]:
        self._update_timeout()
        sql = select(self._queries, name, values)
        if where is not None:
            sql, values = sql.replace(PLACE, as_pyformat(where.sql)), values | where.values
        return self._send(sql, values, binary=name in SENT_AS_BYTES).fetchall()

    def one(self, name: str, /, **values: Any) -> Row | None:
        self._update_timeout()
        return self._send(select(self._queries, name, values), values).fetchone()

    def run(self, name: str, /, **values: Any) -> int:
        cursor = self._connection.execute(select(self._queries, name, values), values)
        if self._pipeline is not None:
            self._pipeline.sync()
        return cursor.rowcount

    def put(self, name: str, /, **values: Any) -> None:
        self._connection.execute(select(self._queries, name, values), values)

    def ask(self, name: str, /, **values: Any) -> Callable[[], Row | None]:
        if self._pipeline is None:
            row = self.one(name, **values)
            return lambda: row
        return self._connection.execute(select(self._queries, name, values), values).fetchone

    def run_many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        for first, all_rows in peek(rows):
            with self._connection.cursor() as cursor:
                cursor.executemany(select(self._queries, name, first), all_rows)


def _timeout_statement(seconds: float) -> str:
    # 0 would mean that there is no limit.
    return f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}"


FREE_SPACE = (
    "PostgreSQL keeps the bytes of removed rows on the pages of its tables until it reuses that space; compact "
    "rewrites the tables."
)
LOG = (
    "PostgreSQL's write-ahead log, replicas and backups keep what they hold until they are recycled or removed, and "
    "its planner's statistics (pg_statistic) parts of texts until the tables are analysed again."
)
NOT_DONE = (
    "{} could not be vacuumed: the table was locked for too long, the disk is full, or this role may not do it. "
    "Erase again, or have the owner of the tables run VACUUM FULL."
)
PATIENCE = "30s"
"""Maximum wait for the lock on a table."""

STILL_SEEN = (
    "A transaction that began before the erasure still sees removed rows of {}; they stay until it ends and the tables "
    "are vacuumed again."
)
REFUSAL = "not vacuumed"
_REFUSED = re.compile(f"{REFUSAL}|permission denied to|only .* can vacuum")
_UNREMOVABLE = re.compile(r"(\d+) (?:are dead but not yet removable|dead row versions cannot be removed yet)")


def scrub_tables(connection: psycopg.Connection[Any], tables: Sequence[str], *, compact: bool) -> Sequence[str]:
    """Vacuum the tables; return where removed bytes may remain. Must run outside a transaction."""
    refused, seen = [], []
    connection.execute(sql.SQL("SET lock_timeout = {}").format(PATIENCE))
    try:
        for table in tables:
            notices = _vacuum(connection, table, compact=compact)
            if any(_REFUSED.search(each) for each in notices):
                refused.append(table)
            if any(int(count) for each in notices for count in _UNREMOVABLE.findall(each)):
                seen.append(table)
    finally:
        connection.execute("RESET lock_timeout")
    left = [NOT_DONE.format(", ".join(refused))] if refused else []
    left += [STILL_SEEN.format(", ".join(seen))] if seen else []
    return [*left, *(() if compact and not refused else (FREE_SPACE,)), LOG]


def _vacuum(connection: psycopg.Connection[Any], table: str, *, compact: bool) -> Sequence[str]:
    """Vacuum one table; return the server's notices, or `REFUSAL`."""
    notices: list[str] = []

    def collect(diagnostic: psycopg.errors.Diagnostic) -> None:
        notices.extend(each for each in (diagnostic.message_primary, diagnostic.message_detail) if each)

    connection.add_notice_handler(collect)
    try:
        statement = sql.SQL("VACUUM (FULL, VERBOSE) {}" if compact else "VACUUM (VERBOSE) {}")
        connection.execute(statement.format(sql.Identifier(table)))
    except (errors.LockNotAvailable, errors.QueryCanceled, errors.DiskFull, errors.InsufficientPrivilege):
        # Not an error: the rows are erased, and the receipt reports that bytes may remain.
        return [REFUSAL]
    finally:
        connection.remove_notice_handler(collect)
    return notices


READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

PROPAGATE = "SET LOCAL citus.propagate_set_commands = 'local'"
"""Makes Citus send `SET LOCAL` to its workers; without Citus it has no effect. Each transaction sets it, because a
pooler may give the next one another connection."""

INDEX_LOCK_TIMEOUT_MS = 1_000

NO_INDEX = (
    "The approximate index for large knowledge is missing and cannot be created now (%s); searches return the same, "
    "only slower. `wellkept doctor` shows the statement that creates it."
)


READ_BROKE = "The connection to the database broke during this read. Try again in a moment."
WRITE_BROKE = (
    "The connection to the database broke before this change was committed, so it was not stored; earlier changes of "
    "the same call may be. Try again in a moment."
)
COMMIT_BROKE = (
    "The connection to the database broke while this change was committed, so it may be stored or not. Check before "
    "you try again; a request that is repeated with its Idempotency-Key writes nothing twice."
)


class PostgresEngine:
    """One PostgreSQL database with pgvector."""

    name = "postgres"
    has_single_writer = False
    content_folder = None

    def __init__(
        self,
        url: str,
        *,
        busy_timeout: float,
        pool_size: int,
        prepare_threshold: int,
        index_cache_bytes: int,
        owner_url: str = "",
    ) -> None:
        """Connect, create or upgrade the schema, and check that row-level security is effective.

        A role that does not own the tables changes no schema; `owner_url` is the role that does.

        Raises: StoreError, SchemaMismatch.
        """
        self._templates = {name: as_pyformat(sql) for name, sql in load_queries(self.name).items()}
        self._queries = self._templates
        self._owner_url = owner_url
        self._pid = os.getpid()
        self._snapshots: Snapshots[PostgresUnit] = Snapshots()
        self._cut_off: set[str] = set()  # tenants of a cluster whose node did not answer the last time
        self._link = PostgresLink(
            url, busy_timeout=busy_timeout, pool_size=pool_size, prepare_threshold=prepare_threshold
        )
        try:
            with translate_admin_errors(), self._link.connect() as connection:
                check_role(connection)
                prepare_schema(connection, owner_url=owner_url)
                check_tables(connection)
            with translate_errors():
                self._link.open()
        except BaseException:
            self._link.close()
            raise
        self._nodes = ClusterNodes(self._connection)
        self.index = PostgresIndex(self.read, max_bytes=index_cache_bytes)
        self._link.on_other_server = self.index.clear

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        shared = self._snapshots.find(tenant)
        if shared is None:
            return self._run(tenant, work, begin=(READING,))
        with translate_errors():
            shared.begin_again_if_failed()
            try:
                return work(shared)
            except psycopg.OperationalError as error:
                if is_from_node(error):
                    self._cut_off.add(tenant)
                    shared.is_cut_off = True
                raise

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        def read_all(unit: Unit) -> T:
            assert isinstance(unit, PostgresUnit)
            with self._snapshots.share(unit):
                done = work()
            unit.end_if_failed()
            return done

        if self._snapshots.find(tenant) is not None:
            return work()
        # BEGIN takes no snapshot; the first query does.
        return self._run(tenant, read_all, begin=(READING,), then=("SELECT 1",))

    def write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        return self._run(tenant, work, begin=(WRITING,), is_write=True)

    def use_embedder(self, embedder: RegisteredEmbedder) -> None:
        # The approximate index has a fixed vector length and serves only statements that name the same length.
        self._queries = {name: _fill_in(sql, embedder) for name, sql in self._templates.items()}
        self.index.use(embedder)
        if self.own_indexes(embedder):
            with translate_errors(), self._connection() as connection:
                self._make_chunk_index(connection)

    def own_indexes(self, embedder: RegisteredEmbedder) -> Mapping[str, str]:
        if not 0 < embedder.dimensions <= MAX_INDEXED_DIMENSIONS:
            return {}
        makes_it = _fill_in(self._templates["make_nearest_index"], embedder)
        return {f"chunk_index_nearest_{embedder.id}": " ".join(makes_it.split())}

    def _make_chunk_index(self, connection: Connection) -> None:
        """Make the approximate index of passages if there is none, and this role or the owner's may.

        The statements return the same rows without the index, only slower.
        """
        row = PostgresUnit(connection, self._queries, "", link=self._link).one("find_nearest_index")
        if row is None or row[0]:
            return
        is_owner = bool(row[1])
        if not is_owner and not self._owner_url:
            # By design of whoever runs the database; `doctor` says it, too.
            log.info(NO_INDEX, "this role does not own the tables")
            return
        try:
            with nullcontext(connection) if is_owner else connect_once(self._owner_url) as owner, owner.transaction():
                owner.execute(PROPAGATE)
                owner.execute(f"SET LOCAL lock_timeout = {INDEX_LOCK_TIMEOUT_MS}")
                owner.execute(self._queries["make_nearest_index"])
        except errors.LockNotAvailable:
            log.warning(NO_INDEX, "others hold a lock on the table")
        except (errors.UniqueViolation, errors.DuplicateTable):
            # Another server created it at the same moment.
            return

    def forget(self, tenant: str) -> None:
        self.index.forget(tenant)

    def scrub(self, tables: Sequence[str], *, compact: bool | None) -> Sequence[str]:
        with translate_errors(), self._connection() as connection:
            return scrub_tables(connection, tables, compact=bool(compact))

    def back_up(self, file: IO[bytes], *, scratch: Path, now: datetime, progress: Progress | None) -> BackupReport:
        raise Invalid(
            "This store is on PostgreSQL, which has its own backups: run pg_dump as a role that bypasses row-level "
            "security, or `wellkept data export FILE --tenant ID` for each tenant (docs/operations.md)."
        )

    def problems(self) -> Sequence[str]:
        """Return current problems as sentences, without asking the database."""
        cut_off = len(self._cut_off)
        away = f"A node of the database cluster is away; tenants that cannot be served: {cut_off}."
        return [*self._nodes.problems(), *([away] if cut_off else [])]

    def check_nodes(self) -> Sequence[ClusterNode]:
        return self._nodes.check()

    def close(self) -> None:
        # A forked child would close its parent's connections.
        if os.getpid() == self._pid:
            self.index.close()
            self._link.close()

    def _connection(self) -> AbstractContextManager[Connection]:
        # Two processes on one connection would read each other's answers.
        if os.getpid() != self._pid:
            raise StoreError(FORKED)
        return self._link.connection()

    def _run(
        self,
        tenant: str,
        work: Callable[[Unit], T],
        *,
        begin: Sequence[str],
        then: Sequence[str] = (),
        is_write: bool = False,
    ) -> T:
        """Run `work` in a transaction.

        A connection that broke while it was idle, as all do when the server restarts, is found before anything is done.
        Then the next one is tried.
        """
        # Registries belong to no tenant and are read without one.
        if tenant:
            begin = (*begin, PROPAGATE, f"SET LOCAL {TENANT_SETTING} = '{check_tenant(tenant)}'", *then)
        with translate_errors():
            for _ in range(self._link.pool_size + 1):
                # An error that leaves this block rolls the transaction back.
                with self._connection() as connection:
                    unit = None
                    try:
                        check_alive(connection)
                        with open_pipeline(connection) if is_write else nullcontext() as pipeline:
                            begun = PostgresUnit(
                                connection, self._queries, tenant, link=self._link, begin=begin, pipeline=pipeline
                            )
                            begun.begin()
                            unit = begun
                            done = work(unit)
                            unit.commit()
                        unit.check_committed()
                        if not unit.is_cut_off:
                            self._cut_off.discard(tenant)
                        return done
                    except psycopg.OperationalError as error:
                        if not connection.broken and not is_shutdown(error):
                            if is_from_node(error):
                                self._cut_off.add(tenant)
                            raise
                        if unit is not None:
                            broke = COMMIT_BROKE if unit.is_ending else WRITE_BROKE if is_write else READ_BROKE
                            raise build_outage(broke) from error
            raise StoreAway("The PostgreSQL server hangs up on every connection; check its log.")


def _fill_in(sql: str, embedder: RegisteredEmbedder) -> str:
    return sql.replace("{dimensions}", str(embedder.dimensions)).replace("{embedder_id}", str(embedder.id))
