"""Transactions on PostgreSQL: a time limit for reads, and writes in pipeline mode.

In pipeline mode a statement is sent at once, and the server answers when somebody asks for a result. A transaction that
asks once takes two round trips: to that result, and to the end of the commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.generators import fetch
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from wellkept.deadline import check_read_limit, read_seconds_left
from wellkept.errors import StoreError
from wellkept.store.conditions import PLACE, Clause
from wellkept.store.engine import Row
from wellkept.store.postgres.link import Connection, PostgresLink
from wellkept.store.queries import as_pyformat, peek, select

TIMEOUT_SLACK = 0.1
"""Seconds by which a statement timeout may be too long before a new one is set, which costs a round trip."""

SENT_AS_BYTES = frozenset(
    {"weigh_entries", "entries_where", "sample_entries", "memory_index_after", "memory_index_rows"}
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
