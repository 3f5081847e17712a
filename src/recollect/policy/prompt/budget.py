"""Fit a prompt into a token budget step by step, and report what each step removed.

The first four steps cost little: turns beyond the newest 20 are folded into one message, recalled memories shrink from
5 to 3, knowledge from 5 to 2, and the oldest tool results and turns move behind references that the agent can read.
If that is not enough, the remaining parts follow, the most personal last. The system prompt, the clock, the skills and
the new message are never touched. No piece is ever cut in the middle.

The budget is what the provider counts: every message with its role and framing, plus the start of the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.errors import OverBudget
from recollect.model import Truncation
from recollect.policy.details.references import reference
from recollect.policy.numbers import MAX_TOKENS, check_whole
from recollect.policy.prompt.escaping import to_one_line
from recollect.policy.prompt.rendering import Renderer, find_all_mentions, find_mentions
from recollect.policy.prompt.window import (
    MOVED_HEADING,
    NEVER_CUT,
    Form,
    Layout,
    Piece,
    PromptPart,
    Window,
)

KEPT_TURNS = 20
KEPT_MEMORIES = 3
KEPT_KNOWLEDGE = 2
FOUND = 5
"""Number of memories, and of passages, in a prompt before fitting."""

LARGE_TOKENS = 500
"""Size in tokens above which a tool result moves first."""

FOLD_STEP = 10
MOVE_STEP = 5
"""Steps in which the cache-stable layout folds and moves turns, so that the start of the prompt rarely changes."""

LEFT_OUT, FOLDED, MOVED = "budget", "folded", "moved"
"""Reasons why a piece is missing: no room, part of a summary, or behind a reference."""

PART_NAMES: Mapping[PromptPart, str] = {
    PromptPart.MEMORIES: "recalled memories",
    PromptPart.KNOWLEDGE: "passages",
    PromptPart.NOTES: "notes",
    PromptPart.CONVERSATION: "messages",
    PromptPart.TOOL_RESULTS: "tool results",
    PromptPart.JOURNAL: "journal entries",
    PromptPart.CORE: "core memories",
}

MAX_NAME_CHARS = 80
LONGEST_KEY = "x7k2m9qp" * 6
"""Stand-in for the key of a piece not stored yet; no key is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCallbacks:
    """Callbacks of fitting: render and count, fold turns into a text, store pieces.

    `refer` takes the pieces and their description. It returns the placeholder (`[MemoryRef: …]`) of what it stored, or
    an empty string if nothing can be written.
    """

    drawing: Renderer
    fold: Callable[[Sequence[Piece]], str]
    refer: Callable[[Sequence[Piece], str], str]


def check_budget(budget: object) -> int:
    """Validate a token budget.

    Raises: Invalid.
    """
    return check_whole(budget, "The budget (in tokens)", least=1, most=MAX_TOKENS)


def fit_window(window: Window, budget: int, ways: FitCallbacks) -> tuple[Window, Sequence[Truncation]]:
    """Fit a window into the budget and return it with the truncations made.

    Raises: OverBudget when what may never be cut is too long by itself.
    """
    fitter = _Fitter(window, budget, ways)
    if fitter.excess > 0:
        _check_fixed(window, budget, ways.drawing)
    for step in STEPS:
        if fitter.excess <= 0:
            break
        step(fitter)
    return fitter.window, fitter.truncations


def _check_fixed(window: Window, budget: int, drawing: Renderer) -> None:
    fixed = replace(window, pieces={part: window.of(part) for part in NEVER_CUT})
    required = drawing.tokens(fixed)
    if required > budget:
        raise OverBudget(
            f"The system prompt, the skills and the message need {required:,} tokens and are never cut: "
            f"{required - budget:,} more than the budget of {budget:,}. Shorten them or raise the budget."
        )


