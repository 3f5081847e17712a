"""Disk calls of the notes file, its paths, and the translation of OSError into StoreError.

The order of these calls decides what a crash leaves behind, so tests record and interrupt them through `Disk`.

Lock file beside the notes file, which also stores the highest id ever given.

It is a separate file because the notes file is replaced by renaming, and a lock on a file without a name has no effect
on others. The lock file is never renamed. It holds two numbers of fixed width and is always overwritten in place: the
highest id ever given, and the inode of the notes file when its folder was last synced. If the notes file has a
different inode, a process died between renaming and syncing, or another program renamed without syncing. The next
holder of the lock then syncs the folder before anything else.

Adding one note is a single `write` at the end of the file, then fsync. Everything else replaces the file: write a new
one beside it, sync it, rename it over the old one, sync the folder. Programs that ignore the lock may append at any
moment, so each step checks again what it relied on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wellkept.errors import DiskFull, StoreBusy, StoreError

FOLDERS = (".aegis", "memory")
FILE_NAME = "memories.jsonl"
LOCK_NAME = "memories.lock"
CLAIM = "memories.agent"

LOCK_PAUSE = 0.002
"""Seconds between two attempts to take the lock, which others hold for some milliseconds."""

OWNER_ONLY_FILE = 0o600
OWNER_ONLY_FOLDER = 0o700

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(frozen=True, slots=True)
class NotesPaths:
    """Paths of the notes file, its lock file and its temporary file. None of them goes through a symbolic link."""

    file: Path
    lock: Path
    temp: Path
    # Folders that may have to be created, innermost first, then the workspace itself.
    folders: tuple[Path, ...]

    @property
    def folder(self) -> Path:
        return self.file.parent


def find_paths(workspace: Path) -> NotesPaths:
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
    return NotesPaths(file, folder / LOCK_NAME, folder / f"{FILE_NAME}.tmp", (folder, folder.parent, top))


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with access for the owner only. Raises: OSError."""
    # `mkdir(parents=True)` would give the outer folders default permissions.
    for each in (*reversed(folder.parents), folder):
        each.mkdir(OWNER_ONLY_FOLDER, exist_ok=True)


class Disk:
    """Every call that changes a file or a name, or makes a change durable."""

    def open(self, path: Path, flags: int) -> int:
        """Open a file without passing it to child processes, following a link, or blocking on a pipe."""
        return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, OWNER_ONLY_FILE)

    def close(self, fd: int) -> None:
        os.close(fd)

    def write(self, fd: int, content: bytes) -> int:
        """Return the number of bytes written, which is smaller than the content on a full disk."""
        return os.write(fd, content)

    def overwrite(self, fd: int, content: bytes) -> int:
        """Write at the start of the file and return the number of bytes written."""
        return os.pwrite(fd, content, 0)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        if sys.platform == "darwin":
            import fcntl  # Windows has none

            # On macOS, fsync only reaches the cache of the drive.
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fsync(fd)

    def sync_content(self, fd: int) -> None:
        """Sync the content without times and permissions, which is cheaper while the size stays the same."""
        if sys.platform == "darwin":
            self.sync(fd)
        else:
            os.fdatasync(fd)

    def sync_folder(self, path: Path) -> None:
        """Make names durable that were created, renamed or removed in this folder."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            # Some network file systems cannot sync a folder, and do not need to.
            if error.errno != errno.EINVAL:
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
    """Write all of `content`. Raises: OSError when the disk is full."""
    if disk.write(fd, content) != len(content):
        raise disk_full_error()


def read_all(fd: int) -> bytes:
    """Read the whole file, up to the size it had at the start."""
    size, parts = check_regular(fd).st_size, []
    at = 0
    while at < size and (part := os.pread(fd, size - at, at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def check_regular(fd: int) -> os.stat_result:
    """Return the status of an open regular file. Raises: OSError for a folder, a pipe or a device."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return status


def is_at(fd: int, path: Path) -> bool:
    """Return True if `path` still names the open file."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def disk_full_error() -> OSError:
    """Return the error of a full disk, for writes that were cut short without one."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextlib.contextmanager
def translate_os_errors(path: Path, *, action: str) -> Iterator[None]:
    """Turn every OSError into a StoreError that names the file and the fix. Raises: StoreError."""
    try:
        yield
    except OSError as error:
        kind: type[StoreError] = StoreError
        if error.errno in _FULL:
            kind, advice = DiskFull, "The disk is full; free some space and try again."
        elif error.errno == errno.ELOOP:
            advice = "It, or its folder, is a symbolic link, and links inside a workspace are not followed. Replace it."
        elif error.errno in _FORBIDDEN:
            advice = "Give this user access to it and to its folder."
        else:
            advice = f"The system says: {error.strerror or error}."
        raise kind(f"The notes file {path} cannot be {action}. {advice}") from error


_CONTENT = re.compile(rb"([0-9]{18}) ([0-9]{20})\n")
_LENGTH = 18 + 1 + 20 + 1


