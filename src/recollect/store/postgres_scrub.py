"""Leaving no bytes of removed rows in PostgreSQL's files, as far as an ordinary role can.

A plain VACUUM lets the space of removed rows be used again, and until then their bytes stay on the pages. VACUUM FULL
writes the tables anew; nobody can use a table meanwhile, neither this tenant nor another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

FREE_SPACE = (
    "PostgreSQL keeps the bytes of removed rows on the pages of its tables until it uses that space again; compact "
    "writes the tables anew."
)
LOG = "PostgreSQL's write-ahead log, replicas and backups keep what they hold until they are recycled or removed."
NOT_ALLOWED = "This role may not vacuum {}; have the owner of the tables run VACUUM FULL."
STILL_SEEN = (
    "A transaction that began before the erasure still sees removed rows of {}; they stay until it ends and the tables "
    "are vacuumed again."
)
_UNREMOVABLE = re.compile(r"(\d+) (?:are dead but not yet removable|dead row versions cannot be removed yet)")


def scrubbed(connection: psycopg.Connection[Any], tables: Sequence[str], *, compact: bool) -> Sequence[str]:
    """Vacuum these tables; where bytes may be left. No transaction may be open."""
    refused, seen = [], []
    for table in tables:
        told = _vacuumed(connection, table, compact=compact)
        if any("permission denied" in each or ("only" in each and "can vacuum" in each) for each in told):
            refused.append(table)
        if any(int(count) for each in told for count in _UNREMOVABLE.findall(each)):
            seen.append(table)
    left = [NOT_ALLOWED.format(", ".join(refused))] if refused else []
    left += [STILL_SEEN.format(", ".join(seen))] if seen else []
    return [*left, *(() if compact and not refused else (FREE_SPACE,)), LOG]


def _vacuumed(connection: psycopg.Connection[Any], table: str, *, compact: bool) -> Sequence[str]:
    told: list[str] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        told.extend(each for each in (diagnostic.message_primary, diagnostic.message_detail) if each)

    connection.add_notice_handler(note)
    try:
        how = sql.SQL("VACUUM (FULL, VERBOSE) {}" if compact else "VACUUM (VERBOSE) {}")
        connection.execute(how.format(sql.Identifier(table)))
    finally:
        connection.remove_notice_handler(note)
    return told
