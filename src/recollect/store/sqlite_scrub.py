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
    is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
    return [*left, READERS] if is_busy else left


def _is_compacted(connection: apsw.Connection) -> bool:
    """What was asked for is done already, so a disk without room for a copy is told and no failure."""
    try:
        connection.execute("VACUUM")
    except (apsw.FullError, apsw.BusyError, apsw.LockedError):
        return False
    return True
