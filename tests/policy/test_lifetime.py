"""How memories fade."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.memory.rules_lifetime import DECAY_PER_WEEK, JOURNAL_WINDOW, decay_importance

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_the_numbers_are_these() -> None:
    assert (timedelta(days=7), 0.95) == (JOURNAL_WINDOW, DECAY_PER_WEEK)


@pytest.mark.parametrize(
    ("days", "expected"), [(-5, 0.8), (0, 0.8), (7, 0.76), (14, 0.722), (3.5, 0.8 * 0.95**0.5), (3650, 0.0)]
)
def test_importance_fades_by_the_week(days: float, expected: float) -> None:
    left = decay_importance(0.8, retrieved_at=NOW - timedelta(days=days), now=NOW)

    assert left == pytest.approx(expected, abs=1e-9)


@given(
    st.floats(0, 1), st.timedeltas(timedelta(), timedelta(days=4000)), st.timedeltas(timedelta(), timedelta(days=99))
)
def test_importance_only_fades_and_never_below_nothing(importance: float, age: timedelta, more: timedelta) -> None:
    sooner = decay_importance(importance, retrieved_at=NOW - age, now=NOW)
    later = decay_importance(importance, retrieved_at=NOW - age, now=NOW + more)

    assert 0 <= later <= sooner <= importance
