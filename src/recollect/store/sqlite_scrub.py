"""Leaving no bytes of removed rows in SQLite's files.

`secure_delete` writes zeros over a removed row, but not over what the tree moved from page to page while it grew: names
in an index were found on pages they had left long ago. So the file is written anew, and then the log behind it emptied.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

NOT_COMPACTED = (
    "The database file was not written anew: copies of names may be left in free parts of its pages until somebody "
    "erases again, with compact."
)
READERS = (
    "Somebody was reading all the while, so the write-ahead log could not be emptied: it may hold removed text until "
    "the last reader is done and something is written, or all have closed the store."
)


def scrubbed(connection: apsw.Connection, *, compact: bool) -> Sequence[str]:
    """Write the file anew and empty the log; where bytes may be left. No transaction may be open."""
    left = [] if compact and _is_compacted(connection) else [NOT_COMPACTED]
    return left if _is_emptied(connection) else [*left, READERS]


def _is_compacted(connection: apsw.Connection) -> bool:
    """What was asked for is done already, so a disk without room for a copy is told and no failure."""
    try:
        connection.execute("VACUUM")
    except (apsw.FullError, apsw.BusyError, apsw.LockedError, apsw.IOError):
        return False
    return True


def _is_emptied(connection: apsw.Connection) -> bool:
    try:
        ((is_busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except (apsw.BusyError, apsw.LockedError):  # another process is at it
        return False
    return not is_busy
