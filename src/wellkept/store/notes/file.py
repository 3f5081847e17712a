"""Notes of one agent as a file in its workspace, which other programs read and write at the same time.

`.aegis/memory/memories.jsonl` holds one note per line and nothing else. Reading needs no lock: the file is read again
when it has changed, and only new lines are parsed. Lines that hold no note are reported, and stay in the file whatever
happens to the others. `docs/notes-file.md` says what other programs can rely on.

Other programs write these lines too. Parsing accepts what loses nothing (missing or empty `scope` and `tags`, unknown
fields, any order, CRLF, a byte order mark) and reports everything else as a flaw that a person can fix.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from wellkept.errors import Invalid, NotFound, StoreError
from wellkept.language.names import memory_id, memory_seq
from wellkept.language.text import check_text, fold
from wellkept.memory import rules_trust as instructions
from wellkept.memory.rules_filters import Condition, is_matching
from wellkept.memory.rules_kinds import BLANK, RULES, check_tags
from wellkept.memory.rules_trust import SUSPICIOUS
from wellkept.model import Kind, Memory, Origin, Owner, Scope, Trace
from wellkept.store.notes.disk import (
    FILE_NAME,
    FOLDERS,
    Disk,
    NotesWriter,
    ReplacedFile,
    find_paths,
    hold_lock,
    read_all,
    read_highest,
    translate_os_errors,
)
from wellkept.store.tables.erasure import NOTES_FILE
from wellkept.store.tables.memories import NO_SUCH_MEMORY
from wellkept.store.tables.rows import stamp
from wellkept.upkeep.rules_erasure import mark_row

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
    ) -> Sequence[Memory]:
        """List notes that meet `where`, newest first. `needle` matches anywhere in the text, ignoring case;
        `is_held` None lists held notes and others; only numbers below `before` are listed."""
        folded_needle = fold(needle)
        found = (
            self._apply_trust(note)
            for seq, note in self._read().notes.items()
            if (before is None or seq < before) and folded_needle in note.folded
        )
        in_state = (memory for memory in found if is_held is None or (memory.held_at is not None) is is_held)
        return [each for each in in_state if is_matching(where, each, ANY_TIME)]

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


MAX_SEQ = 2**53 - 1
"""The highest id number. Every JSON parser reads integers up to here exactly."""

NOT_JSON = "It is not valid JSON."
CUT_OFF = "It was cut off: the end of the line is missing."

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"
_ID = re.compile(rb'"id"\s*:\s*"m-([1-9][0-9]{0,17})"')
# Legal inside a JSON string, but many programs treat them as line ends.
_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")


@dataclass(frozen=True, slots=True)
class Note:
    """A line that holds a note."""

    seq: int
    memory: Memory
    folded: str
    digest: str  # of text and tags


@dataclass(frozen=True, slots=True)
class Flaw:
    """A line that holds no note, with the reason. The number in its id, if any, stays used."""

    reason: str
    seq: int = 0


Line = Note | Flaw | None


def format_line(memory: Memory) -> bytes:
    """Format a note as a line, including the line feed."""
    fields = {
        "id": memory.id,
        "scope": memory.scope.value,
        "text": memory.text,
        "tags": list(memory.tags),
        "ts": memory.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS).encode() + b"\n"


def hash_note(note: Memory) -> str:
    """Return a short hash of a note's text and tags."""
    return hashlib.sha256("\0".join([note.text, *note.tags]).encode(errors="surrogatepass")).hexdigest()[:16]


def parse_line(raw: bytes, owner: Owner) -> Line:
    """Parse a line without its line feed; None for a blank line."""
    raw = raw.removeprefix(_BOM)
    if not raw.strip(_BLANKS):
        return None
    try:
        fields = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        return Flaw(f"It is not UTF-8 (byte {error.start + 1} of the line).", _find_number(raw))
    except (ValueError, RecursionError):
        return Flaw(NOT_JSON, _find_number(raw))
    try:
        memory = _parse_memory(fields, owner)
    except Invalid as error:
        return Flaw(str(error), _find_number(raw))
    return Note(memory_seq(memory.id) or 0, memory, fold(memory.text), hash_note(memory))


