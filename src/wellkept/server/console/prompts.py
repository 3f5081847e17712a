"""Prompts of an agent by the question they were for, block by block, and a playground that asks without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Query
from fastapi.responses import Response

from wellkept.api.views import CALLS_PAGE
from wellkept.errors import Invalid, NotFound, OverBudget
from wellkept.language.values import parse_min_relevance
from wellkept.model import Block, BlockItem, ContextCall, WorkingMemory
from wellkept.prompt.rules_window import STABLE_BLOCKS, text_digest
from wellkept.recall.rules_ranking import PURPOSES
from wellkept.server.console.pages import BOX_WIDTH as WIDTH
from wellkept.server.console.pages import AtAgent, clip, page_router, place
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import READ

LIMIT = 5
"""Results of a question to the playground."""

MESSAGE = "message"
"""Id of the item that is the question, and name of its block."""

MESSAGES = 200
"""Latest messages of a conversation among which the questions of its prompts are found."""

SESSION_CALLS = 40
"""Latest prompts of a conversation among which the one before and the one after are found."""

MAX_SHOWN, MAX_LEFT_OUT = 30, 10
"""Items of a block that the page lists. A block may consider thousands."""

TEXT_BYTES = 40_000
"""Bytes of texts on one page; the later items of a long prompt are listed without theirs."""

MAX_TEXT = 3_000
STABLE_LAYOUT = "cache_stable"
COLOURS: Mapping[str, int] = {
    "system_prompt": 6,
    "skills": 7,
    "core": 3,
    "private_memory": 3,
    "journal": 2,
    "notes": 1,
    "memories": 4,
    "knowledge": 5,
    "conversation": 8,
    "summary": 8,
    "message": 9,
}
"""Number in the palette of each block; others are grey."""

router = page_router("/agents/{agent}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Part of a token bar."""

    name: str
    tokens: int
    x: float
    width: float
    colour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBar:
    """A prompt against its budget: its blocks, then what was removed to make it fit."""

    segments: tuple[Segment, ...]
    removed: int  # tokens
    removed_x: float
    removed_width: float
    budget_x: float  # 0: beyond the scale
    stable: int  # tokens of the prefix that a provider can cache
    stable_width: float


@router.get("/prompts", scope=READ)
def list_prompts(
    visit: AtAgent, session: Annotated[str, Query()] = "", before: Annotated[str, Query()] = ""
) -> Response:
    """Show the latest prompts of an agent with the questions they were for."""
    calls = visit.memory.prompts.list(session_id=session.strip(), before=before, limit=CALLS_PAGE + 1, item=MESSAGE)
    listed = calls[:CALLS_PAGE]
    widest = max((_count_whole(call) for call in listed), default=1)
    return visit.page(
        "prompts.html",
        calls=[(call, draw_bar(call, widest)) for call in listed],
        questions=find_questions(visit.memory, listed),
        session=session,
        older=listed[-1].id if len(calls) > CALLS_PAGE else "",
    )


@router.get("/prompts/{id}", scope=READ)
def show_prompt(visit: AtAgent, id: Annotated[str, Path()]) -> Response:
    """Show a prompt as a bar and block by block."""
    call = visit.memory.prompts.get(id)
    calls = visit.memory.prompts.list(session_id=call.session_id, limit=SESSION_CALLS) if call.session_id else [call]
    earlier = next((each for each in calls if each.id < call.id), None)
    later = next((each for each in reversed(calls) if each.id > call.id), None)
    return visit.page(
        "prompt.html",
        call=call,
        question=find_questions(visit.memory, [call]).get(call.id, ""),
        bar=draw_bar(call, _count_whole(call)),
        blocks=list_blocks(call),
        colours=COLOURS,
        earlier=earlier,
        later=later,
        stable_blocks=STABLE_BLOCKS if call.layout == STABLE_LAYOUT else (),
    )


def find_questions(memory: CurrentAgent, calls: Sequence[ContextCall]) -> dict[str, str]:
    """Return the question of each prompt by its id, as far as a conversation has it.

    Prompts are kept as digests, so the text comes from the transcript, and is gone where that was erased.
    """
    asked = {call.id: item.digest for call in calls for item in _list_shown(_find_block(call, MESSAGE)).values()}
    said: dict[tuple[str, str], str] = {}
    for id in {call.session_id for call in calls if call.session_id}:
        try:
            last = memory.sessions.get(id).message_count
        except NotFound:
            continue
        for each in memory.sessions.messages(id, after=max(0, last - MESSAGES), limit=MESSAGES) if last else ():
            said[id, text_digest(each.content)] = each.content
    return {call.id: text for call in calls if (text := said.get((call.session_id, asked.get(call.id, ""))))}


def _find_block(call: ContextCall, name: str) -> Block | None:
    return next((block for block in call.blocks if block.name == name), None)


