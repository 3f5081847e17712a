"""Measuring recall on a labelled file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import Invalid
from recollect.evaluation import evaluate, read_sets
from recollect.policy.recall.evaluation import METRICS, average_metrics, compute_metrics
from recollect.settings import Settings

LISBON = {"id": "a", "memory": "Moved to Lisbon in spring", "session_id": "s1", "created_at": "2025-05-08T10:00:00Z"}
PIANO = {"id": "b", "memory": "Plays the piano on Sundays", "session_id": "s2", "created_at": "2025-06-08T10:00:00"}
WHERE = {"question": "When did I move to Lisbon?", "expected": ["a"], "type": "place"}
WHAT = {"question": "Who plays the piano?", "expected": ["b"], "type": "music", "now": "2025-07-01T00:00:00Z"}


def labelled(folder: Path, *lines: Any) -> Path:
    path = folder / "questions.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return path


def test_what_should_be_found_is_counted_by_type_and_level(tmp_path: Path) -> None:
    sets = read_sets(labelled(tmp_path, LISBON, PIANO, "", WHERE, WHAT))

    found = evaluate(sets, Settings())

    assert [(each.type, each.questions) for each in found.scores] == [("all", 2), ("music", 1), ("place", 1)]
    assert all(each.memories["mrr"] == each.sessions["mrr"] == 1 for each in found.scores)
    assert (found.stored, len(found.recall_seconds)) == (2, 2)


def test_sets_see_nothing_of_each_other(tmp_path: Path) -> None:
    other = {**LISBON, "set": "other"}
    asked = {**WHERE, "expected": ["b"]}
    sets = read_sets(labelled(tmp_path, PIANO, other, asked, {**WHERE, "set": "other"}))

    alone, together = (evaluate([each], Settings()).scores[0] for each in sets)

    assert [each.name for each in sets] == ["", "other"]
    assert together.memories["hit@5"] == 1
    assert alone.memories["mrr"] in (0, 1)  # the piano, or nothing; never the other set's Lisbon


def test_sessions_alone_can_be_expected(tmp_path: Path) -> None:
    asked = {"question": "When did I move to Lisbon?", "expected_sessions": ["s1"]}

    (score,) = evaluate(read_sets(labelled(tmp_path, LISBON, PIANO, asked)), Settings()).scores

    assert score.sessions["recall@5"] == 1
    assert score.memories == {}


def test_a_time_without_a_zone_is_utc(tmp_path: Path) -> None:
    (one,) = read_sets(labelled(tmp_path, PIANO, WHAT))

    assert one.memories[0].fields["created_at"] == datetime(2025, 6, 8, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["{"], "Line 1 of questions.jsonl is not a JSON object"),
        ([{"x": 1}], "Line 1 of questions.jsonl is not a JSON object"),
        ([LISBON, {"memory": "x"}], "Line 2 of questions.jsonl: it has no 'id'"),
        ([{**LISBON, "created_at": "soon"}], "Line 1 .*soon"),
        ([{"question": "x"}], "`expected` is a list"),
        ([{"question": "x", "expected": "a"}], "`expected` is a list"),
        ([LISBON, {**WHERE, "expected": ["z"]}], "expects a memory its set does not have"),
        ([LISBON], "has no question"),
    ],
)
def test_a_file_that_is_none_says_where(tmp_path: Path, lines: list[Any], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        read_sets(labelled(tmp_path, *lines))


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        read_sets(tmp_path / "nothing.jsonl")


def test_the_metrics_are_those_of_the_books() -> None:
    found = compute_metrics([*"xaybz", "x", *"mnopc"], "abc")

    assert found["recall@5"] == pytest.approx(2 / 3)
    assert found["recall@10"] == pytest.approx(1)  # a repetition takes no place
    assert found["hit@5"] == 1
    assert found["mrr"] == 1 / 2
    assert compute_metrics([], "a") == dict.fromkeys(METRICS, 0.0)
    assert average_metrics([]) == {}
