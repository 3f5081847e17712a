"""Writes to the notes file by the holder of the lock.

Adding one note is a single `write` at the end of the file, then fsync. Everything else replaces the file: write a new
one beside it, sync it, rename it over the old one, sync the folder. Programs that ignore the lock may append at any
moment, so each step checks again what it relied on.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable

from wellkept.errors import StoreBusy
from wellkept.store.notes.disk import Disk, NotesPaths, check_regular, disk_full_error, is_at, read_all, write_all
from wellkept.store.notes.lock import LockFile

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
