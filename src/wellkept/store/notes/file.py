"""Notes of one agent as a file in its workspace, which other programs read and write at the same time.

`.aegis/memory/memories.jsonl` holds one note per line and nothing else. Reading needs no lock: the file is read again
when it has changed, and only new lines are parsed. Lines that hold no note are reported, and stay in the file whatever
happens to the others. `docs/notes-file.md` says what other programs can rely on.

Writes to the notes file by the holder of the lock.

Adding one note is a single `write` at the end of the file, then fsync. Everything else replaces the file: write a new
one beside it, sync it, rename it over the old one, sync the folder. Programs that ignore the lock may append at any
moment, so each step checks again what it relied on.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from wellkept.errors import Invalid, NotFound, StoreBusy, StoreError
from wellkept.language.names import memory_id, memory_seq
from wellkept.language.text import fold
from wellkept.memory.rules_filters import Condition, is_matching
from wellkept.model import Kind, Memory, Owner, Trace
from wellkept.store.notes.disk import (
    FILE_NAME,
    FOLDERS,
    Disk,
    LockFile,
    NotesPaths,
    check_regular,
    disk_full_error,
    find_paths,
    hold_lock,
    is_at,
    read_all,
    read_highest,
    translate_os_errors,
    write_all,
)
from wellkept.store.notes.lines import (
    MAX_SEQ,
    DamagedLine,
    Flaw,
    Note,
    ParsedFile,
    append_lines,
    format_line,
    parse_file,
    parse_line,
)
from wellkept.store.notes.trust import NoteTrust, mark_as_import
from wellkept.store.tables.erasure import NOTES_FILE
from wellkept.store.tables.memories import NO_SUCH_MEMORY
from wellkept.store.tables.rows import stamp
from wellkept.upkeep.rules_erasure import mark_row

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


MAX_REPLACED = 8
"""Number of replaced files that are watched for late lines. A program slower than eight rewrites loses its lines."""

BUSY_TIMEOUT = 10.0
ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Time for filters: a note of the file never ends, so its state is always the same."""

Stamp = tuple[int, ...]
"""Device, inode, size and both times of a file: changes whenever the file does."""


