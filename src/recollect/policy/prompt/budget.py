"""Making a prompt fit a number of tokens, step by step, and saying at each step what was taken away.

First the four steps that cost little: turns beyond the newest 20 become one message, recalled memories go from 5 to 3,
knowledge from 5 to 2, and then the oldest tool results and turns move behind references, where they can be read again.
If that is still too much, what is left goes the same way, the most personal last. The system prompt, the skills and the
new message are never touched. Nothing is ever cut in the middle: a piece is shown whole, or it is not.

A budget is what the provider counts: every message with its role and frame, and what opens the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.errors import OverBudget
from recollect.model import Truncation
from recollect.policy.details.references import reference
from recollect.policy.numbers import MAX_TOKENS, checked_whole
from recollect.policy.prompt.escaping import one_line
from recollect.policy.prompt.rendering import Drawing, all_mentions, mentions
from recollect.policy.prompt.window import (
    MOVED_HEADING,
    NEVER_CUT,
    Form,
    Layout,
    Part,
    Piece,
    Window,
)

KEPT_TURNS = 20
KEPT_MEMORIES = 3
KEPT_KNOWLEDGE = 2
FOUND = 5
"""How many memories, and how many passages, a prompt begins with."""

LARGE_TOKENS = 500
"""A tool result longer than this is the first to move: big is referred to."""

FOLD_STEP = 10
MOVE_STEP = 5
"""In the cache-stable layout turns are folded and moved in such steps, so that a prompt's beginning changes rarely."""

LEFT_OUT, FOLDED, MOVED = "budget", "folded", "moved"
"""Why a piece is not shown: there was no room, it is in a summary, it is behind a reference."""

NAMED: Mapping[Part, str] = {
    Part.MEMORIES: "recalled memories",
    Part.KNOWLEDGE: "passages",
    Part.NOTES: "notes",
    Part.CONVERSATION: "messages",
    Part.TOOL_RESULTS: "tool results",
    Part.JOURNAL: "journal entries",
    Part.CORE: "core memories",
}

