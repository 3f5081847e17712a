"""`wellkept admin eval`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.program import Program
from wellkept import __version__

LINES: list[dict[str, Any]] = [
    {"id": "a", "memory": "Moved to Lisbon in spring", "session_id": "s1", "created_at": "2025-05-08T10:00:00Z"},
    {"id": "b", "memory": "Thanks a lot!", "created_at": "2025-05-08T10:00:00Z"},
    {"question": "When did I move to Lisbon?", "expected": ["a"], "type": "place", "split": "dev"},
    {"question": "Was I grateful?", "expected": ["b"], "type": "mood", "headline": False, "split": "dev"},
    {"question": "thanks, that's all", "expected": [], "type": "small talk", "now": "2025-07-01T00:00:00Z"},
]


@pytest.fixture
def labelled(program: Program) -> Program:
    (program.folder / "mine.jsonl").write_text("\n".join(map(json.dumps, LINES)), "utf-8")
    return program


def test_scores_are_printed_for_each_type(labelled: Program) -> None:
    header, *rows = [line.split("\t") for line in labelled.ok("admin", "eval", "mine.jsonl").splitlines()]

    assert header[:5] == ["Family", "Type", "Level", "Questions", "recall@5"]
    named = {(row[1], row[2]): row[3:] for row in rows[:-1]}
    assert named["all", "turn"][0] == "1"
    assert named["all", "session"][1] == "1.000"
    assert named["mood (not in all)", "turn"][0] == "1"
    assert named["small talk", "-"][1:7] == ["-"] * 6
    assert rows[-1][0].startswith("mine: recall p50 ")
    assert "of 1 other memories older than a week 100% are gone" in rows[-1][0]


def test_json_holds_every_measurement(labelled: Program) -> None:
    ended = labelled(
        "admin", "eval", "mine.jsonl", "--endless", "--as", "notes", "--split", "dev", "--wait", "30", "--json"
    )

    (family,) = ended.json["families"]
    scores = {each["type"]: each for each in family["scores"]}
    assert (family["family"], family["stored"]) == ("mine", 2)
    assert scores["all"]["turns"]["recall@5"] == {"mean": 1.0, "error": None, "count": 1}
    assert scores["all"]["alive"]["mean"] == 1
    assert scores["all"]["no_hit"] is None
    assert family["rest"]["kept"] == family["rest"]["count"] == 1
    # The scores over all are those of the only type in the headline.
    assert set(scores) == {"all", "mood"}


def test_files_are_checked_before_anything_runs(labelled: Program) -> None:
    missing = labelled("admin", "eval", "mine.jsonl", "missing.jsonl")
    unknown = labelled("admin", "eval", "mine.jsonl", "--split", "tets")

    assert (missing.code, missing.out) == (2, "")
    assert "missing.jsonl" in missing.err
    assert unknown.code != 0
    assert "no question of the split 'tets'" in unknown.err


def test_the_speed_of_every_verb_is_printed_beside_its_floor(program: Program) -> None:
    ended = program("admin", "bench", "--seconds", "0", "--memories", "30")
    header, *rows, machine = [line.split("\t") for line in ended.out.splitlines()]

    assert ended.code == 0, ended
    assert header == ["Verb", "Calls/s", "CPU ms", "Floor ms", "Ratio", "Floor"]
    assert [row[0] for row in rows] == ["recall", "context", "remember", "log_turn", "remember_many (100)"]
    assert all(float(row[2]) > 0 and float(row[3]) > 0 for row in rows)
    assert f"wellkept {__version__}" in machine[0]
    assert "30 memories" in machine[0]
    assert not (program.folder / "notes.db").exists(), "the store of the settings is left alone"


def test_the_speed_can_be_read_by_programs(program: Program) -> None:
    found = json.loads(program.ok("admin", "bench", "--seconds", "0", "--memories", "30", "--json"))

    assert {each["verb"] for each in found["verbs"]} >= {"recall", "context", "remember", "log_turn"}
    assert all(each["ratio"] == each["cpu_ms"] / each["floor_cpu_ms"] for each in found["verbs"])
    assert all(each["calls"] >= 6 for each in found["verbs"])
