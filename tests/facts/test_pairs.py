"""Which statements end older ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wellkept.facts.rules_pairs import Consequence, judge
from wellkept.facts.rules_statements import Statement, read_statement
from wellkept.model import EndedAs
from wellkept.providers.minilm import read_statements


def read(*texts: str) -> list[Statement]:
    read = zip(texts, *read_statements(texts), strict=True)
    return [replace(read_statement(text), vector=vector, reading=reading) for text, vector, reading in read]


@pytest.mark.parametrize(
    ("old", "new", "ended_as"),
    [
        ("I live in Turku.", "We moved to Aveiro last week.", EndedAs.SUPERSEDED),
        ("I drive an old Saab to work.", "I sold the Saab.", EndedAs.OVER),
        ("The exam is on the 6th of May.", "The exam is on the 9th of May, not the 6th.", EndedAs.WRONG),
        ("My phone number is 555 0182.", "My new phone number is 555 0199.", EndedAs.SUPERSEDED),
        ("Ich wohne in Bamberg.", "Ich bin nach Trier gezogen.", EndedAs.SUPERSEDED),
        ("Our data is in MySQL.", "We migrated from MySQL to Postgres.", EndedAs.SUPERSEDED),
        ("We use Webex for team chat.", "We switched from Webex to Teams.", EndedAs.SUPERSEDED),
        ("I work at a quarry.", "I handed in my notice and started at Ericsson.", EndedAs.SUPERSEDED),
        ("I work at a quarry.", "I quit my job.", EndedAs.OVER),
        ("My brother lives in Leeds.", "My brother has moved to Bristol.", EndedAs.SUPERSEDED),
        ("My boss is Ingrid.", "Marcus is my new boss.", EndedAs.SUPERSEDED),
        ("My manager is Tom Hale.", "I report to Priya now.", EndedAs.SUPERSEDED),
        ("My ferry leaves at 7:20.", "The ferry got moved to 8:45.", EndedAs.SUPERSEDED),
        ("I'm engaged to Marta.", "Marta and I got married last weekend.", EndedAs.SUPERSEDED),
        ("I love a juicy burger after work.", "I'm vegetarian now.", EndedAs.SUPERSEDED),
        ("Meine Schwester wohnt in Bonn.", "Meine Schwester ist nach Essen gezogen.", EndedAs.SUPERSEDED),
        ("I weigh 82 kilos.", "The scales say 77 this morning.", EndedAs.SUPERSEDED),
        ("I take 5 mg of ramipril.", "I take 10 mg of ramipril.", EndedAs.SUPERSEDED),
        ("Standup is at 9:30.", "Standup is at 10.", EndedAs.SUPERSEDED),
        ("I drive a Volvo.", "I drive a Skoda.", EndedAs.SUPERSEDED),
        ("My line manager is Deborah Quaye.", "My line manager is Tom Ashdown.", EndedAs.SUPERSEDED),
        ("My contact at Orbis is Mr Tal.", "At Orbis I talk to Mrs Ferrand.", EndedAs.SUPERSEDED),
        ("I wake up at six.", "The alarm rings at half past seven.", EndedAs.SUPERSEDED),
    ],
)
def test_a_change_ends_the_older_statement(old: str, new: str, ended_as: EndedAs) -> None:
    first, second = read(old, new)
    (verdict,) = judge([first], second)

    assert (verdict.action, verdict.ended_as) == (Consequence.END, ended_as)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I play squash on Tuesdays.", "I play the oboe on Fridays."),
        ("My rent is 900 euros.", "My salary is 3,100 euros."),
        ("I take ramipril.", "I also take metformin."),
        ("My brother lives in Turku.", "I moved to Aveiro."),
        ("I love coffee.", "I bought a new coffee machine."),
        ("I work on Mondays.", "I no longer work on Saturdays."),
        ("I live in Turku.", "I live in Turku."),
        ("I work for the city.", "I started at the gym on Main Street."),
        ("My mother lives in Turin.", "My mother moved the car to the garage."),
        ("My boss is Ingrid.", "My boss is very patient."),
        ("My boss is Ingrid.", "Marcus is my sister's new boss."),
        ("My ferry leaves at 7:20.", "The train got moved to 8:45."),
        ("I go climbing every Thursday.", "I gave up swimming."),
        ("I'm engaged to Marta.", "My brother and Lucy got married last weekend."),
        ("I love a juicy burger after work.", "My daughter is vegetarian now."),
        ("Standup is at 10:15.", "The standup on Fridays is cancelled."),
        ("Invoice 1041 is due on 3 May.", "Invoice 1042 is due on 9 May."),
        ("My red mug is in the left cupboard.", "My blue mug is in the right cupboard."),
        ("The deploy key for staging is rotated monthly.", "The deploy key for production is rotated weekly."),
        ("Room 3 is booked for Ann.", "Room 4 is booked for Bob."),
        ("Customer Orbis pays in 30 days.", "Customer Falk pays in 14 days."),
        ("I speak French.", "I speak German."),
        ("I like jazz.", "I like blues."),
        ("I grow chillies on the balcony.", "I grow basil on the balcony."),
        ("The EU cluster sits in Frankfurt.", "The US cluster sits in Ohio."),
        ("Keep your answers under 200 words.", "Keep your answers free of emojis."),
        ("I visited Rome in 2019.", "I visited Paris in 2021."),
        ("I take 5 mg of ramipril in the morning.", "I take 10 mg of atorvastatin at night."),
        ("I live in Rome.", "I live in Oslo for now."),
        ("Mon chef est Paul.", "Mon chef est sympa."),
    ],
)
def test_what_is_something_else_ends_nothing(old: str, new: str) -> None:
    first, second = read(old, new)

    assert judge([first], second)[0].action is not Consequence.END
