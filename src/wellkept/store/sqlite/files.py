"""Files of an embedded store and their permissions."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from wellkept.errors import StoreError
from wellkept.store.notes.disk import OWNER_ONLY_FILE, make_private
from wellkept.store.tables.details import FOLDER_SUFFIX

WAL_SUFFIX = "-wal"

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
