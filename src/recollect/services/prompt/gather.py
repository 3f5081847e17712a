"""Everything that may enter the next prompt, gathered: nothing twice, nothing cut yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.errors import Invalid
from recollect.model import Conversation, Hit, Memory, Owner, Source
from recollect.policy.memories.trust import Judge
from recollect.policy.prompt.budget import FOUND
from recollect.policy.prompt.escaping import as_item
from recollect.policy.prompt.window import Form, Layout, LeftOut, Part, Piece, Window, clock_text
from recollect.policy.recall.purposes import is_unverified
from recollect.policy.text import checked_text, fold
from recollect.ports import Store
from recollect.services.knowledge.skills import Skills
from recollect.services.prompt.blocks import Inject, private_memories, with_real_references
from recollect.services.recall.recall import Recall, RecallRequest

MAX_TOOL_RESULTS = 20
"""Stored results of tools that a prompt begins with, the newest; the older ones can be recalled."""

SPARE = 3
"""How many times more is recalled than shown, since some of it is in the prompt already."""

SHOWN_ELSEWHERE = "shown in {}"
STORED = (Part.CORE, Part.JOURNAL, Part.NOTES, Part.MEMORIES, Part.KNOWLEDGE, Part.TOOL_RESULTS)
"""Parts whose text is data. What was said in the conversation is shown as it was said."""

Converse = Callable[[Owner, str], Conversation]
"""What was said in a session, as far as the next prompt needs it."""

ToolResult = str | Mapping[str, str]
"""What a tool said: its text, or `{"content": …, "name": …}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the next prompt is for."""

    owner: Owner
    session_id: str
    message: str
    system_prompt: str | None
    tool_results: Sequence[ToolResult] | None
    layout: Layout
    now: datetime


class Gather:
    """Reads every shelf once and puts the pieces in order."""

    def __init__(
        self,
        store: Store,
        judge: Judge,
        *,
        inject: Inject,
        recall: Recall,
        skills: Skills,
        converse: Converse,
    ) -> None:
        self._store = store
        self._judge = judge
        self._inject = inject
        self._recall = recall
        self._skills = skills
        self._converse = converse

    def __call__(self, asked: Asked) -> Window:
        """Raises: Invalid."""
        owner = asked.owner
        core, journal = private_memories(self._store, owner, self._judge, now=asked.now)
        pieces: dict[Part, Sequence[Piece]] = {
            Part.SYSTEM_PROMPT: self._system_prompt(asked),
            Part.CLOCK: [Piece(id="clock", text=clock_text(asked.now))],
            Part.SKILLS: [Piece(id=each.name, text=each.body) for each in self._skills.for_agent(owner)],
            Part.CORE: _of_memories(core),
            Part.JOURNAL: _of_memories(journal),
            Part.NOTES: _of_memories(self._inject.picked(owner, asked.message)),
            Part.CONVERSATION: _of_conversation(self._converse(owner, asked.session_id)),
            Part.TOOL_RESULTS: self._tool_results(asked),
            Part.MESSAGE: [Piece(id="message", text=asked.message)] if asked.message.strip() else [],
        }
        left_out: dict[Part, tuple[LeftOut, ...]] = {}
        if asked.message.strip():
            hits = self._recall.rank(owner, RecallRequest(query=asked.message, limit=SPARE * FOUND)).hits
            passages = sorted((hit for hit in hits if hit.source is Source.KNOWLEDGE), key=_dissimilarity)
            known = _Known(pieces)
            for part, found in (
                (Part.MEMORIES, [hit for hit in hits if hit.source is not Source.KNOWLEDGE]),
                (Part.KNOWLEDGE, passages),
            ):
                pieces[part], left_out[part] = known.new(map(_of_hit, found))
        shown = {part: tuple(self._shown(owner, part, each)) for part, each in pieces.items()}
        return Window(layout=asked.layout, pieces=shown, left_out=left_out)

    def _shown(self, owner: Owner, part: Part, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """The pieces with forged references broken, where they come from the store or from a tool."""
        if part not in STORED:
            return pieces
        texts = with_real_references(self._store, owner, [piece.text for piece in pieces])
        return [
            piece if text == piece.text else _with_text(piece, text) for piece, text in zip(pieces, texts, strict=True)
        ]

    def _system_prompt(self, asked: Asked) -> list[Piece]:
        """The one that was given; without one, the agent's own."""
        text = asked.system_prompt
        if text is None:
            agent = self._store.find_agent(asked.owner)
            text = "" if agent is None else agent.system_prompt
        return [Piece(id="system prompt", text=text)] if text.strip() else []

    def _tool_results(self, asked: Asked) -> list[Piece]:
        """Those that were given; without any, what is stored of this session with the role of a tool's result."""
        if asked.tool_results is not None:
            return [_tool_result(number, each) for number, each in enumerate(asked.tool_results, start=1)]
        stored = self._store.list_tool_results(asked.owner, asked.session_id, now=asked.now, limit=MAX_TOOL_RESULTS)
        return [
            Piece(id=each.id, text=each.text, label=f"{each.id}, {each.created_at:%Y-%m-%d %H:%M}", memory=each)
            for each in map(self._judge, reversed(stored))
        ]


class _Known:
    """What the prompt shows already, and where."""

    def __init__(self, pieces: Mapping[Part, Sequence[Piece]]) -> None:
        self._places: dict[str, Part] = {}
        for part in (Part.CORE, Part.JOURNAL, Part.NOTES, Part.CONVERSATION, Part.TOOL_RESULTS):
            self.add(part, pieces[part])

    def add(self, part: Part, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            for name in _names(piece):
                self._places.setdefault(name, part)

    def new(self, found: Iterable[Piece]) -> tuple[list[Piece], tuple[LeftOut, ...]]:
        """The first few that are not shown yet, and those before them that are. What reads like instructions only gets
        the places that are left."""
        new: list[Piece] = []
        doubtful: list[Piece] = []
        left_out: list[LeftOut] = []
        for piece in found:
            if len(new) == FOUND:
                break
            places = [self._places[name] for name in _names(piece) if name in self._places]
            if places:
                left_out.append(LeftOut(piece=piece, reason=SHOWN_ELSEWHERE.format(places[0].value)))
            else:
                (doubtful if piece.is_suspicious else new).append(piece)
        return [*new, *doubtful][:FOUND], tuple(left_out)


def _names(piece: Piece) -> tuple[str, ...]:
    """By what a piece is recognised: its memory's id, and what it says."""
    said = " ".join(fold(piece.text).split())
    return (said,) if piece.memory is None else (piece.memory.id, said)


def _of_memories(memories: Sequence[Memory]) -> list[Piece]:
    return [Piece(id=memory.id, text=memory.text, label=memory.id, memory=memory) for memory in memories]


def _of_conversation(conversation: Conversation) -> list[Piece]:
    summary = [
        Piece(id="summary", text=as_item(message["content"]), stored=message["content"], form=Form.SUMMARY)
        for message in conversation.messages[: len(conversation.messages) - len(conversation.turns)]
    ]
    return summary + [
        Piece(id=f"turn {turn}", text=each.content, form=Form.TURN, role=each.role.value, turn=turn)
        for each in conversation.turns
        for turn in [(each.position + 1) // 2]  # a turn is what the user said and the answer to it
    ]


def _dissimilarity(hit: Hit) -> float:
    return -hit.parts["similarity"]


def _of_hit(hit: Hit) -> Piece:
    """Named as the loop guard knows it: a memory by its id, anything else by where it comes from."""
    named = hit.id if hit.source is Source.MEMORY else hit.source.value
    return Piece(
        id=hit.id,
        text=hit.text,
        label=f"{named}, {hit.created_at:%Y-%m-%d}",
        score=hit.score,
        source=hit.source.value,
        memory=hit.memory,
        is_suspicious=is_unverified(hit),
    )


def _with_text(piece: Piece, text: str) -> Piece:
    memory = None if piece.memory is None else replace(piece.memory, text=text)
    return replace(piece, text=text, memory=memory, stored=piece.stored or piece.text)


def _tool_result(number: int, given: object) -> Piece:
    if isinstance(given, str):
        given = {"content": given}
    if not isinstance(given, Mapping) or not isinstance(given.get("content"), str):
        raise Invalid('A tool result is a text, or {"content": "…", "name": "…"}.')
    name = given.get("name") or ""
    text = checked_text(given["content"], what="tool result")
    return Piece(id=f"tool {number}", text=text, label=checked_text(name, what="name of a tool"))
