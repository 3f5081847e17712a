"""Prompts of an agent by the question they were for: bars of tokens, block by block, with changes between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Path, Query, Request
from fastapi.responses import Response

from wellkept.api.agent import CALLS_PAGE
from wellkept.errors import NotFound
from wellkept.model import Block, BlockItem, ContextCall, WorkingMemory
from wellkept.prompt.rules_prompt_log import digest
from wellkept.prompt.rules_window import STABLE_BLOCKS
from wellkept.server.console.charts import HEIGHT, WIDTH, shorten
from wellkept.server.console.pages import clip, page, page_router
from wellkept.server.http.auth import CurrentAgent, CurrentTenant
from wellkept.server.http.routing import READ

MESSAGE = "message"
"""Id of the item that is the question, and name of its block."""

MESSAGES = 200
"""Latest messages of a conversation among which the questions of its prompts are found."""

SESSION_CALLS = 40
"""Prompts of a conversation in its plot."""

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

router = page_router("/agents/{agent}/prompts")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChange:
    """Differences of one block to the prompt before."""

    name: str
    tokens: int  # more, or fewer if negative
    added: tuple[BlockItem, ...]
    gone: tuple[BlockItem, ...]
    changed: tuple[BlockItem, ...]


@router.get("", scope=READ)
def list_prompts(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    session: Annotated[str, Query()] = "",
    before: Annotated[str, Query()] = "",
) -> Response:
    """Show the latest prompts of an agent with the questions they were for."""
    agent = tenant.agents.get(memory.owner.agent)
    calls = memory.prompts.list(session_id=session.strip(), before=before, limit=CALLS_PAGE + 1, item=MESSAGE)
    listed = calls[:CALLS_PAGE]
    widest = max((_count_whole(call) for call in listed), default=1)
    return page(
        request,
        "prompts.html",
        agent=agent,
        calls=[(call, draw_bar(call, widest)) for call in listed],
        questions=find_questions(memory, listed),
        plot=plot_session(calls, "") if session and len(calls) > 1 else None,
        session=session,
        older=listed[-1].id if len(calls) > CALLS_PAGE else "",
    )


@router.get("/{id}", scope=READ)
def show_prompt(request: Request, tenant: CurrentTenant, memory: CurrentAgent, id: Annotated[str, Path()]) -> Response:
    """Show a prompt as a bar and block by block, with its changes to the prompt before it in the conversation."""
    agent, call = tenant.agents.get(memory.owner.agent), memory.prompts.get(id)
    calls = memory.prompts.list(session_id=call.session_id, limit=SESSION_CALLS) if call.session_id else [call]
    earlier = next((each for each in calls if each.id < call.id), None)
    later = next((each for each in reversed(calls) if each.id > call.id), None)
    return page(
        request,
        "prompt.html",
        agent=agent,
        call=call,
        question=find_questions(memory, [call]).get(call.id, ""),
        bar=draw_bar(call, _count_whole(call)),
        blocks=list_blocks(call),
        colours=COLOURS,
        earlier=earlier,
        later=later,
        changes=[] if earlier is None else compare_calls(earlier, call),
        plot=plot_session(calls, call.id) if len(calls) > 1 else None,
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
            said[id, digest(each.content)] = each.content
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


def compare_calls(earlier: ContextCall, call: ContextCall) -> list[BlockChange]:
    """Return the blocks that differ from the prompt before, by the ids and digests of what they showed."""
    old = {block.name: block for block in earlier.blocks}
    new = {block.name: block for block in call.blocks}
    changes = []
    for name in dict.fromkeys([*new, *old]):
        before, after = _list_shown(old.get(name)), _list_shown(new.get(name))
        change = BlockChange(
            name=name,
            tokens=(new[name].tokens if name in new else 0) - (old[name].tokens if name in old else 0),
            added=tuple(item for id, item in after.items() if id not in before),
            gone=tuple(item for id, item in before.items() if id not in after),
            changed=tuple(item for id, item in after.items() if id in before and before[id].digest != item.digest),
        )
        if change.tokens or change.added or change.gone or change.changed:
            changes.append(change)
    return changes


def _list_shown(block: Block | None) -> dict[str, BlockItem]:
    return {} if block is None else {item.id: item for item in block.items if not item.left_out}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionColumn:
    """One prompt of a conversation in its plot."""

    call: ContextCall
    x: float
    width: float
    y: float
    height: float
    budget_y: float
    is_here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlot:
    """Tokens of the prompts of a conversation, oldest first."""

    columns: tuple[SessionColumn, ...]
    ticks: tuple[str, ...]


def plot_session(calls: Sequence[ContextCall], here: str) -> SessionPlot:
    """Return the prompts of one conversation as columns against their budgets."""
    top = max(max(call.tokens, call.budget) for call in calls) if calls else 1
    place = WIDTH / max(len(calls), 12)
    columns = [
        SessionColumn(
            call=call,
            x=round(place * index + place * 0.1, 1),
            width=round(place * 0.8, 1),
            y=round(HEIGHT - HEIGHT * call.tokens / top, 1),
            height=round(HEIGHT * call.tokens / top, 1),
            budget_y=round(HEIGHT - HEIGHT * call.budget / top, 1),
            is_here=call.id == here,
        )
        for index, call in enumerate(reversed(calls))
    ]
    return SessionPlot(columns=tuple(columns), ticks=(shorten(top), shorten(top / 2), "0"))
