"""The blocks of a prompt and their order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from recollect.errors import Invalid
from recollect.model import Json, Memory
from recollect.policy.memories.trust import UNVERIFIED, provenance
from recollect.policy.prompt.escaping import CONTINUED, as_item, as_line, wrapped
from recollect.policy.prompt.relevance import render_notes


def private_memory(core: Sequence[Memory], journal: Sequence[Memory]) -> str | None:
    """The block an agent reads about itself, oldest first; None when there is nothing to say."""
    sections = []
    if core:
        # Without its origin: what is little trusted enters core only once a person has approved it.
        sections.append("## Core Memories (permanent)\n" + "\n".join(f"- {as_item(memory.text)}" for memory in core))
    if journal:
        lines = (f"- [{memory.created_at:%Y-%m-%d}] {provenance(memory)}{as_item(memory.text)}" for memory in journal)
        sections.append("## Recent Journal Entries\n" + "\n".join(lines))
    return "# Your Private Memory\n\n" + "\n\n".join(sections) if sections else None


RECALLED_HEADING = "[Recalled Memories]"
KNOWLEDGE_HEADING = "[Knowledge]"
SKILLS_HEADING = "[Skills]"
TOOL_RESULT_HEADING = "[Tool Result]"
MOVED_HEADING = "[Moved out of this prompt; read it with retrieve_memory]"

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Layout(StrEnum):
    """In which order a prompt is written."""

    STANDARD = "standard"
    CACHE_STABLE = "cache_stable"


class Part(StrEnum):
    """Where a piece belongs."""

    SYSTEM_PROMPT = "system_prompt"
    CLOCK = "clock"
    SKILLS = "skills"
    CORE = "core"
    JOURNAL = "journal"
    NOTES = "notes"
    MEMORIES = "memories"
    KNOWLEDGE = "knowledge"
    CONVERSATION = "conversation"
    TOOL_RESULTS = "tool_results"
    MESSAGE = "message"


NEVER_CUT = (Part.SYSTEM_PROMPT, Part.CLOCK, Part.SKILLS, Part.MESSAGE)

BLOCKS: Mapping[Layout, Sequence[tuple[str, tuple[Part, ...]]]] = {
    Layout.STANDARD: (
        ("system_prompt", (Part.SYSTEM_PROMPT, Part.CLOCK)),
        ("skills", (Part.SKILLS,)),
        ("private_memory", (Part.CORE, Part.JOURNAL)),
        ("notes", (Part.NOTES,)),
        ("memories", (Part.MEMORIES,)),
        ("knowledge", (Part.KNOWLEDGE,)),
        ("conversation", (Part.CONVERSATION,)),
        ("tool_results", (Part.TOOL_RESULTS,)),
        ("message", (Part.MESSAGE,)),
    ),
    Layout.CACHE_STABLE: (
        ("system_prompt", (Part.SYSTEM_PROMPT,)),
        ("skills", (Part.SKILLS,)),
        ("core", (Part.CORE,)),
        ("conversation", (Part.CONVERSATION,)),
        ("tool_results", (Part.TOOL_RESULTS,)),
        ("clock", (Part.CLOCK,)),
        ("journal", (Part.JOURNAL,)),
        ("notes", (Part.NOTES,)),
        ("memories", (Part.MEMORIES,)),
        ("knowledge", (Part.KNOWLEDGE,)),
        ("message", (Part.MESSAGE,)),
    ),
}
"""The blocks of each layout, in order, and what each is made of."""

STABLE_BLOCKS = ("system_prompt", "skills", "core", "conversation")
"""The beginning of a `cache_stable` prompt, which only grows until its content changes."""


class Form(StrEnum):
    """How a piece is written."""

    ITEM = "item"  # a line of its block
    TURN = "turn"  # a message of the conversation, as it was said
    SUMMARY = "summary"  # stands for turns, as a message of its own
    REFERENCE = "reference"  # stands for what was moved, as a message of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One thing that may be shown to a model."""

    id: str
    text: str
    form: Form = Form.ITEM
    role: str = "system"
    label: str = ""  # in front of the text, such as "m-7, 2026-03-01"
    turn: int = 0  # which turn of the session it belongs to, from 1
    score: float | None = None
    source: str = ""  # where it was found, if its part does not say
    memory: Memory | None = None
    stored: str = ""  # the text as it is stored, where what is shown differs from it
    is_suspicious: bool = False  # it reads like instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A piece that was found and is not shown, and why."""

    piece: Piece
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """All the pieces of one call, by part, each part in its order."""

    layout: Layout
    pieces: Mapping[Part, tuple[Piece, ...]]
    left_out: Mapping[Part, tuple[LeftOut, ...]] = field(default_factory=dict)

    def of(self, part: Part) -> tuple[Piece, ...]:
        return self.pieces.get(part, ())

    def having(self, part: Part, pieces: Sequence[Piece], *, without: Sequence[Piece] = (), reason: str = "") -> Window:
        """The same window with other pieces in a part; those it goes `without` are remembered with the reason."""
        gone = tuple(LeftOut(piece=piece, reason=reason) for piece in without)
        left_out = {**self.left_out, part: (*self.left_out.get(part, ()), *gone)}
        return replace(self, pieces={**self.pieces, part: tuple(pieces)}, left_out=left_out)


