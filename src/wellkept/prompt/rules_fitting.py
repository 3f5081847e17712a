"""Fit a prompt into a token budget step by step, and report what each step removed.

The first steps cost little: turns beyond the newest 20 are folded into one message, recalled memories shrink to 3 and
passages to 2. Then what is not related to the message goes, one by one. The oldest tool results and turns move behind
references that the agent can read. If that is not enough, related pieces follow by their worth per token, and core
memories last. After the last step, the room is filled again by worth. The system prompt, the clock and the skills are
never touched. A message that does not fit is shown in part, with a reference to the whole. No other piece is ever cut
in the middle.

Related pieces are worth their relevance to the message for their size. Pieces that are not related to it go before all
of them, the oldest first.

The budget is what the provider counts: every message with its role and framing, plus the start of the reply.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, takewhile

from wellkept.details.rules_keys import reference
from wellkept.errors import OverBudget
from wellkept.language.values import MAX_TOKENS, check_whole
from wellkept.model import Truncation
from wellkept.prompt.rules_escaping import to_one_line
from wellkept.prompt.rules_summaries import clip_middle
from wellkept.prompt.rules_window import (
    MOVED_HEADING,
    NEVER_CUT,
    NO_ROOM,
    Form,
    Layout,
    Piece,
    PromptPart,
    Renderer,
    Window,
    find_all_mentions,
    find_mentions,
)

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
        self.can_refer = True
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
        self,
        step: str,
        part: PromptPart,
        removed: Sequence[Piece],
        by: Piece | None,
        reason: str,
        message: str,
        *,
        made: str = "",
    ) -> bool:
        """Put `by` in place of these pieces if that is shorter, and record the truncation."""
        window = self.replace_pieces(part, removed, by, reason)
        if self.excess_of(window) >= self.excess:
            return False
        self._cuts.append(_Cut(step=step, part=part, message=message, references=tuple(find_mentions(made))))
        self._accept(self._cuts[-1], window, removed)
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

    def move(self, part: PromptPart, moved: Sequence[Piece], what: str) -> None:
        """Replace pieces by a reference, if that is shorter; references that only they mention are listed beside it."""
        if not moved or self.excess_of(self._with_reference(part, moved, longest_placeholder(what))) >= self.excess:
            return
        # A store that cannot be written has no reference to give; the pieces are dropped if nothing else helps.
        line = self.ways.refer(moved, what)
        self.can_refer = bool(line)
        if line:
            by = reference_piece(moved, line, own_mentions(moved, self.keys_outside(moved)))
            message = f"{what[:1].upper()}{what[1:]} moved behind a reference."
            self.apply("reference", part, moved, by, MOVED, message, made=line)

    def move_fewest(
        self,
        part: PromptPart,
        groups: Sequence[Sequence[Piece]],
        describe: Callable[[Sequence[Piece]], str],
        *,
        numbers: Sequence[int] = (),
    ) -> None:
        """Move as many of these groups as necessary behind one reference, in this order; `numbers` are preferred."""
        what = longest_placeholder(describe([piece for group in groups for piece in group]))

        def fits(number: int) -> bool:
            first = [piece for group in groups[:number] for piece in group]
            return self.excess_of(self._with_reference(part, first, what)) <= 0

        # Moving more hardly ever makes a prompt longer, so the number can be bisected.
        enough = 1 + bisect_left(range(1, len(groups)), True, key=fits)
        number = next((each for each in numbers if each >= enough and fits(each)), enough)
        chosen = {id(piece) for group in groups[:number] for piece in group}
        moved = [piece for piece in self.window.of(part) if id(piece) in chosen]
        self.move(part, moved, describe(moved))

    def _with_reference(self, part: PromptPart, moved: Sequence[Piece], line: str) -> Window:
        kept = own_mentions(moved, self.keys_outside(moved))
        return self.replace_pieces(part, moved, reference_piece(moved, line, kept), MOVED)

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


KEPT_TURNS = 20
KEPT_MEMORIES = 3
KEPT_KNOWLEDGE = 2

LARGE_TOKENS = 500
"""Size in tokens above which a tool result moves first, and a message can move at all."""

FOLD_STEP = 10
MOVE_STEP = 5
"""Steps in which the cache-stable layout folds and moves turns, so that the start of the prompt rarely changes."""

MESSAGE_SHARE = 2
"""Divisor of the room for a message that does not fit: it gets half, and memories and turns the rest."""

MAX_NAME_CHARS = 80


def check_budget(budget: object) -> int:
    """Validate a token budget.

    Raises: Invalid.
    """
    return check_whole(budget, "The budget (in tokens)", least=1, most=MAX_TOKENS)


def fit_window(window: Window, budget: int, ways: FitCallbacks) -> tuple[Window, Sequence[Truncation]]:
    """Fit a window into the budget and return it with the truncations made.

    Raises: OverBudget when what may never be cut is too long by itself.
    """
    fitter = Fitter(window, budget, ways)
    if fitter.excess > 0:
        _shorten_message(fitter)
    for step in STEPS:
        if fitter.excess <= 0:
            break
        step(fitter)
    fitter.refill()
    return fitter.window, fitter.truncations()


def _shorten_message(fitter: Fitter) -> None:
    """Show only the beginning and end of a long message if it leaves no room for the parts that are never cut.

    Raises: OverBudget when this is not enough.
    """
    drawing, window = fitter.ways.drawing, fitter.window
    needed = drawing.tokens(_only(window, *NEVER_CUT))
    if needed <= fitter.budget:
        return
    room = fitter.budget - drawing.tokens(
        _only(window, *(part for part in NEVER_CUT if part is not PromptPart.MESSAGE))
    )
    message = window.of(PromptPart.MESSAGE)
    if not message or drawing.count(message[0].text) <= LARGE_TOKENS or room // MESSAGE_SHARE <= 0:
        raise _over_budget(window, fitter.budget, drawing)
    what = f"the whole message, {len(message[0].text):,} characters"
    kept = own_mentions(message, fitter.keys_outside(message))

    def excerpt(chars: int, line: str) -> Piece:
        return replace(message[0], text=append_references(f"{clip_middle(message[0].text, chars)}\n\n{line}", kept))

    def cost(chars: int) -> int:
        return drawing.cost("user", excerpt(chars, longest_placeholder(what)).text)

    chars = bisect_right(range(len(message[0].text)), room // MESSAGE_SHARE, key=cost) - 1
    line = fitter.ways.refer(message, what) if chars > 0 else ""
    if not line:
        raise _over_budget(window, fitter.budget, drawing)
    said = "The message is shown in part; the whole of it moved behind a reference."
    fitter.apply("reference", PromptPart.MESSAGE, message, excerpt(chars, line), MOVED, said, made=line)


def _only(window: Window, *parts: PromptPart) -> Window:
    return replace(window, pieces={part: window.of(part) for part in parts})


def _over_budget(window: Window, budget: int, drawing: Renderer) -> OverBudget:
    """Say which parts take how much of the budget, and what to do."""
    fixed = _only(window, *NEVER_CUT)
    needed = drawing.tokens(fixed)
    # The clock is the last thing anybody can shorten.
    blocks = sorted(drawing.blocks(fixed), key=lambda block: (block.name == PromptPart.CLOCK.value, -block.tokens))
    sizes = ", ".join(f"{block.name.replace('_', ' ')} {block.tokens:,}" for block in blocks)
    return OverBudget(
        f"The parts that are never cut need {needed:,} tokens ({sizes}), {needed - budget:,} more than the budget of "
        f"{budget:,}. Shorten the {blocks[0].name.replace('_', ' ')} or raise the budget."
    )


def _fold(fitter: Fitter) -> None:
    """Fold turns beyond the newest 20 into one message; fewer in the cache-stable layout, if that suffices."""
    turns = _turns(fitter)
    exact = len(turns) - KEPT_TURNS
    if exact <= 0:
        return
    if fitter.is_stable:
        round_numbers = [number for number in range(1, exact + 1) if turns[number - 1][0].turn % FOLD_STEP == 0]
        if round_numbers and _fold_turns(fitter, turns[: round_numbers[-1]], must_fit=True):
            return
    _fold_turns(fitter, turns[:exact])


def _fold_turns(fitter: Fitter, turns: Sequence[Sequence[Piece]], *, must_fit: bool = False) -> bool:
    folded = [piece for turn in turns for piece in turn]
    kept = own_mentions(folded, fitter.keys_outside(folded))
    name = describe_turns(folded).capitalize()
    by = Piece(id=describe_turns(folded), text=append_references(fitter.ways.fold(folded), kept), form=Form.SUMMARY)
    if must_fit and fitter.excess_of(fitter.replace_pieces(PromptPart.CONVERSATION, folded, by, FOLDED)) > 0:
        return False
    return fitter.apply("fold", PromptPart.CONVERSATION, folded, by, FOLDED, f"{name} became one message.")


def _turns(fitter: Fitter) -> list[list[Piece]]:
    """Return the remaining turns of the conversation, oldest first, each with its replies."""
    turns: dict[int, list[Piece]] = {}
    for piece in fitter.of(PromptPart.CONVERSATION, Form.TURN):
        turns.setdefault(piece.turn, []).append(piece)
    return list(turns.values())


def _keep_best(fitter: Fitter, part: PromptPart, number: int) -> None:
    """Keep only the first pieces of a part, which are the best ones."""
    fitter.drop([(part, piece) for piece in reversed(fitter.window.of(part)[number:])])


def _drop(fitter: Fitter, *, with_related: bool) -> None:
    """Drop what is not related to the message, the oldest first, or all by their worth per token.

    Of equal worth, the journal goes from its oldest entry on, other parts from their last.
    """
    pieces = {part: fitter.of(part, Form.ITEM) for part in DROPPED}
    ordered = ((part, pieces[part] if part is PromptPart.JOURNAL else pieces[part][::-1]) for part in DROPPED)
    placed = [(part, piece) for part, each in ordered for piece in each]
    fitter.drop(fitter.sort_by_worth(each for each in placed if with_related or not fitter.is_related(each)))


def _move_turns(fitter: Fitter) -> None:
    """Move as many of the oldest turns as necessary, but never the newest one."""
    if turns := _turns(fitter)[:-1]:
        even = [number for number, turn in enumerate(turns, start=1) if turn[0].turn % MOVE_STEP == 0]
        fitter.move_fewest(PromptPart.CONVERSATION, turns, describe_turns, numbers=even if fitter.is_stable else ())


def _move_results(fitter: Fitter, *, larger_than: int = 0) -> None:
    """Move the oldest tool results one by one, except the newest."""
    for piece in fitter.of(PromptPart.TOOL_RESULTS, Form.ITEM)[:-1]:
        if fitter.excess > 0 and fitter.ways.drawing.count(piece.text) > larger_than:
            fitter.move(PromptPart.TOOL_RESULTS, [piece], _describe_result(piece))


def _move_newest(fitter: Fitter) -> None:
    """Move the turns and tool results that the steps before have spared, oldest first."""
    for turn in _turns(fitter) if fitter.excess > 0 else ():
        fitter.move(PromptPart.CONVERSATION, turn, describe_turns(turn))
    for piece in fitter.of(PromptPart.TOOL_RESULTS, Form.ITEM):
        if fitter.excess > 0:
            fitter.move(PromptPart.TOOL_RESULTS, [piece], _describe_result(piece))


def _move_rest(fitter: Fitter) -> None:
    """Move parts that no other step covers: the summary and core memories."""
    fitter.move(
        PromptPart.CONVERSATION, fitter.of(PromptPart.CONVERSATION, Form.SUMMARY), "the summary of earlier turns"
    )
    core = fitter.of(PromptPart.CORE, Form.ITEM)
    if fitter.excess > 0 and core:
        # Core memories are part of the stable beginning, which must not depend on the message.
        if not fitter.is_stable:
            core = [piece for _, piece in fitter.sort_by_worth((PromptPart.CORE, piece) for piece in core)]
        fitter.move_fewest(PromptPart.CORE, [[piece] for piece in core], lambda pieces: "core memories")


def _drop_rest(fitter: Fitter) -> None:
    """Drop the oldest pieces if not even references fit."""
    for part in (PromptPart.CONVERSATION, PromptPart.TOOL_RESULTS, PromptPart.CORE):
        pieces = fitter.window.of(part)

        def fits(start: int, part: PromptPart = part, pieces: Sequence[Piece] = pieces) -> bool:
            tail = replace(fitter.window, pieces={**fitter.window.pieces, part: tuple(pieces[start:])})
            return fitter.excess_of(tail) <= 0

        removed = pieces[: next(filter(fits, range(1, len(pieces))), len(pieces))]
        if removed and fitter.excess > 0:
            why = "not even as references" if fitter.can_refer else "and the store cannot be written for references"
            said = f"There was no room for {len(removed)} of {len(pieces)} {PART_NAMES[part]}, {why}."
            fitter.apply("drop", part, removed, None, NO_ROOM, said)


STEPS: Sequence[Callable[[Fitter], None]] = (
    _fold,
    partial(_keep_best, part=PromptPart.MEMORIES, number=KEPT_MEMORIES),
    partial(_keep_best, part=PromptPart.KNOWLEDGE, number=KEPT_KNOWLEDGE),
    partial(_drop, with_related=False),
    partial(_move_results, larger_than=LARGE_TOKENS),
    _move_turns,
    _move_results,
    _move_newest,
    partial(_drop, with_related=True),
    _move_rest,
    _drop_rest,
)
"""Fitting steps, applied in order until the window fits."""


def _describe_result(piece: Piece) -> str:
    """Describe a tool result for the reader.

    >>> _describe_result(Piece(id="tool 1", text="…", label="npm install"))
    'the result of npm install'
    """
    return f"the result of {to_one_line(piece.label)[:MAX_NAME_CHARS] or 'a tool'}"