def draw_bar(call: ContextCall | WorkingMemory, widest: int) -> TokenBar:
    """Return a prompt as a bar, in a scale in which `widest` tokens fill it."""
    scale, segments, x, stable, is_stable = WIDTH / max(1, widest), [], 0.0, 0, call.layout == STABLE_LAYOUT
    for block in call.blocks:
        width = round(block.tokens * scale, 1)
        if block.tokens:
            colour = COLOURS.get(block.name, 0)
            segments.append(Segment(name=block.name, tokens=block.tokens, x=round(x, 1), width=width, colour=colour))
        is_stable = is_stable and block.name in STABLE_BLOCKS
        stable += block.tokens if is_stable else 0
        x += width
    removed = sum(each.tokens_removed for each in call.truncations)
    return TokenBar(
        segments=tuple(segments),
        removed=removed,
        removed_x=round(x, 1),
        removed_width=round(min(removed * scale, WIDTH - x), 1),
        budget_x=round(call.budget * scale, 1) if call.budget * scale <= WIDTH else 0,
        stable=stable,
        stable_width=round(stable * scale, 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBlock:
    """A block as the page lists it."""

    name: str
    tokens: int
    items: tuple[BlockItem, ...]
    shown: int  # items in the prompt
    left_out: int

    @property
    def more(self) -> int:
        return self.shown + self.left_out - len(self.items)


def list_blocks(call: ContextCall) -> list[ShownBlock]:
    """Return the blocks of a prompt with as many of their items and texts as fit a page."""
    blocks, room = [], TEXT_BYTES
    for block in call.blocks:
        shown = [item for item in block.items if not item.left_out]
        left_out = [item for item in block.items if item.left_out]
        items = []
        for item in (*shown[:MAX_SHOWN], *left_out[:MAX_LEFT_OUT]):
            text = None if item.text is None else clip(item.text, max(0, min(room, MAX_TEXT)))
            room -= 0 if text is None else len(text.encode(errors="replace"))
            items.append(replace(item, text=text))
        blocks.append(
            ShownBlock(
                name=block.name, tokens=block.tokens, items=tuple(items), shown=len(shown), left_out=len(left_out)
            )
        )
    return blocks


def _count_whole(call: ContextCall) -> int:
    """Return the tokens that a bar has to hold. What was removed is cut off at the size of the budget."""
    removed = min(sum(each.tokens_removed for each in call.truncations), call.budget // 2)
    return max(call.budget, call.tokens + removed)


def _list_shown(block: Block | None) -> dict[str, BlockItem]:
    return {} if block is None else {item.id: item for item in block.items if not item.left_out}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskQuery:
    """Parameters of the playground; its address reproduces it."""

    q: Annotated[str, Query()] = ""
    id: Annotated[str, Query()] = ""
    reader: Annotated[str, Query()] = ""  # `user` would limit the login itself
    limit: Annotated[int, Query()] = LIMIT
    purpose: Annotated[str, Query()] = ""
    min_relevance: Annotated[str, Query()] = ""
    where: Annotated[str, Query()] = ""
    as_of: Annotated[str, Query()] = ""
    budget: Annotated[str, Query()] = ""

    @property
    def has_options(self) -> bool:
        return self != AskQuery(q=self.q, reader=self.reader)

    def options(self) -> dict[str, Any]:
        """Return the arguments of `explain`. Raises: Invalid."""
        return {
            "limit": self.limit,
            "purpose": self.purpose or None,
            "min_relevance": parse_min_relevance(self.min_relevance),
            "where": self.where.strip() or None,
            "as_of": _parse_moment(self.as_of),
            "user": self.reader.strip() or None,
        }

    def address(self, agent: str, **changes: object) -> str:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return place("agents", agent, "ask", **values | changes)


@router.get("/ask", scope=READ)
def ask(visit: AtAgent, asked: Annotated[AskQuery, Depends()]) -> Response:
    """Explain a recall and assemble its prompt, without recording or marking anything."""
    explained, prompt, problem = None, None, ""
    try:
        options = asked.options()
        if asked.q.strip():
            explained = visit.memory.explain(asked.q, asked.id.strip() or None, **options)
            shared = {name: options[name] for name in ("min_relevance", "where", "user")}
            prompt = visit.memory.prompts.preview(asked.q, budget=_parse_budget(asked.budget), **shared)
    except (Invalid, OverBudget) as error:
        problem = str(error)
    return visit.page(
        "ask.html",
        asked=asked,
        id=asked.id.strip(),
        purposes=[*PURPOSES],
        explained=explained,
        prompt=prompt,
        bar=None if prompt is None else draw_bar(prompt, prompt.tokens),
        problem=problem,
    )


def _parse_budget(text: str) -> int | None:
    """Raises: Invalid."""
    if not text.strip():
        return None
    if not text.strip().isdecimal():
        raise Invalid("The budget is a number of tokens, such as 2000.")
    return int(text)


def _parse_moment(text: str) -> datetime | None:
    """Raises: Invalid."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Invalid("`as_of` is a date or a time, such as 2026-10-01 or 2026-10-01T09:00.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