MAX_NAME_CHARS = 80
LONGEST_KEY = "x7k2m9qp" * 6
"""Until something is stored its key is unknown; none is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """What fitting needs from outside: how to draw and count, how to fold turns into a text, how to store pieces.

    `refer` answers with the placeholder (`[MemoryRef: …]`) of what it stored, or with nothing where nothing can be
    written; it is told what the pieces are.
    """

    drawing: Drawing
    fold: Callable[[Sequence[Piece]], str]
    refer: Callable[[Sequence[Piece], str], str]


def checked_budget(budget: object) -> int:
    """Raises: Invalid."""
    return checked_whole(budget, "The budget (in tokens)", least=1, most=MAX_TOKENS)


def fitted(window: Window, budget: int, ways: Ways) -> tuple[Window, Sequence[Truncation]]:
    """The window as it fits the budget, and what was done to it.

    Raises: OverBudget when what may never be cut is too long by itself.
    """
    fitting = _Fitting(window, budget, ways)
    if fitting.excess > 0:
        _check_fixed(window, budget, ways.drawing)
    for step in STEPS:
        if fitting.excess <= 0:
            break
        step(fitting)
    return fitting.window, fitting.truncations


def _check_fixed(window: Window, budget: int, drawing: Drawing) -> None:
    fixed = replace(window, pieces={part: window.of(part) for part in NEVER_CUT})
    needed = drawing.tokens(fixed)
    if needed > budget:
        raise OverBudget(
            f"The system prompt, the skills and the message need {needed:,} tokens and are never cut: "
            f"{needed - budget:,} more than the budget of {budget:,}. Shorten them or raise the budget."
        )


class _Fitting:
    """A window on its way into a budget."""

    def __init__(self, window: Window, budget: int, ways: Ways) -> None:
        self.window = window
        self.ways = ways
        self.truncations: list[Truncation] = []
        self._budget = budget
        self.excess = self.excess_of(window)

    @property
    def is_stable(self) -> bool:
        return self.window.layout is Layout.CACHE_STABLE

    def of(self, part: Part, form: Form) -> list[Piece]:
        return [piece for piece in self.window.of(part) if piece.form is form]

    def turns(self) -> list[list[Piece]]:
        """The conversation's turns that are still there, oldest first: what the user said and the answers to it."""
        turns: dict[int, list[Piece]] = {}
        for piece in self.of(Part.CONVERSATION, Form.TURN):
            turns.setdefault(piece.turn, []).append(piece)
        return list(turns.values())

    def excess_of(self, window: Window) -> int:
        return self.ways.drawing.tokens(window) - self._budget

    def elsewhere(self, pieces: Sequence[Piece]) -> set[str]:
        """The keys of references that others than these pieces mention."""
        gone = set(map(id, pieces))
        rest = (each for part in Part for each in self.window.of(part) if id(each) not in gone)
        return {key for each in rest for key in mentions(each.text)}

    def replaced(self, part: Part, gone: Sequence[Piece], by: Piece | None, reason: str) -> Window:
        """The window with `by` where the first of the pieces was that are gone."""
        leaving = set(map(id, gone))
        pieces: list[Piece] = []
        for piece in self.window.of(part):
            if id(piece) not in leaving:
                pieces.append(piece)
            elif by is not None and piece is gone[0]:
                pieces.append(by)
        return self.window.having(part, pieces, without=gone, reason=reason)

    def apply(
        self, step: str, window: Window, touched: Sequence[Piece], *, part: Part, says: str, made: str = ""
    ) -> bool:
        """Take the window, if it is shorter, and say what was done."""
        excess = self.excess_of(window)
        if excess >= self.excess:
            return False
        lost = self.ways.drawing.references(self.window) - self.ways.drawing.references(window)
        self.truncations.append(
            Truncation(
                step=step,
                block=part.value,
                tokens_removed=self.excess - excess,
                sources=_sources(touched),
                message=says,
                references=tuple(mentions(made)),
                dropped_references=tuple(sorted(lost)),
            )
        )
        self.window, self.excess = window, excess
        return True

    def keep(self, part: Part, number: int) -> None:
        """Only the first `number` items of a part, which are the best."""
        items = self.of(part, Form.ITEM)
        if len(items) > number:
            window = self.replaced(part, items[number:], None, LEFT_OUT)
            says = f"Of {len(items)} {NAMED[part]}, {number} stayed."
            self.apply("drop", window, items[number:], part=part, says=says)

    def keep_what_fits(self, part: Part) -> None:
        """As many items of a part as there is room for, be it none."""
        items = self.of(part, Form.ITEM)
        fitting = (n for n in range(len(items) - 1, 0, -1) if self.excess_of(self._only(part, items[:n])) <= 0)
        self.keep(part, next(fitting, 0))

    def move(self, part: Part, moved: Sequence[Piece], what: str, *, is_index: bool = False) -> None:
        """A reference in place of these pieces, if it is shorter. What only they mention is named beside it, unless
        they are references themselves and it is their index that is stored."""
        if not moved:
            return
        kept = {} if is_index else _only_here(moved, self.elsewhere(moved))
        guess = self.replaced(part, moved, _reference(moved, _unknown(what), kept), MOVED)
        if self.excess_of(guess) >= self.excess:
            return
        line = self.ways.refer(moved, what)
        if not line:
            self._leave_out(part, moved, what, kept, is_index=is_index)
            return
        window = self.replaced(part, moved, _reference(moved, line, kept), MOVED)
        says = f"{what[:1].upper()}{what[1:]} moved behind a reference."
        self.apply("reference", window, moved, part=part, says=says, made=line)

    def _leave_out(
        self, part: Part, moved: Sequence[Piece], what: str, kept: Mapping[str, str], *, is_index: bool
    ) -> None:
        """Do without pieces that could not be stored; references among them stay."""
        if is_index:
            return
        by = Piece(id=_sources(moved)[0], text="\n".join(kept.values()), form=Form.REFERENCE) if kept else None
        says = f"{what[:1].upper()}{what[1:]} left out: the store cannot be written, so there is no reference."
        self.apply("drop", self.replaced(part, moved, by, LEFT_OUT), moved, part=part, says=says)

    def _only(self, part: Part, items: Sequence[Piece]) -> Window:
        return replace(self.window, pieces={**self.window.pieces, part: tuple(items)})


