"""Format of the notes file: one note as one line of JSON, and a parser for the whole file.

Other programs write these lines too. Parsing accepts what loses nothing (missing or empty `scope` and `tags`, unknown
fields, any order, CRLF, a byte order mark) and reports everything else as a flaw that a person can fix.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from wellkept.errors import Invalid
from wellkept.language.names import memory_seq
from wellkept.language.text import check_text, fold
from wellkept.memory.rules_kinds import BLANK, RULES, check_tags
from wellkept.model import Kind, Memory, Owner, Scope

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
