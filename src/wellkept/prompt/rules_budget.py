"""Fit a prompt into a token budget step by step, and report what each step removed.

The first steps cost little: turns beyond the newest 20 are folded into one message, recalled memories shrink to 3 and
passages to 2. Then what is not related to the message goes, one by one. The oldest tool results and turns move behind
references that the agent can read. If that is not enough, related pieces follow by their worth per token, and core
memories last. After the last step, the room is filled again by worth. The system prompt, the clock and the skills are
never touched. A message that does not fit is shown in part, with a reference to the whole.

The budget is what the provider counts: every message with its role and framing, plus the start of the reply.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace

from wellkept.errors import OverBudget
from wellkept.language.values import MAX_TOKENS, check_whole
from wellkept.model import Truncation
from wellkept.prompt.rules_escaping import to_one_line
from wellkept.prompt.rules_fitter import (
    DROPPED,
    FOLDED,
    MOVED,
    PART_NAMES,
    FitCallbacks,
    Fitter,
    append_references,
    describe_turns,
    longest_placeholder,
    own_mentions,
    reference_piece,
)
from wellkept.prompt.rules_rendering import Renderer, find_all_mentions, find_mentions
from wellkept.prompt.rules_transcript_digest import clip_middle
from wellkept.prompt.rules_window import NEVER_CUT, NO_ROOM, Form, Piece, PromptPart, Window

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
    fitter.apply(
        "reference",
        fitter.replace_pieces(PromptPart.MESSAGE, message, excerpt(chars, line), MOVED),
        message,
        part=PromptPart.MESSAGE,
        message="The message is shown in part; the whole of it moved behind a reference.",
        made=line,
    )


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
    window = fitter.replace_pieces(PromptPart.CONVERSATION, folded, by, FOLDED)
    if must_fit and fitter.excess_of(window) > 0:
        return False
    return fitter.apply("fold", window, folded, part=PromptPart.CONVERSATION, message=f"{name} became one message.")


def _turns(fitter: Fitter) -> list[list[Piece]]:
    """Return the remaining turns of the conversation, oldest first, each with its replies."""
    turns: dict[int, list[Piece]] = {}
    for piece in fitter.of(PromptPart.CONVERSATION, Form.TURN):
        turns.setdefault(piece.turn, []).append(piece)
    return list(turns.values())


def _keep_best(fitter: Fitter, part: PromptPart, number: int) -> None:
    """Keep only the first pieces of a part, which are the best ones."""
    fitter.drop([(part, piece) for piece in reversed(fitter.window.of(part)[number:])])


def _drop_unrelated(fitter: Fitter) -> None:
    """Drop what is not related to the message, the oldest first."""
    fitter.drop(fitter.sort_by_worth(each for each in _droppable(fitter) if not fitter.is_related(each)))


def _drop_by_worth(fitter: Fitter) -> None:
    """Drop what has the least worth per token."""
    fitter.drop(fitter.sort_by_worth(_droppable(fitter)))


def _droppable(fitter: Fitter) -> list[tuple[PromptPart, Piece]]:
    """Return the pieces that can be dropped: the journal from its oldest entry on, the others from their last."""
    pieces = {part: fitter.of(part, Form.ITEM) for part in DROPPED}
    return [
        (part, piece)
        for part in DROPPED
        for piece in (pieces[part] if part is PromptPart.JOURNAL else reversed(pieces[part]))
    ]


def _move_turns(fitter: Fitter) -> None:
    """Move as many of the oldest turns as necessary, but never the newest one."""
    turns = _turns(fitter)[:-1]
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
        moved_to = reference_piece(turn, longest_placeholder(describe_turns(everything)), lost)
        if saved - cost(moved_to.role, moved_to.text) >= fitter.excess:
            numbers.append(number)
    even = [number for number in numbers if turns[number - 1][0].turn % MOVE_STEP == 0]
    enough = next(iter(even if fitter.is_stable and even else numbers), len(turns))
    moved = [piece for turn in turns[:enough] for piece in turn]
    fitter.move(PromptPart.CONVERSATION, moved, describe_turns(moved))


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
    """Move parts that no other step covers: the summary, core memories and lists of references."""
    fitter.move(
        PromptPart.CONVERSATION, fitter.of(PromptPart.CONVERSATION, Form.SUMMARY), "the summary of earlier turns"
    )
    core = fitter.of(PromptPart.CORE, Form.ITEM)
    if fitter.excess > 0 and core:
        # Core memories are part of the stable beginning, which must not depend on the message.
        if not fitter.is_stable:
            core = [piece for _, piece in fitter.sort_by_worth((PromptPart.CORE, piece) for piece in core)]
        fitter.move_fewest(PromptPart.CORE, core, "core memories")
    for part in (PromptPart.TOOL_RESULTS, PromptPart.CONVERSATION):
        if fitter.excess > 0 and len(several := fitter.of(part, Form.REFERENCE)) > 1:
            fitter.move(part, several, f"references to {PART_NAMES[part]}", is_index=True)


def _drop_rest(fitter: Fitter) -> None:
    """Drop the oldest pieces if not even references fit."""
    for part in (PromptPart.CONVERSATION, PromptPart.TOOL_RESULTS, PromptPart.CORE):
        pieces = fitter.window.of(part)

        def fits(start: int, part: PromptPart = part, pieces: Sequence[Piece] = pieces) -> bool:
            tail = replace(fitter.window, pieces={**fitter.window.pieces, part: tuple(pieces[start:])})
            return fitter.excess_of(tail) <= 0

        removed = pieces[: next(filter(fits, range(1, len(pieces))), len(pieces))]
        if removed and fitter.excess > 0:
            message = (
                f"There was no room for {len(removed)} of {len(pieces)} {PART_NAMES[part]}, not even as references."
            )
            fitter.apply(
                "drop", fitter.replace_pieces(part, removed, None, NO_ROOM), removed, part=part, message=message
            )


STEPS: Sequence[Callable[[Fitter], None]] = (
    _fold,
    lambda fitter: _keep_best(fitter, PromptPart.MEMORIES, KEPT_MEMORIES),
    lambda fitter: _keep_best(fitter, PromptPart.KNOWLEDGE, KEPT_KNOWLEDGE),
    _drop_unrelated,
    lambda fitter: _move_results(fitter, larger_than=LARGE_TOKENS),
    _move_turns,
    _move_results,
    _move_newest,
    _drop_by_worth,
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
