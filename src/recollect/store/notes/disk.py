"""The few calls whose order decides what a crash leaves behind, and how their failures are told."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import DiskFull, StoreError

if sys.platform != "win32":
    import fcntl

FOLDERS = (".aegis", "memory")
FILE_NAME = "memories.jsonl"
LOCK_NAME = "memories.lock"

OWNER_ONLY_FILE = 0o600
OWNER_ONLY_FOLDER = 0o700

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(frozen=True, slots=True)
class Place:
    """Paths of the notes file, its lock and its temporary file. None of them is reached through a symbolic link."""

    file: Path
    lock: Path
    temp: Path
    folders: tuple[Path, ...]  # those that may have to be made, innermost first, and the one above them

    @property
    def folder(self) -> Path:
        return self.file.parent


def place_in(workspace: Path) -> Place:
    """Return the paths of a workspace's notes. The workspace itself may be reached through a link.

    Raises: OSError (ELOOP) if a folder inside the workspace is a symbolic link: a cloned repository could point it at
    any file of its user.
    """
    top = Path(os.path.realpath(workspace))
    folder = top
    for name in FOLDERS:
        folder /= name
        if folder.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    file = folder / FILE_NAME
    return Place(file, folder / LOCK_NAME, folder / f"{FILE_NAME}.tmp", (folder, folder.parent, top))


class Disk:
    """Every call that changes a file or a name, or makes a change last."""

    def open(self, path: Path, flags: int) -> int:
        """Open a file that no other program inherits. A pipe in its place does not block, a link is refused."""
        return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, OWNER_ONLY_FILE)

    def close(self, fd: int) -> None:
        os.close(fd)

    def write(self, fd: int, content: bytes) -> int:
        """How many bytes were written: fewer than given when the disk is full."""
        return os.write(fd, content)

    def overwrite(self, fd: int, content: bytes) -> int:
        """The same, from the first byte of the file on."""
        return os.pwrite(fd, content, 0)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        if sys.platform == "darwin":
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # there, fsync stops at the drive's own cache
        else:
            os.fsync(fd)

    def sync_content(self, fd: int) -> None:
        """Without times and rights, which is cheaper where the size stays the same."""
        if sys.platform == "darwin":
            self.sync(fd)
        else:
            os.fdatasync(fd)

    def sync_folder(self, path: Path) -> None:
        """Make names last: those made, renamed or removed in this folder."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some network file systems cannot, and need not
                raise
        finally:
            os.close(fd)

    def make_folder(self, path: Path) -> None:
        os.mkdir(path, OWNER_ONLY_FOLDER)

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        os.unlink(path)


def write_all(disk: Disk, fd: int, content: bytes) -> None:
    """Raises: OSError when the disk is full."""
    if disk.write(fd, content) != len(content):
        raise full_disk()


def read_all(fd: int) -> bytes:
    """The whole file, as long as it was when reading began."""
    size, parts = regular(fd).st_size, []
    at = 0
    while at < size and (part := os.pread(fd, size - at, at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def regular(fd: int) -> os.stat_result:
    """Raises: OSError for a folder, a pipe or a device."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return status


def is_at(fd: int, path: Path) -> bool:
    """Whether `path` still names the open file."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextlib.contextmanager
def told(path: Path, *, doing: str) -> Iterator[None]:
    """Raises: StoreError for every OSError inside."""
    try:
        yield
    except OSError as error:
        kind: type[StoreError] = StoreError
        if error.errno in _FULL:
            kind, advice = DiskFull, "The disk is full; free some space and try again."
        elif error.errno == errno.ELOOP:
            advice = "It, or its folder, is a symbolic link, and links inside a workspace are not followed. Replace it."
        elif error.errno in _FORBIDDEN:
            advice = "Give this user the right to it and to its folder."
        else:
            advice = f"The system says: {error.strerror or error}."
        raise kind(f"The notes file {path} cannot be {doing}. {advice}") from error