class NotesFile:
    """The notes of one agent in its workspace. Safe to use from several threads and processes."""

    def __init__(
        self,
        workspace: Path,
        owner: Owner,
        *,
        disk: Disk | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
        suspicious: str = "last",
    ) -> None:
        """Open the notes of a workspace; nothing is created before the first note. `suspicious` is the setting.

        Raises: Invalid when the workspace is not a folder, or the system has no file locks.
        """
        refuse_without_locks(sys.platform)
        if not workspace.is_dir():
            raise Invalid(f"The workspace {workspace} is not a folder; make it, or correct the setting.")
        self._workspace = workspace.absolute()
        self._path = self._workspace.joinpath(*FOLDERS, FILE_NAME)
        self._owner = owner
        self._disk = disk or Disk()
        self._busy_timeout = busy_timeout
        self._suspicious = suspicious
        self._known: tuple[Stamp | None, ParsedFile] = (None, ParsedFile())
        self._replaced: list[ReplacedFile] = []
        # Guards the list above. Never wait for the lock file while holding it.
        self._guard = threading.Lock()
        self.trust = NoteTrust()
        # By number: a note, the reason why it is an import, and the note marked as one.
        self._imports: dict[int, tuple[Memory, str, Memory]] = {}

    def add_memories(
        self, memories: Sequence[Memory], *, keep: int, floor: int = 0, replacing: Collection[int] = ()
    ) -> Sequence[Memory]:
        """Add all notes or none, with ids above `floor` and above every id ever seen here, and remove the notes they
        are `replacing` in the same step. Then drop the oldest beyond `keep`. Fields that a line has no place for come
        back as their defaults.

        Raises: Invalid, StoreError; NotFound when a note to replace is missing.
        """
        if not memories:
            return []
        self._check(memories)
        with self._writing() as writer:
            known = self._parse(writer.read())
            if len(memories) == 1 and len(known.notes) < keep and not replacing:
                added = self._number(memories, writer, known, floor)
                writer.append(format_line(added[0]))
                return added

            def change(content: bytes) -> bytes:
                nonlocal added
                parsed = self._parse(content)
                _check_present(parsed, replacing)
                added = self._number(memories, writer, parsed, floor)
                lines = append_lines(parsed.without(replacing), b"".join(map(format_line, added)))
                changed = parse_file(lines, self._owner, parsed)
                return changed.without(list(changed.notes)[max(keep, 0) :])

            # A power cut could leave the first few of several appended lines, or a correction beside the note it
            # replaces. A rename is all or nothing.
            self._watch(writer.rewrite(change), writer)
            return added

    def find_memories(self, seqs: Sequence[int]) -> Mapping[int, Memory]:
        """Return the notes that exist, by number."""
        notes = self._read().notes
        return {seq: self._apply_trust(notes[seq]) for seq in seqs if seq in notes}

    def list_memories(
        self,
        *,
        needle: str = "",
        where: Condition | None = None,
        is_held: bool | None = None,
        before: int | None = None,
        hidden: Collection[int] = (),
        limit: int = 20,
    ) -> Sequence[Memory]:
        """List notes that meet `where`, newest first. `needle` matches anywhere in the text, ignoring case;
        `is_held` None lists held notes and others; only numbers below `before`, and none of `hidden`, are listed."""
        folded_needle = fold(needle)
        found = (
            self._apply_trust(note)
            for seq, note in self._read().notes.items()
            if (before is None or seq < before) and seq not in hidden and folded_needle in note.folded
        )
        in_state = (memory for memory in found if is_held is None or (memory.held_at is not None) is is_held)
        return list(islice((each for each in in_state if is_matching(where, each, ANY_TIME)), max(limit, 0)))

    def all(self) -> Sequence[Memory]:
        """Return every note, newest first."""
        return [self._apply_trust(note) for note in self._read().notes.values()]

    def seqs(self) -> Collection[int]:
        """Return the numbers of all notes."""
        return self._read().notes.keys()

    def live(self) -> Sequence[Memory]:
        """Return every note that is not held, newest first."""
        return [memory for memory in self.all() if memory.held_at is None]

    def last_seq(self) -> int:
        """Return the highest number ever given or seen; 0 if there was none."""
        with translate_os_errors(self._path, action="read"):
            reserved = read_highest(find_paths(self._workspace))
        return max(reserved, self._read().highest)

    def damaged(self) -> Sequence[DamagedLine]:
        """Return the lines that hold no usable note, with the reasons."""
        return self._read().damaged

    def delete_memory(self, id: str) -> None:
        """Remove every line with this id. Raises: NotFound, StoreError."""
        self.delete_memories([memory_seq(id) or 0])

    def delete_memories(self, seqs: Collection[int], *, is_missing_ok: bool = False) -> None:
        """Remove every line of these notes in one step.

        Raises: NotFound when one of them is missing, unless `is_missing_ok`; StoreError.
        """

        def change(content: bytes) -> bytes:
            parsed = self._parse(content)
            if not is_missing_ok:
                _check_present(parsed, seqs)
            # An id given by another program must stay used when its line is gone.
            writer.lock.reserve(parsed.highest)
            return parsed.without(seqs)

        with self._writing() as writer:
            self._watch(writer.rewrite(change), writer)

    def traces(self, table: str, agent: str) -> list[Trace]:
        """Return every note with the texts of all its lines, or every damaged line by the name that `erase` takes."""
        parsed = self._read()
        if table == NOTES_FILE:
            return [
                Trace(table=table, key=(name,), agent=agent, texts=(text,))
                for name, text in parsed.damaged_texts().items()
            ]
        memories = {seq: note.memory for seq, note in parsed.notes.items()}
        marks = {seq: mark_row(table, note.text, stamp(note.created_at)) for seq, note in memories.items()}
        return [
            Trace(table=table, key=(seq,), agent=agent, texts=(*texts,), mark=marks.get(seq, ""))
            for seq, texts in parsed.note_texts().items()
        ]

    def erase(self, seqs: Collection[int], lines: Collection[str]) -> int:
        """Remove these notes and damaged lines, and close replaced files; return how many of the notes existed.

        Raises: StoreError.
        """
        count = 0

        def change(content: bytes) -> bytes:
            nonlocal count
            parsed = self._parse(content)
            count = len({*seqs} & {*parsed.notes})
            writer.lock.reserve(parsed.highest)
            return parsed.without_lines(seqs, lines)

        with self._writing() as writer:
            self._watch(writer.rewrite(change), writer)
        self.close()
        self._known = (None, ParsedFile())
        self._imports.clear()
        return count

    def close(self) -> None:
        """Collect late lines of other programs from replaced files a last time, and close those files."""
        self._carry_over(is_last_call=True)
        with self._guard:
            self._replaced.clear()

    def _check(self, memories: Sequence[Memory]) -> None:
        """Check that each note can be parsed once written; otherwise a stored note would be a damaged line.

        Raises: Invalid.
        """
        for memory in memories:
            if memory.owner != self._owner or memory.kind is not Kind.NOTE:
                raise Invalid("This file holds only the notes of one agent.")
            if memory.created_at.tzinfo is None:
                raise Invalid("created_at needs a time zone, for example 2026-01-31T12:00:00Z.")
            try:
                line = format_line(replace(memory, id=memory_id(1)))
            except UnicodeEncodeError:
                raise Invalid("The text or a tag holds half a surrogate pair; send whole ones.") from None
            if isinstance(flaw := parse_line(line, self._owner), Flaw):
                raise Invalid(flaw.reason)

    def _number(self, memories: Sequence[Memory], writer: NotesWriter, known: ParsedFile, floor: int) -> list[Memory]:
        """Return the notes as they will be read, with ids that are never given again."""
        last = max(writer.lock.highest, known.highest, floor)
        if last + len(memories) > MAX_SEQ:
            raise StoreError(f"The ids are used up: one in {self._path} is {memory_id(last)}; give it a lower number.")
        writer.lock.reserve(last + len(memories))
        lines = [format_line(replace(memory, id=memory_id(seq))) for seq, memory in enumerate(memories, last + 1)]
        return [note.memory for line in lines if (note := parse_line(line, self._owner)) and not isinstance(note, Flaw)]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[NotesWriter]:
        with translate_os_errors(self._path, action="written"):
            paths = find_paths(self._workspace)
            with hold_lock(paths, self._disk, timeout=self._busy_timeout) as lock:
                writer = NotesWriter(self._disk, paths, lock)
                # If this fails, the next call tries again.
                with contextlib.suppress(OSError):
                    self._carry_over_with(writer)
                yield writer

    def _read(self) -> ParsedFile:
        """Return the current file, read again only if it has changed."""
        # Reading works without this; the next call tries again.
        with contextlib.suppress(StoreError):
            self._carry_over()
        with translate_os_errors(self._path, action="read"):
            try:
                path = find_paths(self._workspace).file
                # Read the attribute once: another thread may replace it.
                known_stamp, known = self._known
                if _stamp(os.lstat(path)) == known_stamp:
                    return known
                fd = self._disk.open(path, os.O_RDONLY)
            except FileNotFoundError:
                return ParsedFile()
            try:
                stamp = _stamp(os.fstat(fd))
                parsed = self._parse(read_all(fd))
            finally:
                self._disk.close(fd)
        self._known = stamp, parsed
        return parsed

    def _apply_trust(self, note: Note) -> Memory:
        """Return the note, marked as an import while it waits for approval."""
        reason = self.trust.find_reason(note.seq, note.digest)
        if reason is None:
            return note.memory
        known = self._imports.get(note.seq)
        if known is None or known[0] is not note.memory or known[1] != reason:
            made = mark_as_import(note.memory, self._suspicious, reason)
            known = self._imports[note.seq] = note.memory, reason, made
        return known[2]

    def _parse(self, content: bytes) -> ParsedFile:
        """Parse the content, or reuse the last result. Writers compare bytes, because clocks may be too coarse."""
        known = self._known[1]
        if known.content == content:
            return known
        parsed = parse_file(content, self._owner, known)
        # Without a stamp, so that the next reader looks at the file itself.
        self._known = None, parsed
        return parsed

    def _watch(self, replaced: ReplacedFile | None, writer: NotesWriter) -> None:
        """Watch a file that was just replaced for late lines, starting with those appended until now."""
        if replaced is not None:
            replaced.content = b""
            with self._guard:
                self._replaced = [*self._replaced, replaced][-MAX_REPLACED:]
            # The change itself is done; the next call tries this again.
            with contextlib.suppress(OSError):
                self._carry_over_with(writer)

    def _carry_over(self, *, is_last_call: bool = False) -> None:
        """Copy lines that programs without the lock appended to replaced files into the current file."""
        with self._guard:
            is_needed = any(replaced.has_grown() for replaced in self._replaced)
        if is_needed:
            with self._writing() as writer:
                self._carry_over_with(writer, is_last_call=is_last_call)

    def _carry_over_with(self, writer: NotesWriter, *, is_last_call: bool = False) -> None:
        with self._guard:
            for replaced in self._replaced:
                replaced.carry_over(writer, is_last_call=is_last_call)


def _check_present(parsed: ParsedFile, seqs: Collection[int]) -> None:
    """Raises: NotFound."""
    if not parsed.notes.keys() >= set(seqs):
        raise NotFound(NO_SUCH_MEMORY)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def refuse_without_locks(platform: str) -> None:
    """Refuse systems without POSIX file locks. Raises: Invalid."""
    if platform == "win32":
        raise Invalid("Notes in a file need a POSIX system (Linux, macOS); leave the workspace unset on Windows.")
