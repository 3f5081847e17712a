"""Prompt windows: their parts, pieces and layouts, rendered as messages, counted and described for the log."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import groupby

from wellkept.details.rules_keys import PREFIX, find_references
from wellkept.errors import Invalid
from wellkept.facts.rules_profile import PROFILE_HEADING
from wellkept.language.text import check_text, fold
from wellkept.memory.rules_trust import UNVERIFIED, provenance
from wellkept.model import Block, BlockItem, Json, Memory
from wellkept.prompt.rules_escaping import CONTINUED, escape_item, escape_line, to_one_line, wrap_block
from wellkept.prompt.rules_relevance import render_notes
from wellkept.prompt.rules_tokens import REPLY_TOKENS, CountText, count_message


def private_memory(core: Sequence[Memory], journal: Sequence[Memory]) -> str | None:
    """Render the block an agent reads about itself, oldest first; return None if it is empty."""
    sections = []
    if core:
        # Core items carry no origin: a person approved them if their origin has low trust.
        sections.append(
            "## Core Memories (permanent)\n" + "\n".join(f"- {escape_item(memory.text)}" for memory in core)
        )
    if journal:
        lines = (
            f"- [{memory.created_at:%Y-%m-%d}] {provenance(memory)}{escape_item(memory.text)}" for memory in journal
        )
        sections.append("## Recent Journal Entries\n" + "\n".join(lines))
    return "# Your Private Memory\n\n" + "\n\n".join(sections) if sections else None


RECALLED_HEADING = "[Recalled Memories]"
KNOWLEDGE_HEADING = "[Knowledge]"
SKILLS_HEADING = "[Skills]"
TOOL_RESULT_HEADING = "[Tool Result]"
MOVED_HEADING = "[Moved out of this prompt; read it by its reference]"

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Layout(StrEnum):
    """Order of the blocks in a prompt."""

    STANDARD = "standard"
    CACHE_STABLE = "cache_stable"


class PromptPart(StrEnum):
    """Part of a prompt that a piece belongs to."""

    SYSTEM_PROMPT = "system_prompt"
    CLOCK = "clock"
    SKILLS = "skills"
    CORE = "core"
    JOURNAL = "journal"
    NOTES = "notes"
    PROFILE = "profile"
    MEMORIES = "memories"
    KNOWLEDGE = "knowledge"
    CONVERSATION = "conversation"
    TOOL_RESULTS = "tool_results"
    MESSAGE = "message"


NEVER_CUT = (PromptPart.SYSTEM_PROMPT, PromptPart.CLOCK, PromptPart.SKILLS, PromptPart.MESSAGE)

REMEMBERED = (
    PromptPart.CORE,
    PromptPart.JOURNAL,
    PromptPart.NOTES,
    PromptPart.PROFILE,
    PromptPart.MEMORIES,
    PromptPart.KNOWLEDGE,
)
"""Parts that come from memory."""

_Blocks = Sequence[tuple[str, tuple[PromptPart, ...]]]


def _list_blocks(*parts: PromptPart) -> _Blocks:
    return [(part.value, (part,)) for part in parts]


_IN_TALK = (PromptPart.CONVERSATION, PromptPart.TOOL_RESULTS)
BLOCKS: Mapping[Layout, _Blocks] = {
    Layout.STANDARD: (
        (PromptPart.SYSTEM_PROMPT.value, (PromptPart.SYSTEM_PROMPT, PromptPart.CLOCK)),
        *_list_blocks(PromptPart.SKILLS),
        ("private_memory", (PromptPart.CORE, PromptPart.JOURNAL)),
        *_list_blocks(*REMEMBERED[2:], *_IN_TALK, PromptPart.MESSAGE),
    ),
    Layout.CACHE_STABLE: _list_blocks(
        PromptPart.SYSTEM_PROMPT,
        PromptPart.SKILLS,
        PromptPart.CORE,
        *_IN_TALK,
        PromptPart.CLOCK,
        *REMEMBERED[1:],
        PromptPart.MESSAGE,
    ),
}
"""Blocks of each layout in order, with the parts they consist of."""

STABLE_BLOCKS = ("system_prompt", "skills", "core", "conversation")
"""First blocks of a `cache_stable` prompt, which only grow until their content changes."""


class Form(StrEnum):
    """Form in which a piece is rendered."""

    ITEM = "item"  # a line of its block
    TURN = "turn"  # a verbatim message of the conversation
    SUMMARY = "summary"  # a message that replaces turns
    REFERENCE = "reference"  # a message that replaces moved pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One unit of a prompt."""

    id: str
    text: str
    form: Form = Form.ITEM
    role: str = "system"
    label: str = ""  # shown before the text, such as "m-7, 2026-03-01"
    turn: int = 0  # number of its turn in the session, from 1
    score: float | None = None
    relevance: float = 0.0  # of a hit to the message, calibrated
    source: str = ""  # source, if it does not follow from the part
    memory: Memory | None = None
    stored: str = ""  # the stored text, if it differs from the rendered one
    is_suspicious: bool = False  # reads like instructions


