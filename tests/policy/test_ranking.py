"""How search results are scored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.model import Source
from wellkept.policy.recall.ranking import SOURCE_PRIORITY, hybrid, recency, score_parts, weighted_sum

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HALF_LIFE = timedelta(days=90)
WORDS = st.dictionaries(st.integers(1, 9), st.floats(0.01, 50))
MEANING = st.dictionaries(st.integers(1, 9), st.floats(-1, 1))


@given(WORDS, MEANING, st.floats(0, 1))
def test_similarity_is_between_0_and_1_for_whatever_either_side_found(
    words: dict[int, float], meaning: dict[int, float], share: float
) -> None:
    scores = hybrid(words, meaning, words_share=share)

    assert set(scores) == set(words) | set(meaning)
    assert all(0 <= score <= 1.000001 for score in scores.values())


@given(WORDS, MEANING, st.floats(0.1, 10), st.floats(0, 1))
def test_the_scale_of_word_scores_does_not_matter(
    words: dict[int, float], meaning: dict[int, float], scale: float, share: float
) -> None:
    scaled = {number: score * scale for number, score in words.items()}

    assert hybrid(scaled, meaning, words_share=share) == pytest.approx(hybrid(words, meaning, words_share=share))


@given(WORDS, MEANING, st.floats(0.1, 0.9))
def test_being_best_at_both_is_being_best(words: dict[int, float], meaning: dict[int, float], share: float) -> None:
    best = {0: 100.0} | words, {0: 1.0} | meaning

    scores = hybrid(*best, words_share=share)

    assert scores[0] == max(scores.values())


@pytest.mark.parametrize(
    ("words", "meaning", "best"),
    [({}, {}, None), ({1: 3.0}, {}, 1), ({}, {2: 0.4}, 2), ({1: 3.0}, {2: -0.4}, 1)],
)
def test_one_side_alone_is_enough(words: dict[int, float], meaning: dict[int, float], best: int | None) -> None:
    scores = hybrid(words, meaning, words_share=0.5)

    assert max(scores, key=scores.__getitem__, default=None) == best


@pytest.mark.parametrize(("half_lives", "expected"), [(0, 1), (1, 0.5), (2, 0.25), (10, 2**-10), (-1, 1)])
def test_recency_halves_and_the_future_is_now(half_lives: int, expected: float) -> None:
    assert recency(NOW - half_lives * HALF_LIFE, now=NOW, half_life=HALF_LIFE) == pytest.approx(expected)


@given(st.timedeltas(timedelta(), timedelta(days=4000)), st.timedeltas(timedelta(), timedelta(days=4000)))
def test_the_newer_is_never_less_recent(one: timedelta, other: timedelta) -> None:
    newer, older = sorted((one, other))

    newest, oldest = (recency(NOW - age, now=NOW, half_life=HALF_LIFE) for age in (newer, older))

    assert newest >= oldest


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_being_new_and_important_never_lifts_a_weak_match_over_one_twice_as_relevant(
    weak: float, recency: float, importance: float
) -> None:
    weights = {"similarity": 0.5, "recency": 0.2, "importance": 0.2, "source": 0.1}
    lifted = score_parts(weak / 2, recency=recency, importance=importance, source=Source.MEMORY)
    plain = score_parts(weak, recency=0.0, importance=0.0, source=Source.MEMORY)

    assert weighted_sum(lifted, weights) <= weighted_sum(plain, weights) + 1e-9


def test_every_source_has_a_priority_and_memories_the_highest() -> None:
    assert set(SOURCE_PRIORITY) == set(Source)
    assert max(SOURCE_PRIORITY, key=SOURCE_PRIORITY.__getitem__) is Source.MEMORY
    assert all(0 <= priority <= 1 for priority in SOURCE_PRIORITY.values())


def test_a_score_is_the_sum_of_its_weighted_parts() -> None:
    weights = {"similarity": 0.5, "recency": 0.2, "importance": 0.2, "source": 0.1}

    assert weighted_sum(dict.fromkeys(weights, 1.0), weights) == pytest.approx(1)
    assert weighted_sum(dict.fromkeys(weights, 0.0), weights) == 0
    assert weighted_sum({"similarity": 1.0}, weights) == 0.5