def _parse_memory(fields: Any, owner: Owner) -> Memory:
    """Parse the fields of a line. Raises: Invalid."""
    if not isinstance(fields, dict):
        raise Invalid("It is not a JSON object.")
    return Memory(
        id=_parse_id(fields.get("id")),
        owner=owner,
        kind=Kind.NOTE,
        text=_parse_text(fields.get("text")),
        tags=_parse_tags(fields.get("tags")),
        scope=_parse_scope(fields.get("scope")),
        created_at=_parse_time(fields.get("ts")),
    )


def _parse_id(value: object) -> str:
    seq = memory_seq(value) if isinstance(value, str) else None
    if not isinstance(value, str) or seq is None:
        raise Invalid('Its id is missing or not of the form "m-7".')
    if seq > MAX_SEQ:
        raise Invalid(f"The number in its id is higher than {MAX_SEQ}.")
    return value


def _parse_text(value: object) -> str:
    if value is None:
        raise Invalid("Its text is missing.")
    if not isinstance(value, str):
        raise Invalid("Its text is not a string.")
    limit = RULES[Kind.NOTE].max_chars
    if len(value) > limit:
        raise Invalid(f"Content too long (max {limit:,} characters)")
    if not value.strip():
        raise Invalid(BLANK)
    return check_text(value)


def _parse_tags(value: object) -> tuple[str, ...]:
    # Go writes an empty list as null.
    if value is None:
        return ()
    if not isinstance(value, list):
        raise Invalid("Its tags are not a list.")
    return check_tags(value)


def _parse_scope(value: object) -> Scope:
    if value is None or value == "":
        return Scope.WORKSPACE
    try:
        # Any other type raises ValueError as well.
        return Scope(value)  # type: ignore[arg-type]
    except ValueError:
        raise Invalid(f"Its scope is none of {', '.join(Scope)}.") from None


def _parse_time(value: object) -> datetime:
    if not isinstance(value, str):
        raise Invalid('Its ts is missing or not a time such as "2026-01-31T12:00:00Z".')
    try:
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid('Its ts is not a time such as "2026-01-31T12:00:00Z".') from None


def _find_number(raw: bytes) -> int:
    """Return the highest valid number in anything that looks like an id; 0 if there is none."""
    return max((seq for match in _ID.finditer(raw) if (seq := int(match[1])) <= MAX_SEQ), default=0)


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line that stays in the file but holds no usable note."""

    line: int  # 1 is the first
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The notes file as it was read once: notes by number, and damaged lines."""

    content: bytes = b""
    notes: Mapping[int, Note] = field(default_factory=dict)  # by number, highest first
    damaged: tuple[DamagedLine, ...] = ()
    highest: int = 0  # of all numbers in the file, including damaged lines
    lines: Mapping[bytes, Line] = field(default_factory=dict)

    def without(self, seqs: Collection[int]) -> bytes:
        """Return the content without these notes: every line with such an id goes, all others stay byte for byte."""
        *lines, tail = self.content.split(b"\n")
        kept = [raw + b"\n" for raw in lines if not self._has_seq(raw, seqs)]
        return b"".join(kept) + (b"" if self._has_seq(tail, seqs) else tail)

    def without_lines(self, seqs: Collection[int], names: Collection[str]) -> bytes:
        """Return the content without these notes and without the lines with these names."""
        lines = self.without(seqs).split(b"\n")
        return b"\n".join(raw for raw in lines if hash_line(raw) not in names)

    def note_texts(self) -> Mapping[int, Sequence[str]]:
        """Return all lines of each note as text, including duplicates and fields that only other programs know."""
        found: dict[int, list[str]] = {}
        for raw, line in self.lines.items():
            if isinstance(line, Note):
                found.setdefault(line.seq, []).append(unescape_line(raw))
        return found

    def damaged_texts(self) -> Mapping[str, str]:
        """Return the text of each line that holds no note, by its name."""
        return {hash_line(raw): unescape_line(raw) for raw, line in self.lines.items() if isinstance(line, Flaw)}

    def _has_seq(self, raw: bytes, seqs: Collection[int]) -> bool:
        line = self.lines.get(raw)
        return isinstance(line, Note) and line.seq in seqs


