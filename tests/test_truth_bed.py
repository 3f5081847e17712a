"""The test bed of current truth: every pattern means something that was said, and every line is in its half."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from benchmarks.truth.__main__ import STATEMENTS
from benchmarks.truth.data import Person, Question, is_held_out, read_people, read_rows
from benchmarks.truth.people import count

KINDS = {"changed", "unchanged", "past", "unknown", "forgotten"}
CHANGES = {"cue", "no cue", "partial", "reversal", "also", "forget"}
PEOPLE = [*read_people(held_out=False), *read_people(held_out=True)]
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
WORD = re.compile(r"[^\W\d_]{4,}")
COMMON = set(
    "what when where which whom whose does have with that this from they them their there would should could been were "
    "about into your mine still much many more than then these those name called give going after once ever most must "
    "over under each every will shall make made like last long before".split()
)


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: person.name)
def test_every_pattern_matches_what_was_said(person: Person) -> None:
    patterns = [each for question in person.questions for each in (*question.current, *question.outdated)]

    assert not [each for each in patterns if not any(re.search(each, said, re.IGNORECASE) for said in person.said)]


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: person.name)
def test_no_sentence_is_current_and_outdated(person: Person) -> None:
    sentences = [each for said in person.said for each in SENTENCE.split(said)]

    assert not [
        (question.natural, each)
        for question in person.questions
        for each in sentences
        if question.is_current(each) and question.is_outdated(each)
    ]


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: person.name)
def test_hard_wordings_share_no_word_with_the_answer(person: Person) -> None:
    sentences = [each for said in person.said for each in SENTENCE.split(said)]

    assert not [
        (question.hard, each)
        for question in person.questions
        for each in sentences
        if question.kind != "past" and question.is_current(each) and _words(question.hard) & _words(each)
    ]


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: person.name)
def test_questions_have_what_their_kind_needs(person: Person) -> None:
    kinds = Counter(question.kind for question in person.questions)

    assert kinds.keys() == KINDS
    assert kinds.total() >= 25
    assert all(bool(each.current) == (each.kind not in {"unknown", "forgotten"}) for each in person.questions)
    assert all(each.outdated for each in person.questions if each.kind == "forgotten")
    assert not any(each.outdated for each in person.questions if each.kind in {"unchanged", "past", "unknown"})


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: person.name)
def test_conversations_are_long_and_in_order(person: Person) -> None:
    times = [turn.at for turn in person.turns]

    assert len(times) >= 60
    assert times == sorted(times)
    assert len({turn.session for turn in person.turns}) >= 7
    assert {change for turn in person.turns for change in turn.changes} <= CHANGES


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("held_out", [False, True], ids=["tuned on", "held out"])
def test_every_line_is_in_its_half(name: str, held_out: bool) -> None:
    firsts = [next(iter(row.values())) for row in read_rows(name, held_out=held_out)]

    assert len(firsts) == len(set(firsts))
    assert {is_held_out(first) for first in firsts} == {held_out}


@pytest.mark.parametrize("held_out", [False, True], ids=["tuned on", "held out"])
def test_sentences_and_requests_have_what_is_measured(held_out: bool) -> None:
    sentences, requests = (read_rows(name, held_out=held_out) for name in ("sentences", "forget"))

    assert {row["label"] for row in sentences} == {"user", "other", "nothing"}
    assert all(("who" in row) == (row["label"] == "other") for row in sentences)
    assert all(row["maybe"] or row["stay"] for row in requests)
    assert not any(row["go"] and row["maybe"] for row in requests)


OLD, NEW, OTHER = "- I live in Leeds", "- I moved to York", "- I like tea"


@pytest.mark.parametrize(
    ("lines", "current", "outdated", "alone", "noise"),
    [
        ([NEW, OTHER], 1, 0, 1, 0),
        ([NEW, OLD, OTHER], 1, 1, 0, len(OLD)),
        ([NEW, f"{OLD} (until 2026-09-01)"], 1, 0, 1, len(f"{OLD} (until 2026-09-01)")),
        ([OTHER], 0, 0, 0, 0),
    ],
    ids=["new", "both", "old one marked", "neither"],
)
def test_what_a_prompt_shows_is_counted(lines: list[str], current: int, outdated: int, alone: int, noise: int) -> None:
    question = Question("changed", "Where do I live?", "Which town?", ["moved to york"], ["live in leeds"])

    tally = count([question], "hard", [lines], stable_lines={OTHER})

    assert (tally.current["changed"], tally.outdated["changed"]) == (current, outdated)
    assert (tally.alone["changed"], tally.noise) == (alone, noise)


def test_the_forgotten_may_not_be_shown_even_marked() -> None:
    question = Question("forgotten", "Where did I live?", "Which town?", [], ["live in leeds"])

    assert count([question], "natural", [[f"{OLD} (until 2026-09-01)"]], stable_lines=set()).shown_anyway == 1
    assert count([question], "natural", [[NEW]], stable_lines=set()).shown_anyway == 0


def _words(text: str) -> set[str]:
    """Return the content words, by their first letters, so that "running" is "runs"."""
    return {word[:5] for word in WORD.findall(text.lower()) if word not in COMMON}
