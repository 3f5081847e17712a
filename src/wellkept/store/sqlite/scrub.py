"""Remove the bytes of deleted rows from SQLite's files, in steps that let writers in between.

`secure_delete` writes zeros over a deleted row and over freed pages, but not over cells that the tree has moved to
another page: their old copies stay in the unused part of the page they left. `VACUUM` removes them by rewriting the
whole file, which blocks all writers. Here the unused parts are overwritten in place instead:

- Pages are scanned without a lock, to find those whose unused parts are not zero.
- Each step empties the write-ahead log, begins a write transaction and checks that the log is still empty. From then
  on no other process can append to the log, and a checkpoint has nothing to copy, so no other process writes to the
  database file.
- Only bytes that no cell uses change, so a reader sees the same page before, after and while it is written, and a
  crash in the middle leaves a valid page.
- The step commits a dummy change on a separate connection. That makes every other connection drop its cached pages,
  which would otherwise bring the old bytes back with the next write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import apsw

PAGES_PER_STEP = 512
PAGES_PER_READ = 256
TRIES = 20
"""Maximum number of attempts at each step."""

HEADER_BYTES = 100  # before the tree of page 1
LEAF_HEADER, INTERIOR_HEADER = 8, 12
TREE_PAGES = {2: INTERIOR_HEADER, 5: INTERIOR_HEADER, 10: LEAF_HEADER, 13: LEAF_HEADER}
"""Header length of a tree page by its first byte, which is the type.

Overflow and free pages begin with a page number, whose first byte is 0 below `MAX_PAGES` (64 GiB with pages of 4 KiB).
"""

NOT_SCRUBBED = (
    "Unused parts of the database file were not overwritten: copies of removed text may remain in them until the next "
    "erasure."
)
READERS = (
    "The write-ahead log could not be emptied because of concurrent readers: it may hold removed text until the last "
    "reader is done and something is written, or until all have closed the store."
)

PATIENCE = 200
"""Milliseconds a step waits for readers of the log while it blocks writers."""

MAX_PAGES = 2**24
"""Page count from which a page number may begin with the type byte of a tree page."""

KeepOut = Callable[[], AbstractContextManager[None]]
"""Context manager that blocks the other writers of this process."""


def compact(connection: apsw.Connection) -> Sequence[str]:
    """Rewrite the whole file and empty the log; return where removed bytes may remain."""
    try:
        connection.execute("VACUUM")
    except (apsw.FullError, apsw.BusyError, apsw.LockedError, apsw.IOError):
        return [NOT_SCRUBBED]
    return [] if empty_log(connection) else [READERS]


def empty_log(connection: apsw.Connection) -> bool:
    """Copy the write-ahead log into the database and truncate it; return True if that succeeded."""
    try:
        ((is_busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except (apsw.BusyError, apsw.LockedError):
        # Another process is running a checkpoint.
        return False
    return not is_busy


def overwrite_unused(connection: apsw.Connection, path: Path, keep_out: KeepOut) -> Sequence[str]:
    """Overwrite unused bytes step by step; return where removed bytes may remain.

    `connection` must be used for nothing else. A file with pages of uncertain type is rewritten instead.
    """
    connection.set_busy_timeout(PATIENCE)
    if not _try_repeatedly(lambda: empty_log(connection), keep_out):
        return [NOT_SCRUBBED, READERS]
    # Open through SQLite: closing a descriptor of our own would release its locks on the file in this process.
    file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        pages = _Pages(file, int(connection.pragma("page_size")))
        if not pages.are_known:
            with keep_out():
                return compact(connection)
        unclean = list(pages.find_unclean())
        for start in range(0, len(unclean), PAGES_PER_STEP):
            step = partial(_overwrite_step, connection, path, pages, unclean[start : start + PAGES_PER_STEP])
            if not _try_repeatedly(step, keep_out):
                return [NOT_SCRUBBED, READERS]
        if unclean:
            file.xSync(apsw.SQLITE_SYNC_FULL)
    finally:
        file.xClose()
    return [] if _try_repeatedly(lambda: empty_log(connection), keep_out) else [READERS]


def _try_repeatedly(step: Callable[[], bool], keep_out: KeepOut) -> bool:
    """Try a step until it succeeds, letting writers in between; return False if it never did."""
    for _ in range(TRIES):
        with keep_out():
            if step():
                return True
    return False


def _overwrite_step(connection: apsw.Connection, path: Path, pages: _Pages, numbers: Sequence[int]) -> bool:
    if not empty_log(connection):
        return False
    try:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have written in between.
        if Path(f"{path}-wal").stat().st_size:
            return False
        for number in numbers:
            pages.overwrite_unused(number)
        connection.execute("UPDATE schema_migrations SET name = name WHERE number = 1")
        connection.execute("COMMIT")
    except (apsw.BusyError, apsw.LockedError):
        return False
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return True


class _Pages:
    """Pages of a database file, read and written bypassing SQLite's cache."""

    def __init__(self, file: apsw.VFSFile, size: int) -> None:
        header = file.xRead(HEADER_BYTES, 0)
        self._file = file
        self._size = size
        self._usable = size - header[20]
        self._count = file.xFileSize() // size
        # With auto_vacuum (a root page in bytes 52 to 55) some pages hold pointers and begin like tree pages.
        self.are_known = self._count < MAX_PAGES and not any(header[52:56])

    def find_unclean(self) -> Iterator[int]:
        """Yield the pages, counted from 0, whose unused parts are not zero."""
        for first in range(0, self._count, PAGES_PER_READ):
            run = self._file.xRead(PAGES_PER_READ * self._size, first * self._size)
            for at in range(0, len(run) - self._size + 1, self._size):
                number = first + at // self._size
                if clean_page(run[at : at + self._size], is_first=number == 0, usable=self._usable) is not None:
                    yield number

    def overwrite_unused(self, number: int) -> None:
        page = self._file.xRead(self._size, number * self._size)
        cleaned = clean_page(page, is_first=number == 0, usable=self._usable)
        if cleaned is not None:
            self._file.xWrite(cleaned, number * self._size)


def clean_page(page: bytes, *, is_first: bool, usable: int) -> bytes | None:
    """Return the page with zeros in its unused parts, or None if there is nothing to overwrite.

    A tree page begins with its header and an array of two bytes per cell. Cells fill it from the end. Between array
    and cells nothing is used, and neither are the free blocks among the cells.
    """
    start = HEADER_BYTES if is_first else 0
    header = TREE_PAGES.get(page[start])
    if header is None:
        return None
    cells = _read_uint16(page, start + 3)
    # 0 means 65536, which does not fit into two bytes.
    content = _read_uint16(page, start + 5) or 65536
    begin = start + header + 2 * cells
    if not begin <= content <= usable:
        return None
    unused = [(begin, content), *_iter_free_blocks(page, _read_uint16(page, start + 1), usable)]
    if not any(any(page[first:last]) for first, last in unused):
        return None
    cleaned = bytearray(page)
    for first, last in unused:
        cleaned[first:last] = bytes(last - first)
    return bytes(cleaned)


def _iter_free_blocks(page: bytes, block: int, usable: int) -> Iterator[tuple[int, int]]:
    """Yield the range of each free block after its four-byte header (offset of the next block, and length)."""
    while 0 < block <= usable - 4:
        following, length = _read_uint16(page, block), _read_uint16(page, block + 2)
        yield block + 4, min(max(block + length, block + 4), usable)
        # Blocks are in ascending order; anything else is damage, which doctor reports.
        block = following if following > block else 0


def _read_uint16(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 2], "big")
