"""Relevance as a probability."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.test_similarity import NOW, evidence, order, similarities
from wellkept.language.text import ANSWER, ASKING, NUMBER, QUESTION, SELF, SPOKEN, TIME, index_terms, terms
from wellkept.model import Role
from wellkept.recall.rules_features import SPEAKERS
from wellkept.recall.rules_matching import BestMatch, load_weights, rate_words
from wellkept.recall.rules_question import ParsedQuery, Span, asks_history, spans

SHARES = st.floats(0, 1)
USERS = np.full(2, SPEAKERS.index(Role.USER), np.int8)


FITTED = {
    f"{of}, {form}": getattr(getattr(load_weights(), of), form)
    for of in ("facts", "turns")
    for form in ("with_meaning", "by_words")
}
HELPFUL = (
    "score",
    "above_mean",
    "cover",
    "held_rarity",
    "full_rarity",
    "names_near",
    "wordless_meaning",
    "best_meaning",
)
WORDS_OR_MEANING = {"own", "near", "around", "around_held", "cover", "near_cover"}
WORDS_OR_MEANING |= {"cosine", "meaning", "near_meaning", "talk_meaning"}
HARMFUL = ("unknown_rarity", "missing", "unknown_words", "unknown_names", "no_word")


@given(st.data(), st.sampled_from(list(FITTED)), st.integers(1, 100_000), SHARES)
def test_relevance_is_a_probability_and_falls_with_the_rank(
    data: st.DataObject, form: str, records: int, short: float
) -> None:
    values = {name: data.draw(st.floats(0, 10), label=name) for name in FITTED[form].answered}
    match = BestMatch(values=values, records=records, short=short)

    relevance = FITTED[form].rate(match, np.array([0, 1, 5, 50], np.float32))

    assert np.all((relevance >= 0) & (relevance <= 1))
    assert np.all(np.diff(relevance) <= 0)


@pytest.mark.parametrize("form", list(FITTED))
@pytest.mark.parametrize(("names", "sign"), [(HELPFUL, 1), (HARMFUL, -1)])
def test_every_property_counts_in_its_direction(form: str, names: Sequence[str], sign: int) -> None:
    known = [name for name in names if name in FITTED[form].answered]

    assert all(sign * weight >= 0 for name in known for weight in FITTED[form].answered[name])
    assert any(weight for name in known for weight in FITTED[form].answered[name])


def test_a_record_with_more_of_the_question_is_more_relevant() -> None:
    assert rate_words(0.2, terms=5) < 0.25 < 0.45 < rate_words(0.9, terms=5)


def test_words_and_meaning_never_count_against_a_memory() -> None:
    facts, turns = load_weights().facts.ranking, load_weights().turns.ranking

    assert {*facts, *turns} >= WORDS_OR_MEANING
    assert all(min(each[name]) >= 0 for each in (facts, turns) for name in WORDS_OR_MEANING & each.keys())


@pytest.mark.parametrize(
    ("text", "traits"),
    [
        ("What is the name of her dog?", {QUESTION, ASKING}),
        ("How do I plan it, now that I have 10 hours a week?", {ASKING, NUMBER, SELF}),
        ("I moved to Oslo. Do you like it?", {SELF}),
        ("Ann: we met yesterday", {SPOKEN, SELF, TIME, "by:ann"}),
        ("Wo wohnt der Hund?", {QUESTION, ASKING}),
        ("Mein Geburtstag ist am 3. März", {SELF, TIME, NUMBER}),
        ("¿Dónde vive el perro?", {QUESTION, ASKING}),
        ("犬の名前は何ですか？", {QUESTION, ASKING}),
        ("Sure, here are some ideas", {ANSWER}),
        ("note: call back", set()),
    ],
)
def test_traits_of_a_text(text: str, traits: set[str]) -> None:
    assert {term for term in index_terms(text) if ":" in term} == traits
    assert not any(":" in term for term in terms(text))


def test_a_stored_question_is_no_answer_to_itself() -> None:
    found = evidence("What is my dog's name?", "What is my dog's name?", "My dog's name is Max", cosines=[1.0, 0.7])

    assert order(found)[0] == 2
    assert similarities(*found)[0] < similarities(*found)[1]


def test_the_speaker_that_a_question_names_comes_first() -> None:
    texts = [f"{name}: painted a lake" for name in ("Ann", "Bob", "Ann", "Bob")]

    assert set(order(evidence("What did Bob paint?", *texts, as_turns=True))[:2]) == {2, 4}


def test_without_roles_an_answer_is_told_by_its_form() -> None:
    texts = ("Sure, here are lamps for the desk", "the lamps for the desk I bought")

    assert order(evidence("Which lamps did you recommend for the desk?", *texts, speakers=USERS, as_turns=True))[0] == 1


@pytest.mark.parametrize(
    ("query", "asks_time", "asks_number"),
    [
        ("When did Ann move?", True, False),
        ("How many cats do I have?", False, True),
        ("Wann ist Ann umgezogen?", True, False),
        ("Combien de chats ai-je ?", False, True),
        ("¿Cuántos gatos tengo?", False, True),
        ("Where is it?", False, False),
    ],
)
def test_what_a_question_asks_for(query: str, asks_time: bool, asks_number: bool) -> None:
    question = ParsedQuery.read(query, NOW)

    assert (question.asks_time, question.asks_number) == (asks_time, asks_number)


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("Was habe ich am 3. Januar 2026 gekauft?", date(2026, 1, 3), date(2026, 1, 3)),
        ("Wo war ich im Mai 2025?", date(2025, 5, 1), date(2025, 5, 31)),
        ("Was geschah letzte Woche?", date(2026, 2, 16), date(2026, 2, 22)),
        ("Qu'ai-je fait hier ?", date(2026, 2, 28), date(2026, 2, 28)),
        ("¿Dónde estuve el 5 de enero de 2026?", date(2026, 1, 5), date(2026, 1, 5)),
        ("Cosa ho fatto ieri?", date(2026, 2, 28), date(2026, 2, 28)),
    ],
)
def test_dates_in_other_languages(query: str, first: date, last: date) -> None:
    assert spans(query, NOW) == [Span(first, last)]


@pytest.mark.parametrize("query", ["Was steht hier?", "a mars bar"])
def test_words_that_only_look_like_a_date(query: str) -> None:
    assert spans(query, NOW) == []


def test_history_is_asked_for_in_words() -> None:
    assert asks_history("Show the audit log")
    assert asks_history("what happened to m-7?")
    assert not asks_history("What is the name of my dog?")
