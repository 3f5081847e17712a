"""An agent's notes as a file in its workspace, which other programs read and write at the same time.

`.aegis/memory/memories.jsonl` holds one note a line and nothing else. Reading needs no lock: the file is read again
when it has changed, and only lines not seen before are parsed. What is no note is set aside and reported, and stays in
the file whatever is done to the others. `docs/notes-file.md` says what is promised to other programs.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from recollect.errors import Invalid, NotFound, StoreError
from recollect.model import Kind, Memory, Owner
from recollect.policy.names import memory_id, memory_seq
from recollect.policy.text import fold
from recollect.store.memories import NO_SUCH_MEMORY
from recollect.store.notes.disk import FILE_NAME, FOLDERS, Disk, place_in, read_all, told
from recollect.store.notes.lines import MAX_SEQ, Flaw, Note, line_of, parsed
from recollect.store.notes.lock import held, highest_given
from recollect.store.notes.page import Damaged, Page, page_of, with_lines
from recollect.store.notes.trust import Imported, as_import
from recollect.store.notes.writer import Pen, Replaced
from recollect.store.rows import TAG_BORDER

__all__ = ["Damaged", "NotesFile"]

MAX_REPLACED = 8
"""How many replaced files are watched for late lines; a program that writes slower than eight rewrites loses them."""

BUSY_TIMEOUT = 10.0

Stamp = tuple[int, ...]
"""Changes with the file: device, inode, size and both times."""


class NotesFile:
    """The notes of one agent, kept in its workspace. Threads and processes may share it."""

    def __init__(
        self,
        workspace: Path,
        owner: Owner,
        *,
        disk: Disk | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
        suspicious: str = "last",
    ) -> None:
        """Nothing is made before the first note. `suspicious` is the setting of that name.

        Raises: Invalid when the workspace is no folder, or the system has no file locks.
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
        self._known: tuple[Stamp | None, Page] = (None, Page())
        self._replaced: list[Replaced] = []
        self._guard = threading.Lock()  # of the list above
        self.imported = Imported()
        self._imports: dict[int, tuple[Memory, str, Memory]] = {}  # notes, why, and what they are as imports

    def add_memories(self, memories: Sequence[Memory], *, keep: int, floor: int = 0) -> Sequence[Memory]:
        """All of them or none, with ids above `floor` and above every id ever seen here. The oldest notes make room,
        so that at most `keep` remain. What a line has no field for comes back as its default.

        Raises: Invalid, StoreError.
        """
        if not memories:
            return []
        self._check(memories)
        with self._writing() as pen:
            page = self._understood(pen.read())
            if len(memories) == 1 and len(page.notes) < keep:
                added = self._numbered(memories, pen, page, floor)
                pen.append(line_of(added[0]))
                return added

            def change(content: bytes) -> bytes:
                nonlocal added
                page = self._understood(content)
                added = self._numbered(memories, pen, page, floor)
                lines = b"".join(map(line_of, added))
                everything = page_of(with_lines(content, lines), self._owner, page)
                return everything.without(list(everything.notes)[max(keep, 0) :])

            # Of many lines written at the end, a power cut might leave the first few: renaming is all or none.
            self._watch(pen.rewrite(change), pen)
            return added

    def get_memory(self, id: str) -> Memory:
        """Raises: NotFound, StoreError."""
        note = self._page().notes.get(memory_seq(id) or 0)
        if note is None:
            raise NotFound(NO_SUCH_MEMORY)
        return self._memory(note)

    def find_memories(self, seqs: Sequence[int]) -> Mapping[int, Memory]:
        """Those that exist, by number."""
        notes = self._page().notes
        return {seq: self._memory(notes[seq]) for seq in seqs if seq in notes}

    def list_memories(
        self,
        *,
        needle: str = "",
        tag: str = "",
        is_held: bool | None = None,
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[Memory]:
        """Newest first. `needle` matches anywhere in the text and `tag` a whole tag, both ignoring case; `is_held` None
        lists both what is held and what is not; `before` continues behind that number."""
        if TAG_BORDER in tag:
            return []
        wanted, border = fold(needle), f"{TAG_BORDER}{fold(tag)}{TAG_BORDER}" if tag else ""
        found = (
            self._memory(note)
            for seq, note in self._page().notes.items()
            if (before is None or seq < before) and wanted in note.folded and border in note.folded_tags
        )
        in_state = (memory for memory in found if is_held is None or (memory.held_at is not None) is is_held)
        return list(islice(in_state, max(limit, 0)))

    def all(self) -> Sequence[Memory]:
        """Every note, newest first."""
        return [self._memory(note) for note in self._page().notes.values()]

    def seqs(self) -> Collection[int]:
        """Return the numbers of all notes."""
        return self._page().notes.keys()

    def live(self) -> Sequence[Memory]:
        """Every note that is not held, newest first."""
        return [memory for memory in self.all() if memory.held_at is None]

    def last_seq(self) -> int:
        """The highest number ever given or seen; 0 when there was none."""
        with told(self._path, doing="read"):
            given = highest_given(place_in(self._workspace))
        return max(given, self._page().highest)

    def damaged(self) -> Sequence[Damaged]:
        """The lines that are set aside, and why."""
        return self._page().damaged

    def delete_memory(self, id: str) -> None:
        """Remove every line with this id.

        Raises: NotFound, StoreError.
        """
        seq = memory_seq(id) or 0

        def change(content: bytes) -> bytes:
            page = self._understood(content)
            if seq not in page.notes:
                raise NotFound(NO_SUCH_MEMORY)
            pen.ledger.take(page.highest)  # a higher id that another program gave must stay used when its line is gone
            return page.without([seq])

        with self._writing() as pen:
            self._watch(pen.rewrite(change), pen)

    def spoken(self) -> Mapping[int, Sequence[str]]:
        """Everything the lines of each note say."""
        return self._page().spoken()

    def set_aside(self) -> Mapping[str, str]:
        """What damaged lines say, by a name for each."""
        return self._page().set_aside()

    def erase(self, seqs: Collection[int], lines: Collection[str]) -> int:
        """Remove these notes and damaged lines, and let go of files that were replaced; how many notes there were.

        Raises: StoreError.
        """
        count = 0

        def change(content: bytes) -> bytes:
            nonlocal count
            page = self._understood(content)
            count = len({*seqs} & {*page.notes})
            pen.ledger.take(page.highest)
            return page.without_lines(seqs, lines)

        with self._writing() as pen:
            self._watch(pen.rewrite(change), pen)
        self.close()
        self._known = (None, Page())
        self._imports.clear()
        return count

    def close(self) -> None:
        """Look once more for late lines of other programs in files that were replaced, and let go of those."""
        self._carry_over(is_last_call=True)
        with self._guard:
            self._replaced.clear()

    def _check(self, memories: Sequence[Memory]) -> None:
        """What is written must be understood when it is read, or an acknowledged note would be a damaged line."""
        for memory in memories:
            if memory.owner != self._owner or memory.kind is not Kind.NOTE:
                raise Invalid("This file keeps the notes of one agent and nothing else.")
            if memory.created_at.tzinfo is None:
                raise Invalid("created_at must say its time zone, for example 2026-01-31T12:00:00Z.")
            try:
                line = line_of(replace(memory, id=memory_id(1)))
            except UnicodeEncodeError:
                raise Invalid("The text or a tag holds half a surrogate pair; send whole ones.") from None
            if isinstance(flaw := parsed(line, self._owner), Flaw):
                raise Invalid(flaw.reason)

    def _numbered(self, memories: Sequence[Memory], pen: Pen, page: Page, floor: int) -> list[Memory]:
        """The notes as they will be read, with numbers nobody can be given again."""
        last = max(pen.ledger.highest, page.highest, floor)
        if last + len(memories) > MAX_SEQ:
            raise StoreError(f"The ids are used up: one in {self._path} is {memory_id(last)}; give it a lower number.")
        pen.ledger.take(last + len(memories))
        lines = [line_of(replace(memory, id=memory_id(seq))) for seq, memory in enumerate(memories, last + 1)]
        return [note.memory for line in lines if (note := parsed(line, self._owner)) and not isinstance(note, Flaw)]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Pen]:
        with told(self._path, doing="written"):
            place = place_in(self._workspace)
            with held(place, self._disk, timeout=self._busy_timeout) as ledger:
                pen = Pen(self._disk, place, ledger)
                with contextlib.suppress(OSError):  # the next call tries again
                    self._carry_over_by(pen)
                yield pen

    def _page(self) -> Page:
        """The file as it is now, read again only if it has changed."""
        with contextlib.suppress(StoreError):  # to read is possible all the same; the next call tries again
            self._carry_over()
        with told(self._path, doing="read"):
            try:
                path = place_in(self._workspace).file
                # Read once: another thread may put something else there.
                known_stamp, known = self._known
                if _stamp(os.lstat(path)) == known_stamp:
                    return known
                fd = self._disk.open(path, os.O_RDONLY)
            except FileNotFoundError:
                return Page()
            try:
                stamp = _stamp(os.fstat(fd))
                page = self._understood(read_all(fd))
            finally:
                self._disk.close(fd)
        self._known = stamp, page
        return page

    def _memory(self, note: Note) -> Memory:
        """The note as it counts: an import while it waits for approval."""
        reason = self.imported.find_reason(note.seq, note.digest)
        if reason is None:
            return note.memory
        known = self._imports.get(note.seq)
        if known is None or known[0] is not note.memory or known[1] != reason:
            made = as_import(note.memory, self._suspicious, reason)
            known = self._imports[note.seq] = note.memory, reason, made
        return known[2]

    def _understood(self, content: bytes) -> Page:
        """Compares all of it, not a time stamp: whoever writes must not rely on how fine the clock is."""
        known = self._known[1]
        if known.content == content:
            return known
        page = page_of(content, self._owner, known)
        self._known = None, page  # without a stamp: the next reader looks for itself
        return page

    def _watch(self, replaced: Replaced | None, pen: Pen) -> None:
        """Keep an eye on a file that has just lost its name, beginning with what was appended to it until now."""
        if replaced is not None:
            replaced.content = b""
            with self._guard:
                self._replaced = [*self._replaced, replaced][-MAX_REPLACED:]
            with contextlib.suppress(OSError):  # what was asked for is done; the next call tries this again
                self._carry_over_by(pen)

    def _carry_over(self, *, is_last_call: bool = False) -> None:
        """Bring home what programs that take no lock have appended to files that had already lost their name."""
        with self._guard:
            is_needed = any(replaced.has_grown() for replaced in self._replaced)
        if is_needed:  # the guard is only ever taken inside the lock, never the other way round
            with self._writing() as pen:
                self._carry_over_by(pen, is_last_call=is_last_call)

    def _carry_over_by(self, pen: Pen, *, is_last_call: bool = False) -> None:
        with self._guard:
            for replaced in self._replaced:
                replaced.carry_over(pen, is_last_call=is_last_call)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def refuse_without_locks(platform: str) -> None:
    """Raises: Invalid on a system whose file locks we do not know."""
    if platform == "win32":
        raise Invalid("Notes in a file need a POSIX system (Linux, macOS); leave the workspace unset on Windows.")
