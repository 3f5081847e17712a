"""The lock beside the notes file, which also remembers what must outlive the notes: the highest number given.

It is a file of its own because the notes file is replaced by renaming, and a lock on a file that has lost its name
keeps nobody out. It is never renamed. It holds two numbers of fixed width, so that it is always overwritten in place:
the highest number ever given, and the inode of the notes file for which the folder was last synced. When that is
another than the file's, somebody died between renaming and syncing (or a program renamed without), and whoever holds
the lock next makes it good before anything else.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterator

from recollect.errors import StoreBusy
from recollect.store.notes.disk import Disk, Place, full_disk, is_at, regular

if sys.platform != "win32":
    import fcntl

_CONTENT = re.compile(rb"([0-9]{18}) ([0-9]{20})\n")
_LENGTH = 18 + 1 + 20 + 1


class Ledger:
    """The lock file, while we hold it."""

    def __init__(self, disk: Disk, fd: int, place: Place) -> None:
        """Also clears up after whoever died holding it."""
        self._disk, self._fd, self._place = disk, fd, place
        found = _CONTENT.fullmatch(os.pread(fd, _LENGTH + 1, 0))
        self._highest, self._inode = (int(found[1]), int(found[2])) if found else (0, 0)
        if not found:
            # New, or not ours: only here can the folders be new as well, made by us or by someone who died.
            for folder in place.folders:
                disk.sync_folder(folder)
            disk.truncate(fd, 0)
            self._write()
        with contextlib.suppress(FileNotFoundError):
            disk.remove(place.temp)
        self.settle()

    @property
    def highest(self) -> int:
        return self._highest

    def take(self, highest: int) -> None:
        """Remember, for good, that numbers up to this one are used."""
        if highest > self._highest:
            self._highest = highest
            self._write()
            self._disk.sync_content(self._fd)

    def settle(self) -> None:
        """Make sure that the file's name will point to what it points to now, whatever happens."""
        try:
            inode = os.stat(self._place.file).st_ino
        except FileNotFoundError:
            inode = 0
        if inode != self._inode:
            self._disk.sync_folder(self._place.folder)
            self._inode = inode
            self._write()  # need not last: after a power cut, what is on the disk is what there is

    def _write(self) -> None:
        content = b"%018d %020d\n" % (self._highest, self._inode)
        if self._disk.overwrite(self._fd, content) != len(content):
            raise full_disk()


@contextlib.contextmanager
def held(place: Place, disk: Disk, *, timeout: float) -> Iterator[Ledger]:
    """Keep all other recollects out, those in other threads too, and find everything in order.

    Raises: OSError; StoreBusy when the lock is not free within `timeout` seconds.
    """
    fd = _locked(place, disk, timeout)
    try:
        yield Ledger(disk, fd, place)
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)  # closing is not enough if a process forked meanwhile has the descriptor too
        disk.close(fd)


def highest_given(place: Place) -> int:
    """Return what the lock file remembers, without waiting for the lock.

    Raises: OSError, also for a pipe or a device, which could be read for ever.
    """
    try:
        fd = os.open(place.lock, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        regular(fd)
        found = _CONTENT.fullmatch(os.pread(fd, _LENGTH + 1, 0))
    finally:
        os.close(fd)
    return int(found[1]) if found else 0


def _locked(place: Place, disk: Disk, timeout: float) -> int:
    while True:
        fd = _opened(place, disk)
        if not _is_taken(fd, timeout):
            raise StoreBusy(f"Another program has held {place.lock} for {timeout:g} seconds; try again, or end it.")
        if is_at(fd, place.lock):
            return fd
        disk.close(fd)  # somebody deleted or replaced it while we waited; a lock without a name keeps nobody out


def _opened(place: Place, disk: Disk) -> int:
    try:
        fd = disk.open(place.lock, os.O_RDWR | os.O_CREAT)
    except FileNotFoundError:
        for folder in reversed(place.folders):
            with contextlib.suppress(FileExistsError):
                disk.make_folder(folder)
        fd = disk.open(place.lock, os.O_RDWR | os.O_CREAT)
    try:
        regular(fd)
    except OSError:
        disk.close(fd)
        raise
    return fd


def _is_taken(fd: int, timeout: float) -> bool:
    """Lock the file; when the time is up, False, and the descriptor is no longer ours."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiter = _Waiter(fd)
        waiter.start()
        return waiter.has_got_it(timeout)
    return True


class _Waiter(threading.Thread):
    """Stands in the kernel's queue, which is fair but knows no time limit, for a caller who may give up."""

    def __init__(self, fd: int) -> None:
        super().__init__(name="recollect-notes-lock", daemon=True)
        self._fd = fd
        self._guard = threading.Lock()
        self._is_done = self._is_given_up = False

    def run(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        with self._guard:
            self._is_done = True
            if self._is_given_up:
                os.close(self._fd)

    def has_got_it(self, timeout: float) -> bool:
        has_waited = False
        try:
            self.join(timeout)
            has_waited = True
        finally:  # also when the caller is interrupted
            with self._guard:
                if not (has_waited and self._is_done):
                    self._is_given_up = True
                    if self._is_done:
                        os.close(self._fd)
        return not self._is_given_up