class _Fitter:
    """A window being fitted into a budget."""

    def __init__(self, window: Window, budget: int, ways: FitCallbacks) -> None:
        self.window = window
        self.ways = ways
        self.truncations: list[Truncation] = []
        self._budget = budget
        self.excess = self.excess_of(window)

    @property
    def is_stable(self) -> bool:
        return self.window.layout is Layout.CACHE_STABLE

    def of(self, part: PromptPart, form: Form) -> list[Piece]:
        return [piece for piece in self.window.of(part) if piece.form is form]

    def turns(self) -> list[list[Piece]]:
        """Return the remaining turns of the conversation, oldest first, each with its replies."""
        turns: dict[int, list[Piece]] = {}
        for piece in self.of(PromptPart.CONVERSATION, Form.TURN):
            turns.setdefault(piece.turn, []).append(piece)
        return list(turns.values())

    def excess_of(self, window: Window) -> int:
        return self.ways.drawing.tokens(window) - self._budget

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
        excess = self.excess_of(window)
        if excess >= self.excess:
            return False
        lost = self.ways.drawing.references(self.window) - self.ways.drawing.references(window)
        self.truncations.append(
            Truncation(
                step=step,
                block=part.value,
                tokens_removed=self.excess - excess,
                sources=_source_ids(touched),
                message=message,
                references=tuple(find_mentions(made)),
                dropped_references=tuple(sorted(lost)),
            )
        )
        self.window, self.excess = window, excess
        return True

    def keep(self, part: PromptPart, number: int) -> None:
        """Keep only the first `number` items of a part, which are the best ones."""
        items = self.of(part, Form.ITEM)
        if len(items) > number:
            window = self.replace_pieces(part, items[number:], None, LEFT_OUT)
            message = f"Of {len(items)} {PART_NAMES[part]}, {number} stayed."
            self.apply("drop", window, items[number:], part=part, message=message)

    def keep_fitting(self, part: PromptPart) -> None:
        """Keep as many items of a part as fit, possibly none."""
        items = self.of(part, Form.ITEM)
        fitting = (n for n in range(len(items) - 1, 0, -1) if self.excess_of(self._with_items(part, items[:n])) <= 0)
        self.keep(part, next(fitting, 0))

    def move(self, part: PromptPart, moved: Sequence[Piece], what: str, *, is_index: bool = False) -> None:
        """Replace pieces by a reference if that is shorter.

        References that only these pieces mention are listed beside it, unless the pieces are references themselves and
        their index is what is stored.
        """
        if not moved:
            return
        kept = {} if is_index else _own_mentions(moved, self.keys_outside(moved))
        guess = self.replace_pieces(part, moved, _reference_piece(moved, _longest_placeholder(what), kept), MOVED)
        if self.excess_of(guess) >= self.excess:
            return
        line = self.ways.refer(moved, what)
        if not line:
            self._leave_out(part, moved, what, kept, is_index=is_index)
            return
        window = self.replace_pieces(part, moved, _reference_piece(moved, line, kept), MOVED)
        message = f"{what[:1].upper()}{what[1:]} moved behind a reference."
        self.apply("reference", window, moved, part=part, message=message, made=line)

    def _leave_out(
        self, part: PromptPart, moved: Sequence[Piece], what: str, kept: Mapping[str, str], *, is_index: bool
    ) -> None:
        """Drop pieces that could not be stored, but keep the references they mention."""
        if is_index:
            return
        by = Piece(id=_source_ids(moved)[0], text="\n".join(kept.values()), form=Form.REFERENCE) if kept else None
        message = f"{what[:1].upper()}{what[1:]} left out: the store cannot be written, so there is no reference."
        self.apply("drop", self.replace_pieces(part, moved, by, LEFT_OUT), moved, part=part, message=message)

    def _with_items(self, part: PromptPart, items: Sequence[Piece]) -> Window:
        return replace(self.window, pieces={**self.window.pieces, part: tuple(items)})


def _fold(fitter: _Fitter) -> None:
    """Fold turns beyond the newest 20 into one message; fewer in the cache-stable layout, if that suffices."""
    turns = fitter.turns()
    exact = len(turns) - KEPT_TURNS
    if exact <= 0:
        return
    if fitter.is_stable:
        round_numbers = [number for number in range(1, exact + 1) if turns[number - 1][0].turn % FOLD_STEP == 0]
        if round_numbers and _fold_turns(fitter, turns[: round_numbers[-1]], must_fit=True):
            return
    _fold_turns(fitter, turns[:exact])


def _fold_turns(fitter: _Fitter, turns: Sequence[Sequence[Piece]], *, must_fit: bool = False) -> bool:
    folded = [piece for turn in turns for piece in turn]
    kept = _own_mentions(folded, fitter.keys_outside(folded))
    name = _describe_turns(folded).capitalize()
    by = Piece(id=_describe_turns(folded), text=_append_references(fitter.ways.fold(folded), kept), form=Form.SUMMARY)
    window = fitter.replace_pieces(PromptPart.CONVERSATION, folded, by, FOLDED)
    if must_fit and fitter.excess_of(window) > 0:
        return False
    return fitter.apply("fold", window, folded, part=PromptPart.CONVERSATION, message=f"{name} became one message.")


def _move_turns(fitter: _Fitter) -> None:
    """Move as many of the oldest turns as necessary, but never the newest one."""
    turns = fitter.turns()[:-1]
    if not turns:
        return
    everything = [piece for turn in turns for piece in turn]
    outside = fitter.keys_outside(everything)
    last_turn = {key: turn[0].turn for turn in turns for piece in turn for key in find_mentions(piece.text)}
    whole, cost = find_all_mentions(everything), fitter.ways.drawing.cost
    numbers, saved = [], 0
    for number, turn in enumerate(turns, start=1):
        saved += sum(cost(piece.role, piece.text) for piece in turn)
        lost = {k: whole[k] for k, last in last_turn.items() if last <= turn[0].turn and k not in outside}
        moved_to = _reference_piece(turn, _longest_placeholder(_describe_turns(everything)), lost)
        if saved - cost(moved_to.role, moved_to.text) >= fitter.excess:
            numbers.append(number)
    even = [number for number in numbers if turns[number - 1][0].turn % MOVE_STEP == 0]
    enough = next(iter(even if fitter.is_stable and even else numbers), len(turns))
    moved = [piece for turn in turns[:enough] for piece in turn]
    fitter.move(PromptPart.CONVERSATION, moved, _describe_turns(moved))