def hash_line(raw: bytes) -> str:
    """Return the name of a line: the hash of its bytes."""
    return hashlib.sha256(raw).hexdigest()


def unescape_line(raw: bytes) -> str:
    """Return a line as text, with JSON escapes replaced by the characters they stand for."""
    text = raw.decode(errors="replace")
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace('\\"', '"')


def parse_file(content: bytes, owner: Owner, known: ParsedFile) -> ParsedFile:
    """Parse `content`, reusing the lines that `known` has already parsed."""
    notes: dict[int, Note] = {}
    damaged: list[DamagedLine] = []
    lines: dict[bytes, Line] = {}
    first_at: dict[int, int] = {}
    highest = 0
    pieces = content.split(b"\n")
    for number, raw in enumerate(pieces, 1):
        line = lines[raw] = known.lines[raw] if raw in known.lines else parse_line(raw, owner)
        if line is None:
            continue
        highest = max(highest, line.seq)
        if isinstance(line, Flaw):
            is_torn = number == len(pieces) and line.reason == NOT_JSON
            damaged.append(DamagedLine(number, CUT_OFF if is_torn else line.reason))
        elif line.seq in notes:
            # The first line wins, so that no appended line can change an existing note.
            reason = f"Its id is already that of line {first_at[line.seq]}; give it another."
            damaged.append(DamagedLine(number, reason))
        else:
            notes[line.seq], first_at[line.seq] = line, number
    newest_first = dict(sorted(notes.items(), reverse=True))
    return ParsedFile(content, newest_first, tuple(damaged), highest, lines)


def append_lines(content: bytes, added: bytes) -> bytes:
    """Return `content` followed by whole lines, with a line feed in between if one is missing."""
    return content + (b"\n" if added and content and not content.endswith(b"\n") else b"") + added


CHANGED = "changed in the workspace's file"
CAME_WITH_IT = "came with the workspace"


@dataclass(frozen=True, slots=True)
class NoteTrust:
    """Trusted notes of one file: all above a number, and those that still have the recorded hash.

    Stored as text that only grows at its end: the number, then `id:hash` for each note. The last entry of an id counts.
    """

    through: int = 0
    hashes: Mapping[int, str] = field(default_factory=dict)

    def find_reason(self, seq: int, digest: str) -> str | None:
        """Return why a note is an import; None if it is the user's."""
        known = self.hashes.get(seq)
        if known is None:
            return CAME_WITH_IT if seq <= self.through else None
        return None if known == digest else CHANGED

    def __str__(self) -> str:
        return f"{self.through}{format_entries(self.hashes)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the stored text."""
        through, *entries = text.split()
        # An id without a hash was approved before hashes were recorded, so its text at that time is unknown.
        pairs = (entry.split(":") for entry in entries if ":" in entry)
        return cls(int(through), {int(seq): digest for seq, digest in pairs})


def mark_as_import(note: Memory, mode: str, reason: str) -> Memory:
    """Return the note as an import that waits for approval; `mode` is the setting `suspicious`."""
    rule = None if mode == "show" else instructions.find_instruction("\n".join([note.text, *note.tags]))
    flag = reason if rule is None else f"{reason}; {SUSPICIOUS}: {rule}"
    held_at = note.created_at if mode == "hold" and rule is not None else None
    return replace(note, origin=Origin.IMPORT, flag=flag, held_at=held_at)


def format_entries(hashes: Mapping[int, str]) -> str:
    return "".join(f" {seq}:{digest}" for seq, digest in hashes.items())
