"""Render windows as messages and count their tokens. Unchanged blocks are rendered and counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wellkept.details.rules_keys import PREFIX, find_references
from wellkept.model import Json
from wellkept.prompt.rules_tokens import REPLY_TOKENS, CountText, count_message
from wellkept.prompt.rules_window import BLOCKS, Piece, PromptPart, Window, render_block


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
