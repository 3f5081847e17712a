"""Removal of the bytes of deleted rows from PostgreSQL's files, as far as an ordinary role can.

A plain VACUUM makes the space of removed rows reusable, but their bytes stay on the pages until then. VACUUM FULL
rewrites the tables and locks each of them for all tenants meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import errors, sql

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