def identify_piece(piece: Piece) -> tuple[str, ...]:
    """Return the keys that identify a piece: its memory's id and its normalized text."""
    text = " ".join(fold(piece.text).split())
    return (text,) if piece.memory is None else (piece.memory.id, text)


NO_ROOM = "budget"
SHOWN_ELSEWHERE = "shown in {}"
"""Reasons to leave a piece out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A piece that was found but is not shown, with the reason."""

    piece: Piece
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """All pieces of one prompt, by part and in order."""

    layout: Layout
    pieces: Mapping[PromptPart, tuple[Piece, ...]]
    left_out: Mapping[PromptPart, tuple[LeftOut, ...]] = field(default_factory=dict)

    def of(self, part: PromptPart) -> tuple[Piece, ...]:
        return self.pieces.get(part, ())

    def with_pieces(
        self, part: PromptPart, pieces: Sequence[Piece], *, without: Sequence[Piece] = (), reason: str = ""
    ) -> Window:
        """Return a window with other pieces in a part; record those it goes `without` as left out."""
        omitted = tuple(LeftOut(piece=piece, reason=reason) for piece in without)
        left_out = {**self.left_out, part: (*self.left_out.get(part, ()), *omitted)}
        return replace(self, pieces={**self.pieces, part: tuple(pieces)}, left_out=left_out)


def parse_layout(layout: str) -> Layout:
    """Parse a layout name.

    Raises: Invalid.
    """
    try:
        return Layout(layout)
    except ValueError:
        raise Invalid(f"There is no layout {str(layout)[:40]!r}; choose {' or '.join(Layout)}.") from None


def check_participants(names: object) -> Sequence[str]:
    """Return the names of those in a group conversation, each on one line.

    Raises: Invalid.
    """
    if isinstance(names, str | Mapping) or not isinstance(names, Collection):
        raise Invalid('Participants are a list of names, such as ["Lena", "Otto"].')
    found = [to_one_line(check_text(name, what="name of a participant")) for name in names]
    if not all(found):
        raise Invalid("The name of a participant cannot be blank.")
    return found


def render_identity(name: str) -> str:
    """Render the system prompt of an agent that has none.

    >>> render_identity("Atlas")
    'You are Atlas.'
    """
    return f"You are {escape_line(name)}."


def render_group(others: Sequence[str]) -> str:
    """Render the lines that tell an agent with whom it is in a group conversation.

    >>> render_group(["Lena", "Otto\\n[End of memories]"])
    'You take part in a group conversation.\\nOther participants: Lena, Otto (End of memories).'
    """
    return f"You take part in a group conversation.\nOther participants: {', '.join(map(escape_line, others))}."


def render_clock(now: datetime) -> str:
    """Render the current date and time for a prompt.

    >>> render_clock(datetime(2026, 3, 1, 12, 5))
    'The date and time now: Sun 2026-03-01 12:05 UTC.'
    """
    return f"The date and time now: {DAYS[now.weekday()]} {now:%Y-%m-%d %H:%M} UTC."


def render_block(window: Window, parts: tuple[PromptPart, ...]) -> list[Json]:
    """Render one block as messages; empty if the block is empty."""
    if parts[0] in (PromptPart.CONVERSATION, PromptPart.TOOL_RESULTS, PromptPart.MESSAGE):
        return [_message(parts[0], piece) for piece in window.of(parts[0])]
    pieces = [piece for part in parts for piece in window.of(part)]
    alone = [{"role": piece.role, "content": piece.text} for piece in pieces if piece.form is not Form.ITEM]
    text = _block_text(parts, {part: [p for p in window.of(part) if p.form is Form.ITEM] for part in parts})
    return [*alone, {"role": "system", "content": text}] if text else alone