class LockFile:
    """The lock file while this process holds the lock."""

    def __init__(self, disk: Disk, fd: int, paths: NotesPaths) -> None:
        """Read the lock file, and clean up if the previous holder died."""
        self._disk, self._fd, self._paths = disk, fd, paths
        found = _CONTENT.fullmatch(os.pread(fd, _LENGTH + 1, 0))
        self._highest, self._inode = (int(found[1]), int(found[2])) if found else (0, 0)
        if not found:
            # The lock file is new or damaged, so the folders may be new as well, and not synced yet.
            for folder in paths.folders:
                disk.sync_folder(folder)
            disk.truncate(fd, 0)
            self._write()
        with contextlib.suppress(FileNotFoundError):
            disk.remove(paths.temp)
        self.sync_name()

    @property
    def highest(self) -> int:
        """The highest id ever given."""
        return self._highest

    def reserve(self, highest: int) -> None:
        """Record durably that ids up to this one are used."""
        if highest > self._highest:
            self._highest = highest
            self._write()
            self._disk.sync_content(self._fd)

    def sync_name(self) -> None:
        """Make durable which file the name of the notes file points to."""
        try:
            inode = os.stat(self._paths.file).st_ino
        except FileNotFoundError:
            inode = 0
        if inode != self._inode:
            self._disk.sync_folder(self._paths.folder)
            self._inode = inode
            # Needs no sync: after a power cut, the name that is on the disk is the one that counts.
            self._write()

    def _write(self) -> None:
        content = b"%018d %020d\n" % (self._highest, self._inode)
        if self._disk.overwrite(self._fd, content) != len(content):
            raise disk_full_error()


@contextlib.contextmanager
def hold_lock(paths: NotesPaths, disk: Disk, *, timeout: float) -> Iterator[LockFile]:
    """Exclude every other process and thread that takes the lock.

    Raises: OSError; StoreBusy when the lock is not free within `timeout` seconds.
    """
    import portalocker

    fd = _acquire(paths, disk, timeout)
    try:
        yield LockFile(disk, fd, paths)
    finally:
        # Closing is not enough: a process forked meanwhile shares the descriptor.
        portalocker.unlock(fd)
        disk.close(fd)


def read_highest(paths: NotesPaths) -> int:
    """Return the highest id in the lock file, without waiting for the lock.

    Raises: OSError, also for a pipe or a device, which could be read for ever.
    """
    try:
        fd = os.open(paths.lock, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        check_regular(fd)
        found = _CONTENT.fullmatch(os.pread(fd, _LENGTH + 1, 0))
    finally:
        os.close(fd)
    return int(found[1]) if found else 0


def _acquire(paths: NotesPaths, disk: Disk, timeout: float) -> int:
    while True:
        fd = _open(paths, disk)
        if not _lock(fd, timeout):
            disk.close(fd)
            raise StoreBusy(f"Another program has held {paths.lock} for {timeout:g} seconds; try again, or end it.")
        if is_at(fd, paths.lock):
            return fd
        # The lock file was deleted or replaced while we waited; that lock has no effect on others.
        disk.close(fd)


def _open(paths: NotesPaths, disk: Disk) -> int:
    try:
        fd = disk.open(paths.lock, os.O_RDWR | os.O_CREAT)
    except FileNotFoundError:
        for folder in reversed(paths.folders):
            with contextlib.suppress(FileExistsError):
                disk.make_folder(folder)
        fd = disk.open(paths.lock, os.O_RDWR | os.O_CREAT)
    try:
        check_regular(fd)
    except OSError:
        disk.close(fd)
        raise
    return fd


def _lock(fd: int, timeout: float) -> bool:
    """Lock the file; return False if it is not free within `timeout` seconds."""
    import portalocker

    until = time.monotonic() + timeout
    while True:
        try:
            portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.AlreadyLocked:
            if time.monotonic() >= until:
                return False
            time.sleep(LOCK_PAUSE)
        else:
            return True


MAX_TRIES = 20
PATIENT_TRIES = 5
"""Attempts after which a rewrite no longer starts again because of appended lines, but copies them afterwards."""


class ReplacedFile:
    """A notes file that a rewrite replaced, kept open to collect lines that another program still appends to it."""

    def __init__(self, fd: int) -> None:
        self._fd, self._pid = fd, os.getpid()
        self.status = check_regular(fd)
        self.content = read_all(fd)
        self._size = len(self.content)
        self._tail = self.content[self.content.rfind(b"\n") + 1 :]

    def is_unchanged(self, *, may_have_grown: bool) -> bool:
        """Return True if the file holds what was read; with `may_have_grown`, lines after that are allowed."""
        now = os.fstat(self._fd)
        if (now.st_size, now.st_mtime_ns) == (self._size, self.status.st_mtime_ns):
            return True
        return may_have_grown and read_all(self._fd).startswith(self.content)

    def is_at(self, paths: NotesPaths) -> bool:
        """Return True if the file still has its name."""
        return is_at(self._fd, paths.file)

    def has_grown(self) -> bool:
        """Return True if lines were appended. Always False in a forked process: its parent collects them."""
        return os.getpid() == self._pid and os.fstat(self._fd).st_size > self._size

    def carry_over(self, writer: NotesWriter, *, is_last_call: bool = False) -> None:
        """Append late lines to the current file; an incomplete line only on the last call.

        Raises: OSError; the next call tries again.
        """
        if not self.has_grown():
            return
        late = read_all(self._fd)[self._size :]
        if not is_last_call:
            late = late[: late.rfind(b"\n") + 1]
        if late:
            # The rewrite may have read the first half of a line.
            whole = late if late.startswith(b"\n") else self._tail + late
            writer.append(whole.removeprefix(b"\n").removesuffix(b"\n") + b"\n")
            self._size, self._tail = self._size + len(late), b""

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._fd)


