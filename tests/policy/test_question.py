"""Whose words a question asks for, and when they were said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wellkept.model import Role
from wellkept.recall.rules_question import LIGHT, MAX_TERMS, ParsedQuery, find_speaker, spans

NOW = datetime(2023, 5, 30, 18, 0, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did we do on 8 May 2023?", ["2023-05-08 2023-05-08"]),
        ("What did we do on May 8th, 2022?", ["2022-05-08 2022-05-08"]),
        ("the 2022-12-31 party", ["2022-12-31 2022-12-31"]),
        ("before the 7/22 trip", ["2022-07-22 2022-07-22"]),
        ("before the 22/7/21 trip", ["2021-07-22 2021-07-22"]),
        ("Where was Dave in August 2022?", ["2022-08-01 2022-08-31"]),
        ("Where was Dave in August?", ["2022-08-01 2022-08-31"]),
        ("What did I buy last May?", ["2022-05-01 2022-05-31"]),
        ("What did I buy in May?", ["2023-05-01 2023-05-31"]),
        ("What did April and June say?", []),
        ("You may march", []),
        ("in the last two weeks of August 2022", ["2022-08-18 2022-08-31"]),
        ("in the first half of September 2022", ["2022-09-01 2022-09-15"]),
        ("the beginning of November 2022", ["2022-11-01 2022-11-11"]),
        ("summer 2021", ["2021-06-01 2021-08-31"]),
        ("What did I do last summer?", ["2022-06-01 2022-08-31"]),
        ("two weeks ago", ["2023-05-13 2023-05-19"]),
        ("5 days ago", ["2023-05-25 2023-05-25"]),
        ("a couple of days ago", ["2023-05-28 2023-05-28"]),
        ("in the past month", ["2023-04-30 2023-05-30"]),
        ("in the last two months", ["2023-03-30 2023-05-30"]),
        ("in the last month", ["2023-04-30 2023-05-30"]),
        ("Over the last week, what did I eat?", ["2023-05-23 2023-05-30"]),
        ("how was the last year?", ["2022-05-30 2023-05-30"]),
        ("in the last day", ["2023-05-29 2023-05-30"]),
        ("in the last weekend", ["2023-05-27 2023-05-28"]),
        ("in the last month of the project", []),
        ("in der letzten Woche", ["2023-05-23 2023-05-30"]),
        ("innerhalb des letzten Monats", ["2023-04-30 2023-05-30"]),
        ("während des vergangenen Jahres", ["2022-05-30 2023-05-30"]),
        ("in der letzten Woche der Ferien", []),
        ("in den letzten zwei Monaten", ["2023-03-30 2023-05-30"]),
        ("in den vergangenen 10 Tagen", ["2023-05-20 2023-05-30"]),
        ("letzte Woche", ["2023-05-22 2023-05-28"]),
        ("seit letzter Woche", ["2023-05-22 2023-05-28"]),
        ("im letzten Monat", ["2023-04-01 2023-04-30"]),
        ("im vergangenen Jahr", ["2022-01-01 2022-12-31"]),
        ("au cours du dernier mois", ["2023-04-30 2023-05-30"]),
        ("durant la dernière semaine", ["2023-05-23 2023-05-30"]),
        ("la dernière semaine des vacances", []),
        ("ces 3 derniers mois", ["2023-02-28 2023-05-30"]),
        ("les deux dernières semaines", ["2023-05-16 2023-05-30"]),
        ("le mois dernier", ["2023-04-01 2023-04-30"]),
        ("l'an dernier", ["2022-01-01 2022-12-31"]),
        ("en el último mes", ["2023-04-30 2023-05-30"]),
        ("en las últimas dos semanas", ["2023-05-16 2023-05-30"]),
        ("del mes pasado", ["2023-04-01 2023-04-30"]),
        ("nell'ultimo anno", ["2022-05-30 2023-05-30"]),
        ("negli ultimi 5 giorni", ["2023-05-25 2023-05-30"]),
        ("nel mese scorso", ["2023-04-01 2023-04-30"]),
        ("no último mês", ["2023-04-30 2023-05-30"]),
        ("nos últimos 10 dias", ["2023-05-20 2023-05-30"]),
        ("no mês passado", ["2023-04-01 2023-04-30"]),
        ("this month", ["2023-05-01 2023-05-30"]),
        ("this week", ["2023-05-29 2023-05-30"]),
        ("last week", ["2023-05-22 2023-05-28"]),
        ("last weekend", ["2023-05-27 2023-05-28"]),
        ("last month", ["2023-04-01 2023-04-30"]),
        ("last year", ["2022-01-01 2022-12-31"]),
        ("last Tuesday", ["2023-05-23 2023-05-23"]),
        ("yesterday", ["2023-05-29 2023-05-29"]),
        ("in 2021", ["2021-01-01 2021-12-31"]),
        ("around Christmas", ["2022-12-25 2022-12-25"]),
        ("two weeks before Christmas", ["2022-12-08 2022-12-14"]),
        ("the Sunday before October 25, 2022", ["2022-10-23 2022-10-23"]),
        ("the week after 9 June 2022", ["2022-06-10 2022-06-16"]),
        ("on 31 June 2022 or 99/99", ["2022-06-01 2022-06-30"]),
        ("between 3 May 2023 and 5 May 2023", ["2023-05-03 2023-05-03", "2023-05-05 2023-05-05"]),
        ("a question without any date", []),
        ("in 300 weeks or room 2019", []),
    ],
)
def test_what_a_question_says_about_when(question: str, expected: list[str]) -> None:
    assert [f"{span.first} {span.last}" for span in spans(question, NOW)] == expected


@pytest.mark.parametrize("text", ["0 days ago", "last 0 weeks", "29 February 2023", "00/00/00", "13/13", "0000-00-00"])
def test_what_is_no_date_is_passed_over(text: str) -> None:
    assert all(span.first <= span.last for span in spans(text, NOW))


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("What breed is my dog?", Role.USER),
        ("Can you recommend a film for me?", Role.USER),
        ("Can you remind me what I said about Rome?", Role.USER),
        ("Could you remind me of the hotel?", Role.ASSISTANT),
        ("What did you suggest?", Role.ASSISTANT),
        ("Which of the five you’ve listed was red?", Role.ASSISTANT),
        ("In our previous conversation, what was the third step?", Role.ASSISTANT),
        ("What did Caroline say?", None),
        ("tabs or spaces", None),
    ],
)
def test_whose_words_are_asked_for(question: str, speaker: Role | None) -> None:
    assert find_speaker(question) is speaker


def test_a_pasted_page_is_searched_by_its_first_words() -> None:
    asked = ParsedQuery.read(" ".join(f"word{number}" for number in range(5000)) * 2, NOW)

    assert len(asked.terms) == MAX_TERMS
    assert asked.terms[0] == "word0"


def test_words_that_ask_count_or_date_weigh_less_than_those_that_name_something() -> None:
    asked = ParsedQuery.read("How many different concerts did I mention three weeks ago?", NOW)

    assert dict(zip(asked.terms, asked.weights, strict=True)) == {
        "mani": LIGHT,
        "differ": LIGHT,
        "concert": 1.0,
        "mention": LIGHT,
        "three": LIGHT,
        "week": LIGHT,
        "ago": LIGHT,
    }
