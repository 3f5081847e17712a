"""Transactions on PostgreSQL, with a time limit for reads."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from recollect.deadline import check_read_limit, read_seconds_left
from recollect.store.conditions import PLACE, Clause
from recollect.store.engine import Row
from recollect.store.postgres.link import Connection, PostgresLink
from recollect.store.queries import as_pyformat, peek, select

TIMEOUT_SLACK = 0.1
"""Seconds by which a statement timeout may be too long before a new one is set, which costs a round trip."""

SENT_AS_BYTES = frozenset(
    {"weigh_entries", "entries_where", "sample_entries", "memory_index_after", "memory_index_rows"}
    | {"memory_index_versions", "chunk_index_after", "chunk_index_rows", "chunk_index_versions"}
)
"""Statements that return bytes, which are twice as long in the text format."""


class PostgresUnit:
    """One transaction."""

    __slots__ = ("_begin", "_connection", "_link", "_queries", "_timeout", "began", "is_cut_off", "tenant")

    def __init__(
        self, connection: Connection, queries: Mapping[str, str], tenant: str, *, link: PostgresLink, begin: str = ""
    ) -> None:
        self._connection = connection
        self._link = link
        self._queries = queries
        self._begin = begin
        self._timeout: float | None = None  # the statement timeout in force, in seconds
        self.tenant = tenant
        self.began = time.monotonic()
        self.is_cut_off = False  # a node of the cluster did not answer

    def begin(self) -> None:
        """Begin the transaction, in one round trip."""
        check_read_limit()
        self.began = time.monotonic()
        self._timeout = read_seconds_left()
        limit = "" if self._timeout is None else f"; {_timeout_statement(self._timeout)}"
        self._send(f"{self._begin}{limit}")

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
        left = read_seconds_left()
        prepare = None if values is not None else False
        if left is None:
            return self._connection.execute(sql, values, prepare=prepare, binary=binary)
        with self._link.awaiting(self._connection, within=left):
            return self._connection.execute(sql, values, prepare=prepare, binary=binary)

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
        return self._connection.execute(select(self._queries, name, values), values).rowcount

    def run_many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        for first, all_rows in peek(rows):
            with self._connection.cursor() as cursor:
                cursor.executemany(select(self._queries, name, first), all_rows)


def _timeout_statement(seconds: float) -> str:
    # 0 would mean that there is no limit.
    return f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}"
