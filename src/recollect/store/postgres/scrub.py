"""Leaving no bytes of removed rows in PostgreSQL's files, as far as an ordinary role can.

A plain VACUUM lets the space of removed rows be used again, and until then their bytes stay on the pages. VACUUM FULL
writes the tables anew; nobody can use a table meanwhile, neither this tenant nor another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import errors, sql

FREE_SPACE = (
    "PostgreSQL keeps the bytes of removed rows on the pages of its tables until it uses that space again; compact "
    "writes the tables anew."
)
LOG = (
    "PostgreSQL's write-ahead log, replicas and backups keep what they hold until they are recycled or removed, and "
    "its planner's statistics (pg_statistic) parts of texts until the tables are analysed again."
)
NOT_DONE = (
    "{} could not be vacuumed: somebody was using the table for too long, the disk is full, or this role may not. "
    "Erase again, or have the owner of the tables run VACUUM FULL."
)
PATIENCE = "30s"
"""How long a table is waited for that somebody else is using."""

STILL_SEEN = (
    "A transaction that began before the erasure still sees removed rows of {}; they stay until it ends and the tables "
    "are vacuumed again."
)
REFUSAL = "not vacuumed"
_REFUSED = re.compile(f"{REFUSAL}|permission denied to|only .* can vacuum")
_UNREMOVABLE = re.compile(r"(\d+) (?:are dead but not yet removable|dead row versions cannot be removed yet)")


def scrubbed(connection: psycopg.Connection[Any], tables: Sequence[str], *, compact: bool) -> Sequence[str]:
    """Vacuum these tables; where bytes may be left. No transaction may be open."""
    undone, seen = [], []
    connection.execute(sql.SQL("SET lock_timeout = {}").format(PATIENCE))
    try:
        for table in tables:
            told = _vacuumed(connection, table, compact=compact)
            if any(_REFUSED.search(each) for each in told):
                undone.append(table)
            if any(int(count) for each in told for count in _UNREMOVABLE.findall(each)):
                seen.append(table)
    finally:
        connection.execute("RESET lock_timeout")
    left = [NOT_DONE.format(", ".join(undone))] if undone else []
    left += [STILL_SEEN.format(", ".join(seen))] if seen else []
    return [*left, *(() if compact and not undone else (FREE_SPACE,)), LOG]


def _vacuumed(connection: psycopg.Connection[Any], table: str, *, compact: bool) -> Sequence[str]:
    told: list[str] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        told.extend(each for each in (diagnostic.message_primary, diagnostic.message_detail) if each)

    connection.add_notice_handler(note)
    try:
        how = sql.SQL("VACUUM (FULL, VERBOSE) {}" if compact else "VACUUM (VERBOSE) {}")
        connection.execute(how.format(sql.Identifier(table)))
    except (errors.LockNotAvailable, errors.QueryCanceled, errors.DiskFull, errors.InsufficientPrivilege):
        return [REFUSAL]  # what was asked for is done: the rows are gone, and the receipt tells that bytes may be left
    finally:
        connection.remove_notice_handler(note)
    return told
