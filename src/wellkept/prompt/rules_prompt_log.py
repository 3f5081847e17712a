"""Log of what a prompt shows and leaves out, as ids and digests without any text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from wellkept.model import Block, BlockItem
from wellkept.prompt.rules_rendering import Renderer
from wellkept.prompt.rules_window import (
    BLOCKS,
    NO_ROOM,
    SHOWN_ELSEWHERE,
    STABLE_BLOCKS,
    Form,
    Layout,
    LeftOut,
    Piece,
    PromptPart,
    Window,
    identify_piece,
)

DIGEST_CHARS = 16
SOURCES = {
    PromptPart.SKILLS: "skill",
    PromptPart.CORE: "memory",
    PromptPart.JOURNAL: "memory",
    PromptPart.NOTES: "memory",
    PromptPart.PROFILE: "memory",
    PromptPart.MEMORIES: "memory",
    PromptPart.KNOWLEDGE: "knowledge",
    PromptPart.CONVERSATION: "conversation",
    PromptPart.TOOL_RESULTS: "tool_result",
}


def digest(text: str) -> str:
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
                digest=digest(piece.stored or piece.text),
                left_out=reason,
            )


def _turns_item(turns: Sequence[Piece], reason: str) -> BlockItem:
    first, last = turns[0].turn, turns[-1].turn
    return BlockItem(
        id=f"turn {first}" if first == last else f"turns {first} to {last}",
        source=Form.TURN.value,
        digest=digest("\0".join(piece.text for piece in turns)),
        left_out=reason,
    )
