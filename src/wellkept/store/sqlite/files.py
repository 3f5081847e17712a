"""Files of an embedded store: their permissions, and the folder of contents that belongs to a database.

Long texts are kept in a folder beside the database. A marker file in it holds the id of the database that wrote them,
so that an empty or different database never sweeps them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wellkept.errors import StoreError
from wellkept.store.notes.disk import OWNER_ONLY_FILE, make_private

if TYPE_CHECKING:
    import apsw

MARKER = "store-id"
WAL_SUFFIX = "-wal"
CONTENTS_SUFFIX = ".blobs"

EMPTY = (
    "The database {path} is missing or empty, but {beside} still holds texts of a store. Restore the database from a "
    "backup. To start a new store here, move {beside} away."
)
FOREIGN = (
    "The texts in {folder} belong to another database than {path}. Restore the database they belong to, or move the "
    "folder away. If they do belong together, delete {folder}/store-id."
)


def create_database_file(path: Path, contents: Path) -> None:
    """Create the database's file and folder with owner-only permissions; leave existing ones unchanged.

    Raises: StoreError if the file is missing or empty while its contents or its write-ahead log are not.
    """
    path = Path(os.path.realpath(path))
    log = Path(f"{path}{WAL_SUFFIX}")
    try:
        make_private(path.parent)
        # Check these before the database: another process may be creating all of them, the database first.
        leftovers = [
            each for each, is_filled in ((contents, has_contents(contents)), (log, _file_size(log) > 0)) if is_filled
        ]
        if _file_size(path):
            return
        if leftovers:
            raise StoreError(EMPTY.format(path=path, beside=leftovers[0]))
        with contextlib.suppress(FileExistsError):
            _create_empty(path)
    except OSError as error:
        raise StoreError(f"The database {path} cannot be created: {error.strerror}.") from error


def claim_contents(connection: apsw.Connection, path: Path, contents: Path) -> int:
    """Return the id of this database, and check that the folder beside it does not belong to another one.

    Raises: StoreError.
    """
    marker_id = read_marker(contents)
    store_id = _read_or_create_id(connection, preferred=marker_id)
    if marker_id not in (None, store_id):
        raise StoreError(FOREIGN.format(path=path, folder=contents))
    if contents.is_dir():
        write_marker(contents, store_id)
    return store_id


def has_contents(folder: Path) -> bool:
    """Return True if the folder holds the text of any detail."""
    return next(folder.glob("*/*.zst"), None) is not None


def read_marker(folder: Path) -> int | None:
    try:
        return int((folder / MARKER).read_text("ascii"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise StoreError(f"{folder / MARKER} cannot be read: {error.strerror}.") from error


def write_marker(folder: Path, store_id: int) -> None:
    """Write the id of the folder's database, unless there is one. Raises: OSError."""
    marker = folder / MARKER
    if marker.exists():
        return
    draft = folder / f"{MARKER}.{secrets.token_hex(8)}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY_FILE), "w") as file:
        file.write(f"{store_id}\n")
        file.flush()
        os.fsync(file.fileno())
    # Renaming is atomic, and all processes that open this database write the same id.
    os.replace(draft, marker)


def find_exposed(path: Path) -> Sequence[Path]:
    """Return the files and folders of a store that other users of this machine may read or write."""
    return [each for each in _iter_files(path) if each.exists() and each.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]


def _file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _iter_files(path: Path) -> Iterator[Path]:
    yield from (Path(f"{path}{suffix}") for suffix in ("", WAL_SUFFIX, "-shm"))
    yield Path(f"{path}{CONTENTS_SUFFIX}")


def _create_empty(path: Path) -> None:
    """Create an empty file without opening it: closing it would release SQLite's locks on it in this process."""
    try:
        os.mknod(path, OWNER_ONLY_FILE | stat.S_IFREG)
    except PermissionError:
        # macOS reserves mknod for root.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, OWNER_ONLY_FILE))


def _read_or_create_id(connection: apsw.Connection, *, preferred: int | None) -> int:
    """Return the id in the file's header (`user_version`), which copies of the file share.

    A database of an earlier release has none: it gets the id of its contents' marker, or a new one.
    """
    if found := int(connection.pragma("user_version")):
        return found
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been first.
        if not int(connection.pragma("user_version")):
            connection.pragma("user_version", preferred or secrets.randbelow(2**31 - 1) + 1)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return int(connection.pragma("user_version"))
