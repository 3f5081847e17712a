"""A prompt fits its budget, in the stated order, and nothing leaves it without being said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.details.rules_keys import REFERENCE, find_references
from wellkept.errors import Invalid, OverBudget
from wellkept.model import Json, Kind, Memory, Owner, Truncation
from wellkept.prompt.rules_fitting import KEPT_TURNS, FitCallbacks, check_budget, fit_window
from wellkept.prompt.rules_tokens import REPLY_TOKENS, count_message, estimate_tokens
from wellkept.prompt.rules_window import Form, Layout, Piece, PromptPart, Renderer, Window

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MESSAGE = "what now?"


@dataclass
class Outside:
    """Folds in a few words, and keeps what it is asked to store."""

    kept: dict[str, list[str]] = field(default_factory=dict)
    folded: list[str] = field(default_factory=list)
    rates: dict[str, float] = field(default_factory=dict)

    def fold(self, pieces: Sequence[Piece]) -> str:
        self.folded += [piece.text for piece in pieces]
        return f"[Earlier] {len(pieces)} messages."

    def refer(self, pieces: Sequence[Piece], what: str) -> str:
        key = f"kept-{len(self.kept) + 1}"
        self.kept[key] = [piece.text for piece in pieces]
        return f"[MemoryRef: {key} - {what}]"

    @property
    def ways(self) -> FitCallbacks:
        return FitCallbacks(
            drawing=Renderer(estimate_tokens), fold=self.fold, refer=self.refer, rate=lambda: self.rates
        )


def prompt(made: Window) -> list[Json]:
    return Renderer(estimate_tokens).prompt(made)


def tokens_of(made: Window) -> int:
    return sum(count_message(message, estimate_tokens) for message in prompt(made)) + REPLY_TOKENS


def references(made: Window) -> dict[str, str]:
    return {each.key: each.text for message in prompt(made) for each in find_references(message["content"])}


def memory(text: str, kind: Kind, seq: int) -> Piece:
    created_at = NOW + timedelta(minutes=seq)
    made = Memory(id=f"m-{seq}", owner=Owner("acme", "atlas"), kind=kind, text=text, created_at=created_at)
    return Piece(id=made.id, text=text, label=made.id, memory=made)


def turns(count: int, text: str = "word " * 20) -> tuple[Piece, ...]:
    return tuple(
        Piece(id=f"turn {n}", turn=n, text=f"{role} {n} {text}", role=role, form=Form.TURN)
        for n in range(1, count + 1)
        for role in ("user", "assistant")
    )


def window(layout: Layout = Layout.STANDARD, **parts: Sequence[Piece]) -> Window:
    fixed = {
        PromptPart.SYSTEM_PROMPT: (Piece(id="system prompt", text="You are careful."),),
        PromptPart.MESSAGE: (Piece(id="message", text=MESSAGE),),
    }
    return Window(layout=layout, pieces=fixed | {PromptPart(name): tuple(pieces) for name, pieces in parts.items()})


def found(count: int, text: str = "something recalled " * 10) -> tuple[Piece, ...]:
    return tuple(
        Piece(id=f"m-{n}", label=f"m-{n}", text=f"{text} {n}", score=1 - n / 10, relevance=1 - n / 10)
        for n in range(1, count + 1)
    )


def shown(made: Window, part: PromptPart) -> list[str]:
    return [piece.id for piece in made.of(part)]


def fit(
    made: Window, budget: int, rates: dict[str, float] | None = None
) -> tuple[Window, Sequence[Truncation], Outside]:
    outside = Outside(rates=rates or {})
    result, truncations = fit_window(made, budget, outside.ways)
    assert tokens_of(result) <= budget
    return result, truncations, outside


def short_by(made: Window, tokens: int) -> int:
    return tokens_of(made) - tokens


def test_what_fits_is_left_as_it_is() -> None:
    made = window(conversation=turns(30), memories=found(5), knowledge=found(5))

    assert fit(made, short_by(made, 0))[:2] == (made, [])


def test_the_steps_come_in_their_order() -> None:
    made = window(conversation=turns(30), memories=found(5), knowledge=found(5))

    taken: list[str] = []
    for budget in range(short_by(made, 1), 100, -20):
        _, truncations, _ = fit(made, budget)
        steps = [f"{each.step} {each.block}" for each in truncations]
        assert steps[: len(taken)] == taken[: len(steps)]
        taken = max(steps, taken, key=len)
    assert taken[:4] == ["fold conversation", "drop memories", "drop knowledge", "reference conversation"]


def test_turns_beyond_the_newest_twenty_become_one_message() -> None:
    made = window(conversation=turns(30))

    result, (truncation,), outside = fit(made, short_by(made, 1))

    first, *rest = result.of(PromptPart.CONVERSATION)
    assert first.text == "[Earlier] 20 messages."
    assert rest == list(turns(30)[-2 * KEPT_TURNS :])
    assert outside.folded == [piece.text for piece in turns(10)]
    assert truncation.message == "Turns 1 to 10 became one message."
    assert truncation.tokens_removed == tokens_of(made) - tokens_of(result)


def test_the_best_three_memories_and_two_passages_stay() -> None:
    made = window(memories=found(5), knowledge=found(5))

    result, truncations, _ = fit(made, short_by(made, 240))

    assert shown(result, PromptPart.MEMORIES) == ["m-1", "m-2", "m-3"]
    assert shown(result, PromptPart.KNOWLEDGE) == ["m-1", "m-2"]
    assert [each.sources for each in truncations] == [("m-5", "m-4"), ("m-5", "m-4", "m-3")]
    assert [each.piece.id for each in result.left_out[PromptPart.MEMORIES]] == ["m-5", "m-4"]


def test_large_tool_results_move_before_turns_and_the_newest_of_both_stays_longest() -> None:
    results = [Piece(id=f"tool {n}", label="npm install", text="line\n" * 800) for n in range(3)]
    made = window(conversation=turns(4), tool_results=results)

    result, truncations, outside = fit(made, short_by(made, 1700))

    assert [piece.form for piece in result.of(PromptPart.TOOL_RESULTS)] == [Form.REFERENCE, Form.REFERENCE, Form.ITEM]
    assert result.of(PromptPart.CONVERSATION) == turns(4)
    assert [each.references for each in truncations] == [("kept-1",), ("kept-2",)]
    assert outside.kept == {"kept-1": [results[0].text], "kept-2": [results[1].text]}


def test_the_oldest_turns_move_together_and_can_be_read_again() -> None:
    made = window(conversation=turns(10))

    result, (truncation,), outside = fit(made, short_by(made, 120))

    ((key, texts),) = outside.kept.items()
    assert texts == [piece.text for piece in turns(len(texts) // 2)]
    assert result.of(PromptPart.CONVERSATION)[0].text.endswith(f"[MemoryRef: {key} - turns 1 to {len(texts) // 2}]")
    assert result.of(PromptPart.CONVERSATION)[1:] == turns(10)[len(texts) :]
    assert truncation.references == (key,)


def test_in_the_stable_layout_turns_are_folded_in_steps_of_ten_and_moved_in_steps_of_five() -> None:
    for count in range(31, 40):
        made = window(Layout.CACHE_STABLE, conversation=turns(count))
        result, _, _ = fit(made, short_by(made, 1))
        assert shown(result, PromptPart.CONVERSATION)[0] == "turns 1 to 10"
    for count in range(14, 19):
        made = window(Layout.CACHE_STABLE, conversation=turns(count))
        _, (truncation,), _ = fit(made, short_by(made, 300))
        assert truncation.message.startswith("Turns 1 to 10 moved")


def test_a_fold_that_is_longer_than_what_it_folds_is_not_taken() -> None:
    made = window(conversation=turns(25, "x"))
    outside = Outside()
    ways = FitCallbacks(drawing=Renderer(estimate_tokens), fold=lambda pieces: "long " * 500, refer=outside.refer)

    _, truncations = fit_window(made, short_by(made, 1), ways)

    assert [each.step for each in truncations] == ["reference"]


def test_a_reference_only_a_folded_or_moved_turn_mentions_is_named_beside_it() -> None:
    first, *rest = turns(30)
    mentioning = Piece(
        id=first.id, turn=1, text=f"see [MemoryRef: log-1 - the log] {first.text}", role="user", form=Form.TURN
    )
    made = window(conversation=[mentioning, *rest])

    for removed in (1, 700, 900):
        result, truncations, _ = fit(made, short_by(made, removed))
        assert references(result)["log-1"] == "[MemoryRef: log-1 - the log]"
        assert not any(each.dropped_references for each in truncations)


def test_a_reference_that_has_to_go_is_named_as_dropped() -> None:
    text = "see [MemoryRef: log-1 - the log] " + "word " * 50
    made = window(memories=[Piece(id=f"m-{n}", label=f"m-{n}", text=text if n == 5 else f"{n}") for n in range(1, 6)])

    _, (truncation,), _ = fit(made, short_by(made, 10))

    assert truncation.dropped_references == ("log-1",)


def journal(count: int) -> list[Piece]:
    return [memory(f"On day {n} the weather was fine and nothing happened.", Kind.JOURNAL, n) for n in range(count)]


def notes(count: int) -> list[Piece]:
    return [memory(f"Billing is owned by team {n}", Kind.NOTE, 100 + n) for n in range(count)]


def test_unrelated_journal_entries_go_one_by_one_the_oldest_first_and_matching_notes_stay() -> None:
    made = window(journal=journal(12), notes=notes(8), memories=found(3))
    rates = {piece.id: 0.5 for piece in notes(8)}
    whole = tokens_of(made)

    for removed in range(1, tokens_of(window(journal=journal(12))) - tokens_of(window()), 15):
        result, (truncation,), _ = fit(made, whole - removed, rates)
        kept = shown(result, PromptPart.JOURNAL)
        assert kept == [piece.id for piece in journal(12)][12 - len(kept) :]
        assert truncation.message == f"Of 12 journal entries, {len(kept)} stayed."
        assert (len(result.of(PromptPart.NOTES)), len(result.of(PromptPart.MEMORIES))) == (8, 3)


def test_related_journal_entries_stay_longer_than_newer_ones() -> None:
    made = window(journal=journal(12))

    result, _, _ = fit(made, short_by(made, 120), {"m-2": 0.4})

    assert shown(result, PromptPart.JOURNAL)[0] == "m-2"
    assert len(result.of(PromptPart.JOURNAL)) > 1


def test_among_related_pieces_the_one_with_the_least_relevance_for_its_size_goes_first() -> None:
    long, short = (memory("billing " * size, Kind.NOTE, seq) for size, seq in ((100, 1), (10, 2)))
    made = window(notes=[long, short, memory("billing " * 20, Kind.NOTE, 3)])

    result, _, _ = fit(made, short_by(made, 1), {"m-1": 0.4, "m-2": 0.3, "m-3": 0.3})

    assert shown(result, PromptPart.NOTES) == ["m-2", "m-3"]


def test_what_reads_like_instructions_goes_first_however_relevant_it_seems() -> None:
    suspicious = replace(notes(1)[0], id="m-99", is_suspicious=True)
    made = window(notes=[suspicious, *notes(4)], journal=journal(4))

    result, _, _ = fit(made, short_by(made, 1), {"m-99": 0.9, "m-101": 0.1})

    assert shown(result, PromptPart.NOTES) == [piece.id for piece in notes(4)]
    assert len(result.of(PromptPart.JOURNAL)) == 4


def test_what_a_step_dropped_comes_back_if_a_later_one_makes_room() -> None:
    made = window(memories=found(5, "short"), conversation=turns(4, "word " * 400))

    result, truncations, _ = fit(made, short_by(made, 100))

    assert shown(result, PromptPart.MEMORIES) == ["m-1", "m-2", "m-3", "m-4", "m-5"]
    assert [each.step for each in truncations] == ["reference"]


def test_core_memories_go_one_by_one_behind_a_reference_and_by_age_in_the_stable_layout() -> None:
    core = [memory(f"Something about myself, number {n}. " * 3, Kind.CORE, n) for n in range(1, 9)]
    rates = {"m-1": 0.9}

    standard, (moved,), outside = fit(window(core=core), tokens_of(window(core=core)) - 90, rates)
    kept = [piece.id for piece in standard.of(PromptPart.CORE) if piece.form is Form.ITEM]
    assert "m-1" in kept
    assert len(kept) >= 3
    assert outside.kept == {"kept-1": [piece.text for piece in core if piece.id not in kept]}
    assert moved.message == "Core memories moved behind a reference."

    made = window(Layout.CACHE_STABLE, core=core)
    for some in (rates, {"m-8": 0.9}, {}):
        stable, _, _ = fit(made, short_by(made, 90), some)
        assert [piece.id for piece in stable.of(PromptPart.CORE) if piece.form is Form.ITEM][-1] == "m-8"
        assert "m-1" not in shown(stable, PromptPart.CORE)[1:]


def long_message(words: int) -> Window:
    text = f"Why? {'word ' * words}[MemoryRef: log-1 - the log] {'word ' * words}That is all."
    return replace(window(), pieces=dict(window().pieces) | {PromptPart.MESSAGE: (Piece(id="message", text=text),)})


def test_a_message_that_does_not_fit_is_shown_in_part_with_a_reference_to_the_whole() -> None:
    made = long_message(4_000)

    result, (truncation,), outside = fit(made, 1_000)

    text = result.of(PromptPart.MESSAGE)[0].text
    assert text.startswith("Why? word")
    assert "That is all." in text
    assert outside.kept == {"kept-1": [made.of(PromptPart.MESSAGE)[0].text]}
    assert set(references(result)) == {"kept-1", "log-1"}
    assert 400 < tokens_of(result) <= 1_000
    assert (truncation.step, truncation.block, truncation.references) == ("reference", "message", ("kept-1",))


@pytest.mark.parametrize(("words", "budget"), [(100, 40), (4_000, 20)])
def test_a_short_message_and_a_tiny_budget_are_refused(words: int, budget: int) -> None:
    with pytest.raises(OverBudget, match=rf"\(message [\d,]+, system prompt \d+\), .* budget of {budget}. Shorten the"):
        fit_window(long_message(words), budget, Outside().ways)


def test_a_store_that_cannot_be_written_refuses_a_message_that_does_not_fit() -> None:
    ways = FitCallbacks(drawing=Renderer(estimate_tokens), fold=lambda pieces: "", refer=lambda pieces, what: "")

    with pytest.raises(OverBudget, match="message"):
        fit_window(long_message(4_000), 1_000, ways)


def test_what_may_never_be_cut_is_an_error_that_says_by_how_much() -> None:
    made = window(skills=[Piece(id="skill", text="do " * 400)], conversation=turns(3))
    needed = tokens_of(window(skills=made.of(PromptPart.SKILLS)))

    with pytest.raises(OverBudget, match=rf"need {needed:,} tokens .* 7 more than the budget of {needed - 7:,}"):
        fit_window(made, needed - 7, Outside().ways)
    assert tokens_of(fit(made, needed)[0]) == needed


@pytest.mark.parametrize("budget", [0, -1, True, 1.5, "8000", None])
def test_a_budget_is_a_positive_whole_number(budget: Any) -> None:
    with pytest.raises(Invalid, match="whole number"):
        check_budget(budget)


# --- for any prompt and any budget

texts = st.text(st.sampled_from("abc \n[]-é漢"), max_size=200) | st.builds(
    "{} [MemoryRef: {} - log] {}".format,
    st.text("ab ", max_size=100),
    st.sampled_from("klmn"),
    st.text("cd", max_size=9),
)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    def some(kind: Kind | None, most: int) -> list[Piece]:
        drawn = draw(st.lists(texts, max_size=most))
        if kind is None:
            return [Piece(id=f"p-{n}", label=f"p-{n}", text=text) for n, text in enumerate(drawn)]
        return [memory(text, kind, n + 1) for n, text in enumerate(drawn)]

    said = draw(st.lists(texts, max_size=60))
    summary = [Piece(id="summary", text=draw(texts), form=Form.SUMMARY)] if draw(st.booleans()) else []
    spoken = [
        Piece(id=f"turn {n // 2 + 1}", turn=n // 2 + 1, text=text, role=("user", "assistant")[n % 2], form=Form.TURN)
        for n, text in enumerate(said)
    ]
    return window(
        draw(st.sampled_from(Layout)),
        core=some(Kind.CORE, 4),
        journal=some(Kind.JOURNAL, 4),
        notes=some(Kind.NOTE, 10),
        memories=some(None, 5),
        knowledge=some(None, 5),
        tool_results=some(None, 8),
        conversation=[*summary, *spoken],
    )


def spelled_out(source: str) -> list[str]:
    """Every turn of a run."""
    run = re.fullmatch(r"turns (\d+) to (\d+)", source)
    return [source, *(f"turn {n}" for n in range(int(run[1]), int(run[2]) + 1))] if run else [source]


@given(made=windows(), share=st.floats(0, 1))
def test_any_prompt_fits_any_budget_and_nothing_is_lost_unsaid(made: Window, share: float) -> None:
    fixed = tokens_of(window(made.layout))
    budget = fixed + int(share * (tokens_of(made) - fixed))
    outside = Outside()

    result, truncations = fit_window(made, budget, outside.ways)

    messages = prompt(result)
    assert tokens_of(result) <= budget
    assert messages[0]["content"] == "You are careful."
    assert messages[-1] == {"role": "user", "content": MESSAGE}
    assert sum(each.tokens_removed for each in truncations) == tokens_of(made) - tokens_of(result)
    told = {(each.block, source) for each in truncations for name in each.sources for source in spelled_out(name)}
    for part in PromptPart:
        kept = {id(piece) for piece in result.of(part)}
        for piece in made.of(part):
            assert id(piece) in kept or (part.value, piece.id) in told
        order = {id(piece): place for place, piece in enumerate(made.of(part))}
        places = [order[id(piece)] for piece in result.of(part) if id(piece) in order]
        assert places == sorted(places)
    lost = set(references(made)) - set(references(result))
    assert lost <= {key for each in truncations for key in each.dropped_references}


DROPPABLE = (PromptPart.JOURNAL, PromptPart.NOTES, PromptPart.MEMORIES, PromptPart.KNOWLEDGE)


@st.composite
def rated_windows(draw: st.DrawFn) -> tuple[Window, dict[str, float]]:
    """Many short pieces in every part that can be dropped, some of them related to the message."""
    lengths = st.lists(st.integers(1, 120), max_size=12)
    relevance = st.sampled_from([0.0, 0.0, 0.2, 0.5, 0.9])
    kinds = {PromptPart.JOURNAL: Kind.JOURNAL, PromptPart.NOTES: Kind.NOTE}
    parts: dict[str, list[Piece]] = {}
    rates: dict[str, float] = {}
    for part in DROPPABLE:
        pieces = []
        for length in draw(lengths):
            seq, rate = len(rates) + 1, draw(relevance)
            rates[f"m-{seq}"] = rate
            piece = memory("x" * length, kinds.get(part, Kind.EPISODE), seq)
            pieces.append(replace(piece, relevance=0.0 if part in kinds else rate))
        parts[part.value] = pieces
    made = window(draw(st.sampled_from(Layout)), conversation=turns(draw(st.integers(0, 3)), "word"), **parts)
    return made, {id: rate for id, rate in rates.items() if rate}


@given(rated=rated_windows(), share=st.floats(0, 1))
def test_no_room_is_left_for_anything_that_was_dropped(rated: tuple[Window, dict[str, float]], share: float) -> None:
    made, rates = rated
    fixed = tokens_of(window(made.layout))
    budget = fixed + int(share * (tokens_of(made) - fixed))

    result, truncations, _ = fit(made, budget, rates)
    again, *_ = fit(made, budget, rates)

    assert prompt(again) == prompt(result)
    dropped = [(part, each.piece) for part in DROPPABLE for each in result.left_out.get(part, ())]
    assert {piece.id for _, piece in dropped} == {id for each in truncations for id in each.sources if "m-" in id}
    for part, piece in dropped:
        order = [each for each in made.of(part) if each in result.of(part) or each is piece]
        assert tokens_of(replace(result, pieces=dict(result.pieces) | {part: tuple(order)})) > budget
    # A line of 120 characters takes at most 36 tokens with its label; a first one also takes the 24 of its block.
    if dropped and budget >= 1_200:
        assert tokens_of(result) >= 0.95 * budget


@given(rated=rated_windows(), share=st.floats(0, 1))
def test_nothing_related_is_dropped_for_what_is_not(rated: tuple[Window, dict[str, float]], share: float) -> None:
    made, rates = rated
    fixed = tokens_of(window(made.layout))
    budget = fixed + int(share * (tokens_of(made) - fixed))

    result, *_ = fit(made, budget, rates)

    related = {part: tuple(each for each in result.of(part) if each.id in rates) for part in DROPPABLE}
    bare = replace(result, pieces=dict(result.pieces) | related)
    for part in DROPPABLE:
        for piece in (each.piece for each in result.left_out.get(part, ()) if each.piece.id in rates):
            order = [each for each in made.of(part) if each in related[part] or each is piece]
            assert tokens_of(replace(bare, pieces=dict(bare.pieces) | {part: tuple(order)})) > budget


@given(made=windows(), share=st.floats(0, 1))
def test_no_placeholder_is_ever_cut_in_half(made: Window, share: float) -> None:
    fixed = tokens_of(window(made.layout))
    budget = fixed + int(share * (tokens_of(made) - fixed))

    result, _ = fit_window(made, budget, Outside().ways)

    for message in prompt(result):
        assert message["content"].count("[MemoryRef:") == len(REFERENCE.findall(message["content"]))