def _message(part: PromptPart, piece: Piece) -> Json:
    if part is PromptPart.TOOL_RESULTS and piece.form is Form.ITEM:
        # Tool output must not pass for instructions, so it has the role of a user.
        return {"role": "user", "content": render_tool_result(piece)}
    return {"role": "user" if part is PromptPart.MESSAGE else piece.role, "content": piece.text}


def _block_text(parts: tuple[PromptPart, ...], items: Mapping[PromptPart, Sequence[Piece]]) -> str | None:
    first, pieces = parts[0], items[parts[0]]
    if first in (PromptPart.SYSTEM_PROMPT, PromptPart.CLOCK):
        return "\n\n".join(piece.text for part in parts for piece in items[part] if piece.text)
    if first in (PromptPart.CORE, PromptPart.JOURNAL):
        private = private_memory(
            _memories(items.get(PromptPart.CORE, ())), _memories(items.get(PromptPart.JOURNAL, ()))
        )
        return private and wrap_block(private, "private_memory")
    if first is PromptPart.NOTES:
        notes = render_notes(_memories(pieces))
        return notes and wrap_block(notes, "notes")
    if not pieces:
        return None
    if first is PromptPart.PROFILE:
        # Without ids and dates: they would take a quarter of the block, which the fitting has bounded.
        lines = (f"- {provenance(each)}{escape_item(each.text)}" for each in _memories(pieces))
        return wrap_block("\n".join([PROFILE_HEADING, *lines]), "profile")
    # Skills are the operator's own files, not stored text, so they are not escaped.
    if first is PromptPart.SKILLS:
        return "\n\n".join([SKILLS_HEADING, *(piece.text for piece in pieces)])
    heading = RECALLED_HEADING if first is PromptPart.MEMORIES else KNOWLEDGE_HEADING
    return wrap_block("\n".join([heading, *map(_item, pieces)]), first.value)


def _item(piece: Piece) -> str:
    if piece.memory is not None:
        mark = provenance(piece.memory)
    else:
        mark = f"[{UNVERIFIED}] " if piece.is_suspicious else ""
    return f"- ({_without_brackets(piece.label)}) {mark}{escape_item(piece.text)}"


def render_tool_result(piece: Piece) -> str:
    """Render a tool's result as a message with its source in the first line."""
    source = f" ({label})" if (label := _without_brackets(piece.label)) else ""
    return f"{TOOL_RESULT_HEADING}{source}{CONTINUED}{escape_item(piece.text)}"


def _memories(pieces: Sequence[Piece]) -> list[Memory]:
    return [piece.memory for piece in pieces if piece.memory is not None]


def _without_brackets(text: str) -> str:
    """Replace brackets in a label, which could end it early."""
    return escape_line(re.sub(r"[()\[\]]", " ", text))


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedBlock:
    """One block rendered as messages."""

    name: str
    messages: Sequence[Json]
    tokens: int
    references: frozenset[str]  # keys of the references it mentions


class Renderer:
    """Renderer with a cache, for windows that differ little, such as the steps of fitting one."""

    def __init__(self, count: CountText) -> None:
        self.count = count
        self._blocks: dict[tuple[str, tuple[int, ...]], tuple[RenderedBlock, object]] = {}
        self._frames: dict[str, int] = {}  # tokens of an empty message by role
        self._contents: dict[str, int] = {}

    def blocks(self, window: Window) -> list[RenderedBlock]:
        """Render the non-empty blocks in the order of the layout."""
        rendered = (self._block(window, name, parts) for name, parts in BLOCKS[window.layout])
        return [block for block in rendered if block.messages]

    def prompt(self, window: Window) -> list[Json]:
        """Render all messages in order."""
        return [message for block in self.blocks(window) for message in block.messages]

    def tokens(self, window: Window) -> int:
        """Count the tokens a provider bills for the window, including the start of the reply."""
        total = sum(block.tokens for block in self.blocks(window))
        return total + REPLY_TOKENS if total else 0

    def references(self, window: Window) -> set[str]:
        """Return the keys of all references the window mentions."""
        return {key for block in self.blocks(window) for key in block.references}

    def cost(self, role: str, content: str) -> int:
        """Count the tokens of one message."""
        if role not in self._frames:
            self._frames[role] = count_message({"role": role}, self.count)
        if content not in self._contents:
            self._contents[content] = self.count(content)
        return self._frames[role] + self._contents[content]

    def _block(self, window: Window, name: str, parts: tuple[PromptPart, ...]) -> RenderedBlock:
        pieces = [window.of(part) for part in parts]
        cache_key = name, tuple(map(id, pieces))
        if cache_key not in self._blocks:
            messages = render_block(window, parts)
            rendered = RenderedBlock(
                name=name,
                messages=messages,
                tokens=sum(self.cost(message["role"], message["content"]) for message in messages),
                references=frozenset(key for message in messages for key in find_mentions(message["content"])),
            )
            # Keep the pieces alive so that no other object reuses their id().
            self._blocks[cache_key] = rendered, pieces
        return self._blocks[cache_key][0]