class NotesWriter:
    """Writes to the notes file while the lock is held."""

    def __init__(self, disk: Disk, paths: NotesPaths, lock: LockFile) -> None:
        self._disk, self._paths, self.lock = disk, paths, lock

    def read(self) -> bytes:
        """Return the content of the file; empty if there is none."""
        fd = self._open(os.O_RDONLY)
        if fd is None:
            return b""
        try:
            return read_all(fd)
        finally:
            self._disk.close(fd)

    def append(self, lines: bytes) -> None:
        """Append whole lines and sync them. Raises: OSError; nothing was stored."""
        for _ in range(MAX_TRIES):
            fd = self._open(os.O_RDWR | os.O_APPEND)
            if fd is None:
                fd = self._disk.open(self._paths.file, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            try:
                check_regular(fd)
                self._append_to(fd, lines)
                is_there = is_at(fd, self._paths.file)
            finally:
                self._disk.close(fd)
            # If the name moved, a program without the lock replaced the file, perhaps with our lines in it.
            if is_there or lines in self.read():
                self.lock.sync_name()
                return
        raise self._busy()

    def rewrite(self, change: Callable[[bytes], bytes]) -> ReplacedFile | None:
        """Replace the content of the file by `change(content)` atomically, and sync it.

        `change` is called again if a program without the lock wrote meanwhile. Return the replaced file, if there was
        one, so that lines appended to it late are not lost.

        Raises: OSError; either nothing changed, or the whole change is done and may not survive a power cut.
        """
        for attempt in range(MAX_TRIES):
            fd = self._open(os.O_RDONLY)
            old = None if fd is None else ReplacedFile(fd)
            self._write_temp(change(old.content if old else b""), old.status if old else None)
            if self._may_replace(old, is_patient=attempt < PATIENT_TRIES):
                self._disk.rename(self._paths.temp, self._paths.file)
                self.lock.sync_name()
                return old
            self._disk.remove(self._paths.temp)
        raise self._busy()

    def _open(self, flags: int) -> int | None:
        try:
            return self._disk.open(self._paths.file, flags)
        except FileNotFoundError:
            return None

    def _may_replace(self, old: ReplacedFile | None, *, is_patient: bool) -> bool:
        if old is None:
            return not self._paths.file.exists()
        return old.is_at(self._paths) and old.is_unchanged(may_have_grown=not is_patient)

    def _append_to(self, fd: int, lines: bytes) -> None:
        for _ in range(MAX_TRIES):
            size = os.fstat(fd).st_size
            whole = lines if _is_line_end(fd, size) else b"\n" + lines
            written = self._disk.write(fd, whole)
            end = os.lseek(fd, 0, os.SEEK_CUR)
            start = end - written
            if written != len(whole):
                self._undo(fd, start, end)
                raise disk_full_error()
            if whole is not lines or _is_line_end(fd, start):
                break
            # Another program appended half a line between the check and the write.
            self._undo(fd, start, end)
        else:
            raise self._busy()
        try:
            self._disk.sync(fd)
        except OSError:
            self._undo(fd, start, end)
            raise

    def _undo(self, fd: int, start: int, end: int) -> None:
        """Remove what we appended; if another program wrote after it, it stays as a damaged line."""
        with contextlib.suppress(OSError):
            if os.fstat(fd).st_size == end:
                self._disk.truncate(fd, start)

    def _write_temp(self, content: bytes, like: os.stat_result | None) -> None:
        fd = self._disk.open(self._paths.temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            if like is not None:
                # Only root may change the owner.
                with contextlib.suppress(PermissionError):
                    os.fchown(fd, like.st_uid, like.st_gid)
                os.fchmod(fd, stat.S_IMODE(like.st_mode))
            write_all(self._disk, fd, content)
            self._disk.sync(fd)
        except OSError:
            self._disk.remove(self._paths.temp)
            raise
        finally:
            self._disk.close(fd)

    def _busy(self) -> StoreBusy:
        return StoreBusy(f"Another program keeps rewriting {self._paths.file} without its lock; try again.")


def _is_line_end(fd: int, at: int) -> bool:
    """Return True if a line may start at this offset."""
    return at == 0 or os.pread(fd, 1, at - 1) == b"\n"
