"""The notes file as it was read once: its notes by number, and the lines that are set aside."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from recollect.model import Owner
from recollect.store.notes.lines import CUT_OFF, NOT_JSON, Flaw, Note, parsed

Line = Note | Flaw | None
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")


@dataclass(frozen=True, slots=True)
class Damaged:
    """A line that is kept in the file but shown nowhere else."""

    line: int  # 1 is the first
    reason: str


@dataclass(frozen=True, slots=True)
class Page:
    """One reading of the whole file."""

    content: bytes = b""
    notes: Mapping[int, Note] = field(default_factory=dict)  # the newest, which has the highest number, first
    damaged: tuple[Damaged, ...] = ()
    highest: int = 0  # of all numbers in the file, also those of damaged lines
    lines: Mapping[bytes, Line] = field(default_factory=dict)

    def without(self, seqs: Collection[int]) -> bytes:
        """The content without these notes: every line that has such an id goes, all others stay byte for byte."""
        *lines, tail = self.content.split(b"\n")
        kept = [raw + b"\n" for raw in lines if not self._is_one_of(raw, seqs)]
        return b"".join(kept) + (b"" if self._is_one_of(tail, seqs) else tail)

    def spoken(self) -> Mapping[int, Sequence[str]]:
        """What the lines of each note say, whichever of them counts, with fields that only other programs know."""
        found: dict[int, list[str]] = {}
        for raw, line in self.lines.items():
            if isinstance(line, Note):
                found.setdefault(line.seq, []).append(readable(raw))
        return found

    def set_aside(self) -> Mapping[str, str]:
        """What the lines say that hold no note, by a name for each."""
        return {name_of(raw): readable(raw) for raw, line in self.lines.items() if isinstance(line, Flaw)}

    def without_lines(self, seqs: Collection[int], names: Collection[str]) -> bytes:
        """The content without these notes and without the lines of these names."""
        lines = self.without(seqs).split(b"\n")
        return b"\n".join(raw for raw in lines if name_of(raw) not in names)

    def _is_one_of(self, raw: bytes, seqs: Collection[int]) -> bool:
        line = self.lines.get(raw)
        return isinstance(line, Note) and line.seq in seqs


def name_of(raw: bytes) -> str:
    """What tells a line from others."""
    return hashlib.sha256(raw).hexdigest()


def readable(raw: bytes) -> str:
    """A line with its escaped characters as what they stand for."""
    text = raw.decode(errors="replace")
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace('\\"', '"')


def page_of(content: bytes, owner: Owner, known: Page) -> Page:
    """Read `content`; lines that `known` has already understood are not parsed again."""
    notes: dict[int, Note] = {}
    damaged: list[Damaged] = []
    lines: dict[bytes, Line] = {}
    first_at: dict[int, int] = {}
    highest = 0
    pieces = content.split(b"\n")
    for number, raw in enumerate(pieces, 1):
        line = lines[raw] = known.lines[raw] if raw in known.lines else parsed(raw, owner)
        if line is None:
            continue
        highest = max(highest, line.seq)
        if isinstance(line, Flaw):
            is_torn = number == len(pieces) and line.reason == NOT_JSON
            damaged.append(Damaged(number, CUT_OFF if is_torn else line.reason))
        elif line.seq in notes:
            # The first one wins: whatever is appended later, a note once acknowledged stays what it is.
            damaged.append(Damaged(number, f"Its id is already that of line {first_at[line.seq]}; give it another."))
        else:
            notes[line.seq], first_at[line.seq] = line, number
    newest_first = dict(sorted(notes.items(), reverse=True))
    return Page(content, newest_first, tuple(damaged), highest, lines)


def with_lines(content: bytes, added: bytes) -> bytes:
    """`content` with whole lines behind it."""
    return content + (b"\n" if added and content and not content.endswith(b"\n") else b"") + added
