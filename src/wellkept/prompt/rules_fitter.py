"""A prompt while it is fitted into its budget: drop pieces by worth, put pieces behind references, and refill.

Related pieces are worth their relevance to the message and go by their worth for their size. Pieces that are not
related to the message go before all of them, the oldest first. What was dropped comes back, the best first, if there is
room for it in the end. No piece is ever cut in the middle.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, takewhile

from wellkept.details.rules_keys import reference
from wellkept.model import Truncation
from wellkept.prompt.rules_rendering import Renderer, find_all_mentions, find_mentions
from wellkept.prompt.rules_window import MOVED_HEADING, NO_ROOM, Form, Layout, Piece, PromptPart, Window

FOLDED, MOVED = "folded", "moved"
"""Reasons why a piece is missing: no room, part of a summary, or behind a reference."""

PART_NAMES: Mapping[PromptPart, str] = {
    PromptPart.MEMORIES: "recalled memories",
    PromptPart.KNOWLEDGE: "passages",
    PromptPart.NOTES: "notes",
    PromptPart.PROFILE: "facts",
    PromptPart.CONVERSATION: "messages",
    PromptPart.TOOL_RESULTS: "tool results",
    PromptPart.JOURNAL: "journal entries",
    PromptPart.CORE: "core memories",
}

DROPPED = (PromptPart.JOURNAL, PromptPart.KNOWLEDGE, PromptPart.MEMORIES, PromptPart.PROFILE, PromptPart.NOTES)
"""Parts whose pieces are dropped one by one and can be recalled later; of equal worth, the first part goes first."""

RECALLED = (PromptPart.MEMORIES, PromptPart.KNOWLEDGE)
"""Parts whose pieces were recalled and carry their relevance."""

SIZE_POWER = 0.2
"""Power of a piece's tokens that its relevance is divided by. Higher ones favour short pieces over the answer."""

MAX_SKIPPED = 50
"""Number of pieces that may turn out too long for the room before the search for shorter ones ends."""

LONGEST_KEY = "x7k2m9qp" * 6
"""Stand-in for the key of a piece not stored yet; no key is longer."""

