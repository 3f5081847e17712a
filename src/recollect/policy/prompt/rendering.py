"""Windows as messages, with what each costs. A block that did not change is neither written nor counted again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.model import Json
from recollect.policy.details.references import PREFIX, find_references
from recollect.policy.prompt.tokens import REPLY_TOKENS, CountText, count_message
from recollect.policy.prompt.window import BLOCKS, Part, Piece, Window, messages_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One block as messages."""

    name: str
    messages: Sequence[Json]
    tokens: int
    references: frozenset[str]  # the keys it mentions


class Drawing:
    """Draws windows that differ little from each other, as the steps of fitting one do."""

    def __init__(self, count: CountText) -> None:
        self.count = count
        self._blocks: dict[tuple[str, tuple[int, ...]], tuple[Drawn, object]] = {}
        self._frames: dict[str, int] = {}  # what a message of a role costs before it says anything
        self._contents: dict[str, int] = {}

    def blocks(self, window: Window) -> list[Drawn]:
        """The blocks that have something to say, in the order of the layout."""
        drawn = (self._block(window, name, parts) for name, parts in BLOCKS[window.layout])
        return [block for block in drawn if block.messages]

    def prompt(self, window: Window) -> list[Json]:
        """All messages, in order."""
        return [message for block in self.blocks(window) for message in block.messages]

    def tokens(self, window: Window) -> int:
        """What a provider counts for all of it, with what opens the answer."""
        total = sum(block.tokens for block in self.blocks(window))
        return total + REPLY_TOKENS if total else 0

    def references(self, window: Window) -> set[str]:
        """The keys of every reference it mentions."""
        return {key for block in self.blocks(window) for key in block.references}

    def cost(self, role: str, content: str) -> int:
        """What one message costs."""
        if role not in self._frames:
            self._frames[role] = count_message({"role": role}, self.count)
        if content not in self._contents:
            self._contents[content] = self.count(content)
        return self._frames[role] + self._contents[content]

    def _block(self, window: Window, name: str, parts: tuple[Part, ...]) -> Drawn:
        pieces = [window.of(part) for part in parts]
        place = name, tuple(map(id, pieces))
        if place not in self._blocks:
            messages = messages_of(window, parts)
            drawn = Drawn(
                name=name,
                messages=messages,
                tokens=sum(self.cost(message["role"], message["content"]) for message in messages),
                references=frozenset(key for message in messages for key in mentions(message["content"])),
            )
            self._blocks[place] = drawn, pieces  # kept, so that no other piece gets its number
        return self._blocks[place][0]


def mentions(text: str) -> Mapping[str, str]:
    """The references a text mentions: the whole placeholder, by its key."""
    return {found.key: found.text for found in find_references(text)} if PREFIX in text else {}


def all_mentions(pieces: Sequence[Piece]) -> Mapping[str, str]:
    """The same of several pieces."""
    return {key: text for piece in pieces for key, text in mentions(piece.text).items()}
