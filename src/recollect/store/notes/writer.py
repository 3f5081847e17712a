"""Writing the notes file, in the hands of whoever holds the lock.

Adding is one `write` at the end of the file, then fsync. Everything else replaces the file: a new one is written beside
it and synced, then renamed over it, then the folder is synced. Programs that do not know the lock may append at any
moment, so each step looks again at what it relied on.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable

from recollect.errors import StoreBusy
from recollect.store.notes.disk import Disk, Place, full_disk, is_at, read_all, regular, write_all
from recollect.store.notes.lock import Ledger

MAX_TRIES = 20
PATIENT_TRIES = 5
"""How often a rewrite begins again because somebody appended; after that the new lines are carried over behind it."""


class Replaced:
    """The file as a rewrite found it, held open for lines of a program that had opened it before it lost its name."""

    def __init__(self, fd: int) -> None:
        self._fd, self._pid = fd, os.getpid()
        self.status = regular(fd)
        self.content = read_all(fd)
        self._size = len(self.content)
        self._tail = self.content[self.content.rfind(b"\n") + 1 :]

    def is_as_read(self, *, may_have_grown: bool) -> bool:
        now = os.fstat(self._fd)
        if (now.st_size, now.st_mtime_ns) == (self._size, self.status.st_mtime_ns):
            return True
        return may_have_grown and read_all(self._fd).startswith(self.content)

    def is_at(self, place: Place) -> bool:
        return is_at(self._fd, place.file)

    def has_grown(self) -> bool:
        """Never in a forked process: its parent has the same file open and will take the lines."""
        return os.getpid() == self._pid and os.fstat(self._fd).st_size > self._size

    def carry_over(self, pen: Pen, *, is_last_call: bool = False) -> None:
        """Append what has arrived since: whole lines only, unless there will be no other call.

        Raises: OSError, and the lines wait for the next call.
        """
        if not self.has_grown():
            return
        late = read_all(self._fd)[self._size :]
        if not is_last_call:
            late = late[: late.rfind(b"\n") + 1]
        if late:
            # The rewrite may have seen the first half of a line.
            whole = late if late.startswith(b"\n") else self._tail + late
            pen.append(whole.removeprefix(b"\n").removesuffix(b"\n") + b"\n")
            self._size, self._tail = self._size + len(late), b""

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._fd)


class Pen:
    """The one who may write."""

    def __init__(self, disk: Disk, place: Place, ledger: Ledger) -> None:
        self._disk, self._place, self.ledger = disk, place, ledger

    def read(self) -> bytes:
        """The file as it is; nothing when there is none."""
        fd = self._opened(os.O_RDONLY)
        if fd is None:
            return b""
        try:
            return read_all(fd)
        finally:
            self._disk.close(fd)

    def append(self, lines: bytes) -> None:
        """Write whole lines behind all others; when this returns they are on the disk.

        Raises: OSError, and nothing was stored.
        """
        for _ in range(MAX_TRIES):
            fd = self._opened(os.O_RDWR | os.O_APPEND)
            if fd is None:
                fd = self._disk.open(self._place.file, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            try:
                regular(fd)
                self._append_to(fd, lines)
                is_there = is_at(fd, self._place.file)
            finally:
                self._disk.close(fd)
            # Otherwise a program that takes no lock replaced the file meanwhile, perhaps with our lines already in it.
            if is_there or lines in self.read():
                self.ledger.settle()
                return
        raise self._busy()

    def rewrite(self, change: Callable[[bytes], bytes]) -> Replaced | None:
        """Replace the file by what `change` makes of it, all at once; when this returns it is on the disk.

        `change` is asked again when a program that takes no lock wrote meanwhile. The file that was replaced, if there
        was one, is returned for lines that were or will be appended to it.

        Raises: OSError, and nothing was changed, or all of it was and may not outlast a power cut.
        """
        for attempt in range(MAX_TRIES):
            fd = self._opened(os.O_RDONLY)
            old = None if fd is None else Replaced(fd)
            self._write_temp(change(old.content if old else b""), old.status if old else None)
            if self._may_replace(old, is_patient=attempt < PATIENT_TRIES):
                self._disk.rename(self._place.temp, self._place.file)
                self.ledger.settle()
                return old
            self._disk.remove(self._place.temp)
        raise self._busy()

    def _opened(self, flags: int) -> int | None:
        try:
            return self._disk.open(self._place.file, flags)
        except FileNotFoundError:
            return None

    def _may_replace(self, old: Replaced | None, *, is_patient: bool) -> bool:
        if old is None:
            return not self._place.file.exists()
        return old.is_at(self._place) and old.is_as_read(may_have_grown=not is_patient)

    def _append_to(self, fd: int, lines: bytes) -> None:
        for _ in range(MAX_TRIES):
            size = os.fstat(fd).st_size
            whole = lines if _is_line_end(fd, size) else b"\n" + lines
            written = self._disk.write(fd, whole)
            end = os.lseek(fd, 0, os.SEEK_CUR)
            start = end - written
            if written != len(whole):
                self._undo(fd, start, end)
                raise full_disk()
            if whole is not lines or _is_line_end(fd, start):
                break
            self._undo(fd, start, end)  # half a line of somebody else's came between the look and the write
        else:
            raise self._busy()
        try:
            self._disk.sync(fd)
        except OSError:
            self._undo(fd, start, end)
            raise

    def _undo(self, fd: int, start: int, end: int) -> None:
        """Take back what we appended, unless somebody wrote behind it: then it stays, as a damaged line."""
        with contextlib.suppress(OSError):
            if os.fstat(fd).st_size == end:
                self._disk.truncate(fd, start)

    def _write_temp(self, content: bytes, like: os.stat_result | None) -> None:
        fd = self._disk.open(self._place.temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            if like is not None:
                with contextlib.suppress(PermissionError):  # only root may give files away
                    os.fchown(fd, like.st_uid, like.st_gid)
                os.fchmod(fd, stat.S_IMODE(like.st_mode))
            write_all(self._disk, fd, content)
            self._disk.sync(fd)
        except OSError:
            self._disk.remove(self._place.temp)
            raise
        finally:
            self._disk.close(fd)

    def _busy(self) -> StoreBusy:
        return StoreBusy(f"Another program keeps rewriting {self._place.file} without its lock; try again.")


def _is_line_end(fd: int, at: int) -> bool:
    """Whether a line may begin here."""
    return at == 0 or os.pread(fd, 1, at - 1) == b"\n"