def _fold(fitting: _Fitting) -> None:
    """Turns beyond the newest 20 as one message; rather fewer of them, where the prompt's beginning should stay."""
    turns = fitting.turns()
    exact = len(turns) - KEPT_TURNS
    if exact <= 0:
        return
    if fitting.is_stable:
        round_numbers = [number for number in range(1, exact + 1) if turns[number - 1][0].turn % FOLD_STEP == 0]
        if round_numbers and _fold_turns(fitting, turns[: round_numbers[-1]], must_fit=True):
            return
    _fold_turns(fitting, turns[:exact])


def _fold_turns(fitting: _Fitting, turns: Sequence[Sequence[Piece]], *, must_fit: bool = False) -> bool:
    folded = [piece for turn in turns for piece in turn]
    kept = _only_here(folded, fitting.elsewhere(folded))
    named = _turns_named(folded).capitalize()
    by = Piece(id=_turns_named(folded), text=_keeping(fitting.ways.fold(folded), kept), form=Form.SUMMARY)
    window = fitting.replaced(Part.CONVERSATION, folded, by, FOLDED)
    if must_fit and fitting.excess_of(window) > 0:
        return False
    return fitting.apply("fold", window, folded, part=Part.CONVERSATION, says=f"{named} became one message.")


def _move_turns(fitting: _Fitting) -> None:
    """As many of the oldest turns as must go, but the newest one."""
    turns = fitting.turns()[:-1]
    if not turns:
        return
    everything = [piece for turn in turns for piece in turn]
    elsewhere = fitting.elsewhere(everything)
    last_turn = {key: turn[0].turn for turn in turns for piece in turn for key in mentions(piece.text)}
    whole, cost = all_mentions(everything), fitting.ways.drawing.cost
    numbers, saved = [], 0
    for number, turn in enumerate(turns, start=1):
        saved += sum(cost(piece.role, piece.text) for piece in turn)
        lost = {k: whole[k] for k, last in last_turn.items() if last <= turn[0].turn and k not in elsewhere}
        moved_to = _reference(turn, _unknown(_turns_named(everything)), lost)
        if saved - cost(moved_to.role, moved_to.text) >= fitting.excess:
            numbers.append(number)
    even = [number for number in numbers if turns[number - 1][0].turn % MOVE_STEP == 0]
    enough = next(iter(even if fitting.is_stable and even else numbers), len(turns))
    moved = [piece for turn in turns[:enough] for piece in turn]
    fitting.move(Part.CONVERSATION, moved, _turns_named(moved))


def _move_results(fitting: _Fitting, *, larger_than: int = 0) -> None:
    """The oldest results of tools, one by one, but the newest."""
    for piece in fitting.of(Part.TOOL_RESULTS, Form.ITEM)[:-1]:
        if fitting.excess > 0 and fitting.ways.drawing.count(piece.text) > larger_than:
            fitting.move(Part.TOOL_RESULTS, [piece], _result_named(piece))


def _move_newest(fitting: _Fitting) -> None:
    for turn in fitting.turns() if fitting.excess > 0 else ():
        fitting.move(Part.CONVERSATION, turn, _turns_named(turn))
    for piece in fitting.of(Part.TOOL_RESULTS, Form.ITEM):
        if fitting.excess > 0:
            fitting.move(Part.TOOL_RESULTS, [piece], _result_named(piece))