Placed = tuple[PromptPart, Piece]
"""A piece and the part it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCallbacks:
    """Callbacks of fitting: render and count, fold turns into a text, store pieces, rate memories.

    `refer` takes the pieces and their description. It returns the placeholder (`[MemoryRef: …]`) of what it stored, or
    an empty string if nothing can be written. `rate` returns the relevance to the message of core memories, journal
    entries and notes by their ids; those it leaves out are not related to the message.
    """

    drawing: Renderer
    fold: Callable[[Sequence[Piece]], str]
    refer: Callable[[Sequence[Piece], str], str]
    rate: Callable[[], Mapping[str, float]] = dict


@dataclass(slots=True, kw_only=True)
class _Cut:
    """A truncation in the making: what it dropped may still come back."""

    step: str
    part: PromptPart
    message: str
    tokens: int = 0
    pieces: list[Piece] = field(default_factory=list)
    references: tuple[str, ...] = ()
    lost: set[str] = field(default_factory=set)


class Fitter:
    """A window being fitted into a budget."""

    def __init__(self, window: Window, budget: int, ways: FitCallbacks) -> None:
        self.window = window
        self.ways = ways
        self.budget = budget
        self.excess = self.excess_of(window)
        self._whole = window
        self._cuts: list[_Cut] = []
        self._drops: dict[PromptPart, _Cut] = {}

    @property
    def is_stable(self) -> bool:
        return self.window.layout is Layout.CACHE_STABLE

    @cached_property
    def _rates(self) -> Mapping[str, float]:
        return self.ways.rate()

    def truncations(self) -> list[Truncation]:
        """Return the truncations made; a reference that is mentioned again is not a dropped one."""
        mentioned = self.ways.drawing.references(self.window)
        return [
            Truncation(
                step=cut.step,
                block=cut.part.value,
                tokens_removed=cut.tokens,
                sources=source_ids(cut.pieces),
                message=cut.message,
                references=cut.references,
                dropped_references=tuple(sorted(cut.lost - mentioned)),
            )
            for cut in self._cuts
        ]

    def of(self, part: PromptPart, form: Form) -> list[Piece]:
        return [piece for piece in self.window.of(part) if piece.form is form]

    def excess_of(self, window: Window) -> int:
        return self.ways.drawing.tokens(window) - self.budget

    def is_related(self, placed: Placed) -> bool:
        return self._relevance(placed) > 0

    def sort_by_worth(self, placed: Iterable[Placed]) -> list[Placed]:
        """Return the pieces in the order in which they go: unrelated ones by age, then by worth per token."""
        return sorted(placed, key=self._worth)

    def _relevance(self, placed: Placed) -> float:
        part, piece = placed
        # Text that reads like instructions only gets the room that everything else leaves.
        if piece.is_suspicious:
            return 0.0
        return piece.relevance if part in RECALLED else self._rates.get(piece.id, 0.0)

    def _worth(self, placed: Placed) -> tuple[float, float, int]:
        part, piece = placed
        order = DROPPED.index(part) if part in DROPPED else len(DROPPED)
        if (relevance := self._relevance(placed)) > 0:
            # Greedy knapsack: the most relevance for the tokens that are left.
            return 1.0, relevance / max(1, self.ways.drawing.cost(piece.role, piece.text)) ** SIZE_POWER, order
        age = piece.memory.created_at.timestamp() if piece.memory is not None else 0.0
        return -1.0 if piece.is_suspicious else 0.0, age, order

    def keys_outside(self, pieces: Sequence[Piece]) -> set[str]:
        """Return the keys of references mentioned by any piece other than these."""
        removed = set(map(id, pieces))
        rest = (each for part in PromptPart for each in self.window.of(part) if id(each) not in removed)
        return {key for each in rest for key in find_mentions(each.text)}

    def replace_pieces(self, part: PromptPart, removed: Sequence[Piece], by: Piece | None, reason: str) -> Window:
        """Return the window with `by` in place of the first removed piece."""
        leaving = set(map(id, removed))
        pieces: list[Piece] = []
        for piece in self.window.of(part):
            if id(piece) not in leaving:
                pieces.append(piece)
            elif by is not None and piece is removed[0]:
                pieces.append(by)
        return self.window.with_pieces(part, pieces, without=removed, reason=reason)

    def apply(
        self, step: str, window: Window, touched: Sequence[Piece], *, part: PromptPart, message: str, made: str = ""
    ) -> bool:
        """Accept the window if it is shorter, and record the truncation."""
        if self.excess_of(window) >= self.excess:
            return False
        cut = _Cut(step=step, part=part, message=message, references=tuple(find_mentions(made)))
        self._cuts.append(cut)
        self._accept(cut, window, touched)
        return True

    def drop(self, placed: Sequence[Placed]) -> None:
        """Drop as many of these pieces as necessary, in this order."""
        # Dropping more never makes a prompt longer, so the number can be bisected.
        number = bisect_left(
            range(1, len(placed)), True, key=lambda count: self.excess_of(self._without(placed[:count])) <= 0
        )
        self._drop_all(placed[: number + 1])

    def refill(self) -> None:
        """Fill the room again by worth, if pieces were dropped: related ones first, then the newest of the others."""
        if not self._drops:
            return
        shown = [(part, piece) for part in DROPPED for piece in self.window.of(part)]
        self._drop_all([placed for placed in shown if not self.is_related(placed)])
        dropped = [(part, piece) for part, cut in self._drops.items() for piece in cut.pieces]
        sizes = {id(piece): self.ways.drawing.count(piece.text) for _, piece in dropped}
        waiting, skipped = self.sort_by_worth(dropped)[::-1], 0
        while waiting and skipped < MAX_SKIPPED:
            fitting = self._count_fitting(waiting, sizes)
            self._bring_back(waiting[:fitting])
            room, skipped = -self.excess, skipped + 1
            waiting = [each for each in waiting[fitting + 1 :] if sizes[id(each[1])] < room]
        self._cuts = [cut for cut in self._cuts if cut.pieces]

    def move(self, part: PromptPart, moved: Sequence[Piece], what: str, *, is_index: bool = False) -> None:
        """Replace pieces by a reference if that is shorter.

        References that only these pieces mention are listed beside it, unless the pieces are references themselves and
        their index is what is stored.
        """
        if not moved:
            return
        kept = {} if is_index else own_mentions(moved, self.keys_outside(moved))
        guess = self.replace_pieces(part, moved, reference_piece(moved, longest_placeholder(what), kept), MOVED)
        if self.excess_of(guess) >= self.excess:
            return
        line = self.ways.refer(moved, what)
        if not line:
            self._leave_out(part, moved, what, kept, is_index=is_index)
            return
        window = self.replace_pieces(part, moved, reference_piece(moved, line, kept), MOVED)
        message = f"{what[:1].upper()}{what[1:]} moved behind a reference."
        self.apply("reference", window, moved, part=part, message=message, made=line)

    def move_fewest(self, part: PromptPart, pieces: Sequence[Piece], what: str) -> None:
        """Move as many of these pieces as necessary behind one reference, in this order."""

        def fits(number: int) -> bool:
            by = reference_piece(pieces[:number], longest_placeholder(what), {})
            return self.excess_of(self.replace_pieces(part, pieces[:number], by, MOVED)) <= 0

        number = bisect_left(range(1, len(pieces)), True, key=fits)
        chosen = set(map(id, pieces[: number + 1]))
        self.move(part, [piece for piece in self.window.of(part) if id(piece) in chosen], what)

    def _leave_out(
        self, part: PromptPart, moved: Sequence[Piece], what: str, kept: Mapping[str, str], *, is_index: bool
    ) -> None:
        """Drop pieces that could not be stored, but keep the references they mention."""
        if is_index:
            return
        by = Piece(id=source_ids(moved)[0], text="\n".join(kept.values()), form=Form.REFERENCE) if kept else None
        message = f"{what[:1].upper()}{what[1:]} left out: the store cannot be written, so there is no reference."
        self.apply("drop", self.replace_pieces(part, moved, by, NO_ROOM), moved, part=part, message=message)

    def _accept(self, cut: _Cut, window: Window, touched: Sequence[Piece]) -> None:
        excess = self.excess_of(window)
        cut.tokens += self.excess - excess
        cut.pieces += touched
        cut.lost |= self.ways.drawing.references(self.window) - self.ways.drawing.references(window)
        self.window, self.excess = window, excess

    def _drop_all(self, placed: Sequence[Placed]) -> None:
        for part, pieces in _by_part(placed).items():
            if part not in self._drops:
                self._drops[part] = _Cut(step="drop", part=part, message="")
                self._cuts.append(self._drops[part])
            self._accept(self._drops[part], self.replace_pieces(part, pieces, None, NO_ROOM), pieces)
            self._describe_drop(part)

    def _count_fitting(self, placed: Sequence[Placed], sizes: Mapping[int, int]) -> int:
        """Return how many of the first pieces can come back together; `sizes` are the tokens of their texts."""
        # A piece takes more than its text, so more than this cannot fit. Rendering them would take long.
        totals = accumulate(sizes[id(piece)] for _, piece in placed)
        most = sum(1 for _ in takewhile(lambda total: total < -self.excess, totals))
        return bisect_left(
            range(1, most + 1), True, key=lambda count: self.excess_of(self._with_back(placed[:count])) > 0
        )

    def _bring_back(self, placed: Sequence[Placed]) -> None:
        for part, pieces in _by_part(placed).items():
            window, cut = self._with_back([(part, piece) for piece in pieces]), self._drops[part]
            excess, back = self.excess_of(window), set(map(id, pieces))
            cut.tokens -= excess - self.excess
            cut.pieces = [piece for piece in cut.pieces if id(piece) not in back]
            self.window, self.excess = window, excess
            self._describe_drop(part)

    def _describe_drop(self, part: PromptPart) -> None:
        number = len(self._whole.of(part))
        stayed = number - len(self._drops[part].pieces)
        self._drops[part].message = f"Of {number} {PART_NAMES[part]}, {stayed} stayed."

    def _without(self, placed: Sequence[Placed]) -> Window:
        leaving = {id(piece) for _, piece in placed}
        pieces = {
            part: tuple(piece for piece in self.window.of(part) if id(piece) not in leaving)
            for part in _by_part(placed)
        }
        return replace(self.window, pieces={**self.window.pieces, **pieces})

    def _with_back(self, placed: Sequence[Placed]) -> Window:
        """Return the window with dropped pieces back at their places."""
        window = self.window
        for part, back in _by_part(placed).items():
            returned = set(map(id, back))
            shown = {id(each) for each in window.of(part)} | returned
            pieces = tuple(each for each in self._whole.of(part) if id(each) in shown)
            left_out = tuple(each for each in window.left_out[part] if id(each.piece) not in returned)
            window = replace(
                window, pieces={**window.pieces, part: pieces}, left_out={**window.left_out, part: left_out}
            )
        return window


def _by_part(placed: Iterable[Placed]) -> dict[PromptPart, list[Piece]]:
    pieces: dict[PromptPart, list[Piece]] = {}
    for part, piece in placed:
        pieces.setdefault(part, []).append(piece)
    return pieces


def own_mentions(pieces: Sequence[Piece], outside: Collection[str]) -> dict[str, str]:
    """Return the references that only these pieces mention, by key."""
    return {key: text for key, text in find_all_mentions(pieces).items() if key not in outside}


def append_references(text: str, kept: Mapping[str, str]) -> str:
    """Append the references to `text` that it does not mention yet."""
    named = find_mentions(text)
    return "\n".join([text, *(whole for key, whole in kept.items() if key not in named)])


def reference_piece(moved: Sequence[Piece], line: str, kept: Mapping[str, str]) -> Piece:
    """Return the piece that takes the place of moved ones: a heading, the reference and those they mention."""
    return Piece(id=source_ids(moved)[0], text=append_references(f"{MOVED_HEADING}\n{line}", kept), form=Form.REFERENCE)


def longest_placeholder(what: str) -> str:
    """Return a placeholder at least as long as the one that storing will return."""
    return reference(LONGEST_KEY, what)


def source_ids(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """Return the ids of the pieces; a run of turns is named by its first and last."""
    if all(piece.form is Form.TURN for piece in pieces):
        return (describe_turns(pieces),)
    return tuple(dict.fromkeys(piece.id for piece in pieces))


def describe_turns(pieces: Sequence[Piece]) -> str:
    """Name a run of turns by its first and last.

    >>> describe_turns([Piece(id="turn 2", text="Hi", turn=2), Piece(id="turn 4", text="Bye", turn=4)])
    'turns 2 to 4'
    """
    first, last = pieces[0].turn, pieces[-1].turn
    return f"turn {first}" if first == last else f"turns {first} to {last}"
