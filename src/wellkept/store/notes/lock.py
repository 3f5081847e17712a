"""Lock file beside the notes file, which also stores the highest id ever given.

It is a separate file because the notes file is replaced by renaming, and a lock on a file without a name has no effect
on others. The lock file is never renamed. It holds two numbers of fixed width and is always overwritten in place: the
highest id ever given, and the inode of the notes file when its folder was last synced. If the notes file has a
different inode, a process died between renaming and syncing, or another program renamed without syncing. The next
holder of the lock then syncs the folder before anything else.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterator

from wellkept.errors import StoreBusy
from wellkept.store.notes.disk import Disk, NotesPaths, check_regular, disk_full_error, is_at

if sys.platform != "win32":
    import fcntl

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
    fd = _acquire(paths, disk, timeout)
    try:
        yield LockFile(disk, fd, paths)
    finally:
        # Closing is not enough: a process forked meanwhile shares the descriptor.
        fcntl.flock(fd, fcntl.LOCK_UN)
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
    """Lock the file. Return False after `timeout`; the descriptor is then closed or owned by the waiting thread."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiter = _Waiter(fd)
        waiter.start()
        return waiter.wait(timeout)
    return True


class _Waiter(threading.Thread):
    """Thread that waits for the lock, because `flock` is fair but takes no time limit."""

    def __init__(self, fd: int) -> None:
        super().__init__(name="wellkept-notes-lock", daemon=True)
        self._fd = fd
        self._guard = threading.Lock()
        self._is_done = self._is_given_up = False

    def run(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        with self._guard:
            self._is_done = True
            if self._is_given_up:
                os.close(self._fd)

    def wait(self, timeout: float) -> bool:
        """Return True if the lock was taken within `timeout` seconds."""
        has_waited = False
        try:
            self.join(timeout)
            has_waited = True
        finally:
            # Also runs when the caller is interrupted.
            with self._guard:
                if not (has_waited and self._is_done):
                    self._is_given_up = True
                    if self._is_done:
                        os.close(self._fd)
        return not self._is_given_up
