"""How search results are scored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.model import Source
from wellkept.recall.rules_ranking import HALF_LIFE, SOURCE_PRIORITY, recency, score_parts, weighted_sum

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(("half_lives", "expected"), [(0, 1), (1, 0.5), (2, 0.25), (10, 2**-10), (-1, 1)])
def test_recency_halves_and_the_future_is_now(half_lives: int, expected: float) -> None:
    assert recency(NOW - half_lives * HALF_LIFE, now=NOW) == pytest.approx(expected)


@given(st.timedeltas(timedelta(), timedelta(days=4000)), st.timedeltas(timedelta(), timedelta(days=4000)))
def test_the_newer_is_never_less_recent(one: timedelta, other: timedelta) -> None:
    newer, older = sorted((one, other))

    newest, oldest = (recency(NOW - age, now=NOW) for age in (newer, older))

    assert newest >= oldest


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
@pytest.mark.proves("M6")
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