def find_mentions(text: str) -> Mapping[str, str]:
    """Return the placeholders of the references a text mentions, by key."""
    return {found.key: found.text for found in find_references(text)} if PREFIX in text else {}


def find_all_mentions(pieces: Sequence[Piece]) -> Mapping[str, str]:
    """Return the placeholders of the references several pieces mention, by key."""
    return {key: text for piece in pieces for key, text in find_mentions(piece.text).items()}


DIGEST_CHARS = 16
SOURCES = {
    **dict.fromkeys(REMEMBERED, "memory"),
    PromptPart.KNOWLEDGE: "knowledge",
    PromptPart.SKILLS: "skill",
    PromptPart.CONVERSATION: "conversation",
    PromptPart.TOOL_RESULTS: "tool_result",
}


def text_digest(text: str) -> str:
    """Return a short digest that identifies a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]


def build_blocks(window: Window, drawing: Renderer) -> tuple[Block, ...]:
    """Return every block with its cost and items; empty blocks only if something was left out of them."""
    tokens = {block.name: block.tokens for block in drawing.blocks(window)}
    blocks, cut = [], _find_cut(window)
    for name, parts in BLOCKS[window.layout]:
        items = tuple(item for part in parts for item in _items(window, part, cut))
        if name in tokens or items:
            blocks.append(Block(name=name, tokens=tokens.get(name, 0), items=items))
    return tuple(blocks)


def stable_messages(window: Window, drawing: Renderer) -> int:
    """Count the leading messages that the next prompt will share; 0 in the standard layout, which promises none."""
    if window.layout is not Layout.CACHE_STABLE:
        return 0
    return sum(len(block.messages) for block in drawing.blocks(window) if block.name in STABLE_BLOCKS)


def _find_cut(window: Window) -> dict[str, frozenset[str]]:
    """Map each reason "shown in …" to the pieces that this part had no room for after all, by identity."""
    reasons = {each.reason for left_out in window.left_out.values() for each in left_out}
    return {
        reason: frozenset(name for each in left_out if each.reason == NO_ROOM for name in identify_piece(each.piece))
        for part, left_out in window.left_out.items()
        if (reason := SHOWN_ELSEWHERE.format(part.value)) in reasons
    }


def _items(window: Window, part: PromptPart, cut: Mapping[str, frozenset[str]]) -> Iterator[BlockItem]:
    def find_reason(each: LeftOut) -> str:
        is_cut = each.reason in cut and not cut[each.reason].isdisjoint(identify_piece(each.piece))
        return NO_ROOM if is_cut else each.reason

    yield from _block_items(part, window.of(part), "")
    for reason, left_out in groupby(window.left_out.get(part, ()), key=find_reason):
        yield from _block_items(part, [each.piece for each in left_out], reason)


def _block_items(part: PromptPart, pieces: Sequence[Piece], reason: str) -> Iterator[BlockItem]:
    """Yield one item per piece; adjacent turns are combined because there may be many."""
    for is_turn, group in groupby(pieces, key=lambda piece: piece.form is Form.TURN):
        if is_turn:
            yield _turns_item(list(group), reason)
            continue
        for piece in group:
            yield BlockItem(
                id=piece.id,
                source=piece.source or (SOURCES.get(part, part.value) if piece.form is Form.ITEM else piece.form.value),
                score=piece.score,
                digest=text_digest(piece.stored or piece.text),
                left_out=reason,
            )


def _turns_item(turns: Sequence[Piece], reason: str) -> BlockItem:
    first, last = turns[0].turn, turns[-1].turn
    return BlockItem(
        id=f"turn {first}" if first == last else f"turns {first} to {last}",
        source=Form.TURN.value,
        digest=text_digest("\0".join(piece.text for piece in turns)),
        left_out=reason,
    )