def checked_layout(layout: str) -> Layout:
    """Raises: Invalid."""
    try:
        return Layout(layout)
    except ValueError:
        raise Invalid(f"There is no layout {str(layout)[:40]!r}; choose {' or '.join(Layout)}.") from None


def clock_text(now: datetime) -> str:
    """
    >>> clock_text(datetime(2026, 3, 1, 12, 5))
    'The date and time now: Sun 2026-03-01 12:05 UTC.'
    """
    return f"The date and time now: {DAYS[now.weekday()]} {now:%Y-%m-%d %H:%M} UTC."


def messages_of(window: Window, parts: tuple[Part, ...]) -> list[Json]:
    """One block as messages; none when it has nothing to say."""
    if parts[0] in (Part.CONVERSATION, Part.TOOL_RESULTS, Part.MESSAGE):
        return [_message(parts[0], piece) for piece in window.of(parts[0])]
    pieces = [piece for part in parts for piece in window.of(part)]
    alone = [{"role": piece.role, "content": piece.text} for piece in pieces if piece.form is not Form.ITEM]
    text = _block_text(parts, {part: [p for p in window.of(part) if p.form is Form.ITEM] for part in parts})
    return [*alone, {"role": "system", "content": text}] if text else alone


def _message(part: Part, piece: Piece) -> Json:
    if part is Part.TOOL_RESULTS and piece.form is Form.ITEM:
        return {"role": "user", "content": tool_result_text(piece)}  # what a tool says is no instruction
    return {"role": "user" if part is Part.MESSAGE else piece.role, "content": piece.text}


def _block_text(parts: tuple[Part, ...], items: Mapping[Part, Sequence[Piece]]) -> str | None:
    first, pieces = parts[0], items[parts[0]]
    if first in (Part.SYSTEM_PROMPT, Part.CLOCK):
        return "\n\n".join(piece.text for part in parts for piece in items[part] if piece.text)
    if first in (Part.CORE, Part.JOURNAL):
        private = private_memory(_memories(items.get(Part.CORE, ())), _memories(items.get(Part.JOURNAL, ())))
        return private and wrapped(private, "private_memory")
    if first is Part.NOTES:
        notes = render_notes(_memories(pieces))
        return notes and wrapped(notes, "notes")
    if not pieces:
        return None
    if first is Part.SKILLS:  # files of whoever runs this, not stored text: as they are
        return "\n\n".join([SKILLS_HEADING, *(piece.text for piece in pieces)])
    heading = RECALLED_HEADING if first is Part.MEMORIES else KNOWLEDGE_HEADING
    return wrapped("\n".join([heading, *map(_item, pieces)]), first.value)


def _item(piece: Piece) -> str:
    if piece.memory is not None:
        mark = provenance(piece.memory)
    else:
        mark = f"[{UNVERIFIED}] " if piece.is_suspicious else ""
    return f"- ({_plain(piece.label)}) {mark}{as_item(piece.text)}"


def tool_result_text(piece: Piece) -> str:
    """A tool's result as a message, with what it came from in its first line."""
    came_from = f" ({label})" if (label := _plain(piece.label)) else ""
    return f"{TOOL_RESULT_HEADING}{came_from}{CONTINUED}{as_item(piece.text)}"


def _memories(pieces: Sequence[Piece]) -> list[Memory]:
    return [piece.memory for piece in pieces if piece.memory is not None]


def _plain(text: str) -> str:
    """A label without what could end it early."""
    return as_line(re.sub(r"[()\[\]]", " ", text))