def _move_results(fitter: _Fitter, *, larger_than: int = 0) -> None:
    """Move the oldest tool results one by one, except the newest."""
    for piece in fitter.of(PromptPart.TOOL_RESULTS, Form.ITEM)[:-1]:
        if fitter.excess > 0 and fitter.ways.drawing.count(piece.text) > larger_than:
            fitter.move(PromptPart.TOOL_RESULTS, [piece], _describe_result(piece))


def _move_newest(fitter: _Fitter) -> None:
    """Move the turns and tool results that the steps before have spared, oldest first."""
    for turn in fitter.turns() if fitter.excess > 0 else ():
        fitter.move(PromptPart.CONVERSATION, turn, _describe_turns(turn))
    for piece in fitter.of(PromptPart.TOOL_RESULTS, Form.ITEM):
        if fitter.excess > 0:
            fitter.move(PromptPart.TOOL_RESULTS, [piece], _describe_result(piece))


def _move_rest(fitter: _Fitter) -> None:
    """Move parts that no other step covers: the summary, the journal, core memories and lists of references."""
    for part, form, what in (
        (PromptPart.CONVERSATION, Form.SUMMARY, "the summary of earlier turns"),
        (PromptPart.JOURNAL, Form.ITEM, "recent journal entries"),
        (PromptPart.CORE, Form.ITEM, "core memories"),
    ):
        if fitter.excess > 0:
            fitter.move(part, fitter.of(part, form), what)
    for part in (PromptPart.TOOL_RESULTS, PromptPart.CONVERSATION):
        if fitter.excess > 0 and len(several := fitter.of(part, Form.REFERENCE)) > 1:
            fitter.move(part, several, f"references to {PART_NAMES[part]}", is_index=True)


def _drop_rest(fitter: _Fitter) -> None:
    """Drop the oldest pieces if not even references fit."""
    for part in (PromptPart.CONVERSATION, PromptPart.TOOL_RESULTS, PromptPart.JOURNAL, PromptPart.CORE):
        pieces = fitter.window.of(part)
        fitting_tails = (
            n for n in range(1, len(pieces)) if fitter.excess_of(fitter._with_items(part, pieces[n:])) <= 0
        )
        removed = pieces[: next(fitting_tails, len(pieces))]
        if removed and fitter.excess > 0:
            message = (
                f"There was no room for {len(removed)} of {len(pieces)} {PART_NAMES[part]}, not even as references."
            )
            fitter.apply(
                "drop", fitter.replace_pieces(part, removed, None, LEFT_OUT), removed, part=part, message=message
            )


STEPS: Sequence[Callable[[_Fitter], None]] = (
    _fold,
    lambda fitter: fitter.keep(PromptPart.MEMORIES, KEPT_MEMORIES),
    lambda fitter: fitter.keep(PromptPart.KNOWLEDGE, KEPT_KNOWLEDGE),
    lambda fitter: _move_results(fitter, larger_than=LARGE_TOKENS),
    _move_turns,
    _move_results,
    _move_newest,
    lambda fitter: fitter.keep_fitting(PromptPart.MEMORIES),
    lambda fitter: fitter.keep_fitting(PromptPart.KNOWLEDGE),
    lambda fitter: fitter.keep_fitting(PromptPart.NOTES),
    _move_rest,
    _drop_rest,
)
"""Fitting steps, applied in order until the window fits."""


def _own_mentions(pieces: Sequence[Piece], outside: Collection[str]) -> dict[str, str]:
    return {key: text for key, text in find_all_mentions(pieces).items() if key not in outside}


def _append_references(text: str, kept: Mapping[str, str]) -> str:
    """Append the references to `text` that it does not mention yet."""
    named = find_mentions(text)
    return "\n".join([text, *(whole for key, whole in kept.items() if key not in named)])


def _reference_piece(moved: Sequence[Piece], line: str, kept: Mapping[str, str]) -> Piece:
    return Piece(
        id=_source_ids(moved)[0], text=_append_references(f"{MOVED_HEADING}\n{line}", kept), form=Form.REFERENCE
    )


def _longest_placeholder(what: str) -> str:
    """Return a placeholder at least as long as the one that storing will return."""
    return reference(LONGEST_KEY, what)


def _source_ids(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """Return the ids of the pieces; a run of turns is named by its first and last."""
    if all(piece.form is Form.TURN for piece in pieces):
        return (_describe_turns(pieces),)
    return tuple(dict.fromkeys(piece.id for piece in pieces))


def _describe_turns(pieces: Sequence[Piece]) -> str:
    first, last = pieces[0].turn, pieces[-1].turn
    return f"turn {first}" if first == last else f"turns {first} to {last}"


def _describe_result(piece: Piece) -> str:
    """Describe a tool result for the reader.

    >>> _describe_result(Piece(id="tool 1", text="…", label="npm install"))
    'the result of npm install'
    """
    return f"the result of {to_one_line(piece.label)[:MAX_NAME_CHARS] or 'a tool'}"
