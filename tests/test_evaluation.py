"""Measuring recall on files of labelled memories and questions."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wellkept.errors import Invalid
from wellkept.evaluation import Evaluation, ReplayOptions, Scores, Usage, evaluate, read_sets
from wellkept.evaluation.measure import split_text
from wellkept.evaluation.scores import METRICS, compute_metrics, estimate_mean
from wellkept.settings import Settings

DATA = Path(__file__).parent / "data"
LISBON = {"id": "a", "memory": "Moved to Lisbon in spring", "session_id": "s1", "created_at": "2025-05-08T10:00:00Z"}
PIANO = {"id": "b", "memory": "Plays the piano on Sundays", "session_id": "s2", "created_at": "2025-06-08T10:00:00"}
WHERE = {"question": "When did I move to Lisbon?", "expected": ["a"], "type": "place"}
WHAT = {"question": "Who plays the piano?", "expected": ["b"], "type": "music", "now": "2025-07-01T00:00:00Z"}
ENDLESS = ReplayOptions(is_endless=True)


def labelled(folder: Path, *lines: Any) -> Path:
    path = folder / "questions.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return path


def measured(path: Path, options: ReplayOptions = ENDLESS) -> Evaluation:
    return evaluate(read_sets(path), Settings(), options=options)


def by_type(found: Evaluation) -> dict[str, Scores]:
    return {each.type: each for each in found.scores}


def test_scores_are_by_type_and_level(tmp_path: Path) -> None:
    found = measured(labelled(tmp_path, LISBON, PIANO, "", WHERE, WHAT))

    assert [(each.type, each.questions) for each in found.scores] == [("all", 2), ("music", 1), ("place", 1)]
    assert all(each.turns["mrr"].mean == each.sessions["mrr"].mean == 1 for each in found.scores)
    assert (found.stored, len(found.recall_seconds)) == (2, 2)


def test_sets_see_nothing_of_each_other(tmp_path: Path) -> None:
    other = {**LISBON, "set": "other"}
    asked = {**WHERE, "expected": ["b"]}
    path = labelled(tmp_path, PIANO, other, asked, {**WHERE, "set": "other"})

    alone, together = (evaluate([each], Settings(), options=ENDLESS).scores[0] for each in read_sets(path))

    assert together.turns["hit@5"].mean == 1
    assert alone.turns["mrr"].mean in (0, 1)  # the piano, or nothing; never the other set's Lisbon


def test_sessions_alone_can_be_expected(tmp_path: Path) -> None:
    asked = {"question": "When did I move to Lisbon?", "expected_sessions": ["s1"]}

    (score,) = measured(labelled(tmp_path, LISBON, PIANO, asked)).scores

    assert score.sessions["recall@5"].mean == 1
    assert score.turns == {}


def test_questions_without_an_answer_should_find_nothing(tmp_path: Path) -> None:
    thanks = {"question": "thanks, that's all", "expected": [], "type": "small talk"}
    silent = {**thanks, "set": "nothing stored"}

    scores = by_type(measured(labelled(tmp_path, LISBON, WHERE, thanks, silent)))

    assert scores["all"].questions == 1
    assert scores["all"].no_hit is None
    (no_hit,) = {scores["unanswerable"].no_hit, scores["small talk"].no_hit}
    assert no_hit is not None
    assert no_hit.count == 2
    assert no_hit.mean >= 0.5  # a store without memories has nothing to show


def test_only_the_headline_counts_in_the_scores_over_all(tmp_path: Path) -> None:
    aside = {**WHAT, "expected": ["a"], "headline": False}

    scores = by_type(measured(labelled(tmp_path, LISBON, PIANO, WHERE, aside)))

    assert (scores["all"].questions, scores["all"].turns["mrr"].mean) == (1, 1.0)
    assert not scores["music"].is_headline


def test_only_the_questions_of_a_split_are_asked(tmp_path: Path) -> None:
    path = labelled(tmp_path, LISBON, PIANO, {**WHERE, "split": "dev"}, {**WHAT, "split": "test"})

    (score,) = measured(path, ReplayOptions(split="test")).scores

    assert score.questions == 1
    with pytest.raises(Invalid, match="no question of the split 'tets'"):
        measured(path, ReplayOptions(split="tets"))


def test_memories_expire_before_the_question_unless_endless(tmp_path: Path) -> None:
    thanks = {**PIANO, "memory": "Thanks a lot!", "created_at": "2025-05-08T10:00:00Z", "role": "user"}
    asked = {**WHAT, "question": "A lot of what?"}
    path = labelled(tmp_path, thanks, asked)

    for options, alive in ((ReplayOptions(), 0.0), (ENDLESS, 1.0)):
        score = measured(path, options).scores[0]
        assert score.alive is not None
        assert (score.alive.mean, score.turns["hit@5"].mean) == (alive, alive)


def test_what_no_question_needs_is_counted_when_it_is_a_week_old(tmp_path: Path) -> None:
    thanks = {"id": "c", "memory": "Thanks a lot!", "role": "user", "created_at": "2025-06-20T10:00:00Z"}
    path = labelled(tmp_path, {**LISBON, "kind": "note"}, {**thanks, "id": "d"}, thanks, {**WHERE, "now": WHAT["now"]})

    week = measured(path, ReplayOptions()).rest
    day = measured(labelled(tmp_path, LISBON, thanks, {**WHERE, "now": "2025-06-21T10:00:00Z"}), ReplayOptions()).rest

    assert (week.count, week.gone, week.freed) == (2, 1.0, 1.0)
    assert (day.count, day.gone) == (0, 0.0)
    assert measured(path).rest.gone == 0


def test_a_question_can_be_asked_later(tmp_path: Path) -> None:
    path = labelled(tmp_path, {**LISBON, "memory": "Thanks a lot!"}, WHERE)

    now, later = (measured(path, ReplayOptions(wait=timedelta(days=days))).scores[0].alive for days in (0, 3650))

    assert now is not None
    assert later is not None
    assert (now.mean, later.mean) == (1, 0)


def test_notes_hold_the_text_alone_in_pieces_that_fit(tmp_path: Path) -> None:
    long = {**PIANO, "memory": "Plays the piano on Sundays. " + "And other things. " * 40, "role": "assistant"}
    same = {**LISBON, "id": "c"}
    path = labelled(tmp_path, LISBON, same, long, {**WHERE, "expected": ["a", "c"]}, WHAT)

    (score, *_) = measured(path, ReplayOptions(usage=Usage.NOTES)).scores

    assert score.turns["recall@5"].mean == 1  # equal notes are one memory, and a piece stands for its text
    assert [len(piece) for piece in split_text("x" * 12 + " y", 5)] == [5, 5, 4]


def test_a_time_without_a_zone_is_utc(tmp_path: Path) -> None:
    (one,) = read_sets(labelled(tmp_path, {**PIANO, "valid_from": "2025-06-01", "tags": ["music"], "set": ""}, WHAT))

    assert one.memories[0].created_at == datetime(2025, 6, 8, 10, tzinfo=UTC)
    valid_from = datetime(2025, 6, 1, tzinfo=UTC)
    assert one.memories[0].fields == {"kind": "episode", "valid_from": valid_from, "tags": ["music"]}


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "is empty; it should be JSONL"),
        (["{"], "Line 1 of questions.jsonl is of no known form"),
        ([{"x": 1}], "Line 1 of questions.jsonl is of no known form"),
        (["[1"], "questions.jsonl is no valid JSON"),
        (["[1]"], "Entry 1 of questions.jsonl is of no known form"),
        (['[{"conversation": {}, "qa": []}]'], "Entry 1 of questions.jsonl: it has no 'speaker_a'"),
        ([{"memories": [{"id": 1}], "questions": []}], "Line 1 of questions.jsonl: it has no 'text'"),
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
        list(read_sets(labelled(tmp_path, *lines)))


@pytest.mark.parametrize("content", [None, b"\x1f\x8b broken", b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "nothing.jsonl"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(Invalid, match=r"nothing\.jsonl cannot be read"):
        list(read_sets(path))


LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I keep bees."},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Nice!"},
            ],
            "session_2_date_time": "9:00 am on 9 May, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "I sail on the lake."}],
        },
        "qa": [
            {"question": "Who sails?", "evidence": ["D2:1; D9:9"], "category": 4},
            {"question": "Which bees does Bo keep?", "evidence": ["D1:1"], "category": 5},
            {"question": "What would Ann like?", "evidence": [], "category": 3},
        ],
    }
]
LONGMEMEVAL = [
    {
        "question_id": id,
        "question_type": "single-session-user",
        "question": "What do I keep?",
        "question_date": "2023/05/20 (Sat) 02:21",
        "answer_session_ids": ["s2"],
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/01 (Mon) 10:00", "2023/05/02 (Tue) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": "Name a lake."}, {"role": "assistant", "content": " "}],
            [{"role": "user", "content": "I keep bees.", "has_answer": True}, {"role": "assistant", "content": "Nice"}],
        ],
    }
    for id in ("q1", "q2_abs")
]
CHAT = {
    "id": "chat-1",
    "memories": [
        {"id": 1, "speaker": "Ann", "ts": "2023-05-01T10:00:00", "session": "s1", "text": "I keep bees."},
        {"id": 2, "speaker": "Bo", "ts": "2023-05-02T10:00:00", "session": "s2", "text": "I sail."},
        {"id": 3, "speaker": "Bo", "ts": "2023-05-03T10:00:00", "session": "s2", "text": " "},
    ],
    "questions": [
        {"id": "q", "query": "Who keeps bees?", "turns": [1], "sessions": ["s1"], "category": "who", "now": None},
        {"id": "r", "query": "Sum up", "turns": [1, 2, 3], "category": "sum", "headline": False, "now": "2023-06-01"},
        {"id": "s", "query": "What was blank?", "turns": [3], "category": "lost"},
    ],
}
DOCUMENTS = {
    "id": "library",
    "memories": [
        {"id": "d1", "title": "Bees", "text": "Bees dance to show the way to flowers.", "session": "d1", "ts": ""},
        {"id": "d2", "title": "Sails", "text": "A sail is cut from many cloths.", "session": "d2", "ts": ""},
    ],
    "questions": [{"id": "q", "query": "How do bees show the way?", "turns": ["d1"], "sessions": ["d1"]}],
}


@pytest.mark.parametrize("is_packed", [False, True])
def test_locomo_is_recognised(tmp_path: Path, *, is_packed: bool) -> None:
    content = json.dumps(LOCOMO, indent=1).encode()
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(content) if is_packed else content)

    (one,) = read_sets(path)

    assert [memory.spoken for memory in one.memories] == ["Ann: I keep bees.", "Bo: Nice!", "Bo: I sail on the lake."]
    assert [memory.fields["role"] for memory in one.memories] == ["user", "assistant", "assistant"]
    assert one.memories[0].created_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    asked = [(each.type, list(each.expected), each.is_headline) for each in one.questions]
    assert asked == [("single-hop", ["D2:1"], True), ("adversarial", ["D1:1"], False)]


def test_longmemeval_is_recognised(tmp_path: Path) -> None:
    first, second = read_sets(labelled(tmp_path, LONGMEMEVAL))

    assert [(each.id, each.fields["role"], each.session) for each in first.memories] == [
        ("s1:0", "user", "s1"),
        ("s2:0", "user", "s2"),
        ("s2:1", "assistant", "s2"),
    ]
    assert [each.spoken for each in first.memories] == ["Name a lake.", "I keep bees.", "Nice"]
    (asked,) = first.questions
    assert (asked.expected, asked.sessions, asked.is_headline) == (["s2:0"], ["s2"], True)
    assert (second.questions[0].type, second.questions[0].is_headline) == ("abstention", False)


def test_conversations_are_recognised(tmp_path: Path) -> None:
    path = labelled(tmp_path, CHAT)

    (one,) = read_sets(path)
    scores = by_type(measured(path))

    assert [memory.spoken for memory in one.memories] == ["Ann: I keep bees.", "Bo: I sail."]
    (end, first), (later, second) = one.sort_questions("", wait=timedelta())
    assert (end, first.type) == (datetime(2023, 5, 2, 10, tzinfo=UTC), "who")
    assert (later, second.is_headline) == (datetime(2023, 6, 1, tzinfo=UTC), False)
    assert scores["all"].turns["recall@5"].mean == scores["all"].sessions["recall@5"].mean == 1


def test_documents_are_searched_as_knowledge(tmp_path: Path) -> None:
    (score,) = measured(labelled(tmp_path, DOCUMENTS), ReplayOptions()).scores

    assert score.turns["ndcg@10"].mean == 1
    assert score.sessions == {}
    assert score.alive is None


def test_the_files_of_a_folder_are_one_family(tmp_path: Path) -> None:
    labelled(tmp_path, LISBON, WHERE)
    (tmp_path / "more.jsonl").write_text(json.dumps(CHAT), "utf-8")
    (tmp_path / "README.md").write_text("About these files", "utf-8")

    assert [one.name for one in read_sets(tmp_path)] == ["chat-1", ""]
    (tmp_path / "empty").mkdir()
    with pytest.raises(Invalid, match="has no file that ends with"):
        list(read_sets(tmp_path / "empty"))


def test_the_metrics_are_those_of_the_books() -> None:
    found = compute_metrics([*"xaybz", "x", *"mnopc"], "abc")

    assert found["recall@5"] == pytest.approx(2 / 3)
    assert found["recall@10"] == pytest.approx(1)  # a repetition takes no place
    assert found["hit@5"] == 1
    assert found["mrr"] == 1 / 2
    assert compute_metrics([], "a") == dict.fromkeys(METRICS, 0.0)


def test_the_standard_error_follows_conversations() -> None:
    values = [1.0, 0.0, 0.5, 1.0]

    apart = estimate_mean((str(place), value) for place, value in enumerate(values))
    one = estimate_mean(("only", value) for value in values)
    doubled = estimate_mean((str(place // 2), value) for place, value in enumerate(v for v in values for _ in "ab"))

    # Standard deviation .4787 over four questions; asking each twice about one conversation adds nothing.
    assert apart is not None
    assert apart.error == pytest.approx(0.4787 / 2, abs=1e-4)
    assert one == apart
    assert doubled is not None
    assert doubled.error == pytest.approx(apart.error)
    # Three conversations that agree by chance say less than it seems.
    chance = estimate_mean((cluster, value) for cluster in "abc" for value in (0.0, 1.0))
    assert chance is not None
    assert chance.error == pytest.approx(0.5477 / 6**0.5, abs=1e-4)
    assert estimate_mean([]) is None
    assert str(estimate_mean([("a", 1.0)])) == "1.000"


def test_the_questions_about_relevance_are_balanced() -> None:
    """At least 60 with and 60 without an answer in each domain, and both splits of each kind."""
    sets = list(read_sets(DATA / "relevance"))

    assert len(sets) == 5
    for one in sets:
        answerable = [each for each in one.questions if each.is_answerable]
        empty = [each for each in one.questions if not each.is_answerable and each.type != "small_talk"]
        assert 30 <= len(one.memories) <= 60
        assert len(answerable) >= 60
        assert len(empty) >= 60
    kinds = {(each.type, each.split) for one in sets for each in one.questions}
    assert {split for _, split in kinds} == {"dev", "test"}
    assert len(kinds) == 10


def test_the_languages_ask_the_same() -> None:
    sets = {one.name: one for one in read_sets(DATA / "languages")}

    assert set(sets) == {"de", "en", "es", "fr", "ja"}
    ids = {name: [memory.id for memory in one.memories] for name, one in sets.items()}
    expected = {name: [each.expected for each in one.questions] for name, one in sets.items()}
    assert all(each == ids["en"] for each in ids.values())
    assert all(each == expected["en"] for each in expected.values())
    assert len({each.text for one in sets.values() for each in one.questions}) == 500


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_pairs_of_a_fact_and_a_question_are_notes(tmp_path: Path, suffix: str) -> None:
    pairs = [{"fact": "Keeps kosher", "question": "which restaurant fits his diet?", "domain": "food"}, PAIR]
    path = tmp_path / f"pairs.{suffix}"
    path.write_text(json.dumps(pairs) if suffix == "json" else "\n".join(map(json.dumps, pairs)))

    (one,) = read_sets(path)

    assert [(each.text, each.fields["kind"]) for each in one.memories] == [
        ("Keeps kosher", "note"),
        ("Owns a dog", "note"),
    ]
    assert [(each.text, each.type) for each in one.questions] == [
        (pairs[0]["question"], "food"),
        (PAIR["question"], ""),
    ]
    assert [list(each.expected) for each in one.questions] == [[each.id] for each in one.memories]


def test_what_has_no_session_is_a_note(tmp_path: Path) -> None:
    turn = {"id": "t", "speaker": "Ann", "ts": "2026-01-01T00:00:00", "session": "s", "text": "I moved"}
    fact = {"id": "o", "speaker": "Ann", "ts": "2026-01-01T00:00:00", "text": "Ann moved"}
    asked = [{"query": "Did Ann move?", "turns": ["o"]}]
    (tmp_path / "one.jsonl").write_text(json.dumps({"id": "c", "memories": [turn, fact], "questions": asked}))

    (one,) = read_sets(tmp_path / "one.jsonl")

    assert [each.spoken for each in one.memories] == ["Ann: I moved", "Ann moved"]
    assert one.memories[1].fields == {"kind": "note"}


PAIR = {"fact": "Owns a dog", "question": "which pet does he have?"}