def _move_rest(fitting: _Fitting) -> None:
    """What no step names: the summary, what was folded, and last the private memory."""
    for part, form, what in (
        (Part.CONVERSATION, Form.SUMMARY, "the summary of earlier turns"),
        (Part.JOURNAL, Form.ITEM, "recent journal entries"),
        (Part.CORE, Form.ITEM, "core memories"),
    ):
        if fitting.excess > 0:
            fitting.move(part, fitting.of(part, form), what)
    for part in (Part.TOOL_RESULTS, Part.CONVERSATION):
        if fitting.excess > 0 and len(several := fitting.of(part, Form.REFERENCE)) > 1:
            fitting.move(part, several, f"references to {NAMED[part]}", is_index=True)


def _drop_rest(fitting: _Fitting) -> None:
    """Where even references do not fit: the oldest pieces go, and it is said which."""
    for part in (Part.CONVERSATION, Part.TOOL_RESULTS, Part.JOURNAL, Part.CORE):
        pieces = fitting.window.of(part)
        fitting_tails = (n for n in range(1, len(pieces)) if fitting.excess_of(fitting._only(part, pieces[n:])) <= 0)
        gone = pieces[: next(fitting_tails, len(pieces))]
        if gone and fitting.excess > 0:
            says = f"There was no room for {len(gone)} of {len(pieces)} {NAMED[part]}, not even as references."
            fitting.apply("drop", fitting.replaced(part, gone, None, LEFT_OUT), gone, part=part, says=says)


STEPS: Sequence[Callable[[_Fitting], None]] = (
    _fold,
    lambda fitting: fitting.keep(Part.MEMORIES, KEPT_MEMORIES),
    lambda fitting: fitting.keep(Part.KNOWLEDGE, KEPT_KNOWLEDGE),
    lambda fitting: _move_results(fitting, larger_than=LARGE_TOKENS),
    _move_turns,
    _move_results,
    _move_newest,
    lambda fitting: fitting.keep_what_fits(Part.MEMORIES),
    lambda fitting: fitting.keep_what_fits(Part.KNOWLEDGE),
    lambda fitting: fitting.keep_what_fits(Part.NOTES),
    _move_rest,
    _drop_rest,
)
"""In this order, until the window fits."""


def _only_here(pieces: Sequence[Piece], elsewhere: Collection[str]) -> dict[str, str]:
    return {key: text for key, text in all_mentions(pieces).items() if key not in elsewhere}


def _keeping(text: str, kept: Mapping[str, str]) -> str:
    """`text` and, behind it, the references it does not mention itself."""
    named = mentions(text)
    return "\n".join([text, *(whole for key, whole in kept.items() if key not in named)])


def _reference(moved: Sequence[Piece], line: str, kept: Mapping[str, str]) -> Piece:
    return Piece(id=_sources(moved)[0], text=_keeping(f"{MOVED_HEADING}\n{line}", kept), form=Form.REFERENCE)


def _unknown(what: str) -> str:
    """A placeholder at least as long as the one that storing will give."""
    return reference(LONGEST_KEY, what)


def _sources(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """What was touched, by id; a run of turns by its first and last."""
    if all(piece.form is Form.TURN for piece in pieces):
        return (_turns_named(pieces),)
    return tuple(dict.fromkeys(piece.id for piece in pieces))


def _turns_named(pieces: Sequence[Piece]) -> str:
    first, last = pieces[0].turn, pieces[-1].turn
    return f"turn {first}" if first == last else f"turns {first} to {last}"


def _result_named(piece: Piece) -> str:
    """
    >>> _result_named(Piece(id="tool 1", text="…", label="npm install"))
    'the result of npm install'
    """
    return f"the result of {one_line(piece.label)[:MAX_NAME_CHARS] or 'a tool'}"
