"""What a user's turn states, and what is left out."""

from __future__ import annotations

import pytest

from wellkept.facts.rules_statements import ChangeCue, ExclusionReason, Statement, Tier, read_turn


def statements(text: str) -> list[Statement]:
    return [each for each in read_turn(text) if isinstance(each, Statement)]


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("I can't eat walnuts.", "user"),
        ("My sister Tilda is a midwife.", "Tilda"),
        ("My grandma makes plum jam every August.", "grandmother"),
        ("Our rent is 940 euros.", "user"),
        ("Ich wohne seit März in Bamberg.", "user"),
        ("Ma sœur travaille à l'hôpital de Brest.", "sister"),
        ("Mi hermano vive en Gijón.", "brother"),
        ("From now on, answer me in Danish.", "user"),
        ("The workshop is on Thursday at 4 pm.", "workshop"),
    ],
)
def test_a_fact_has_its_subject(text: str, subject: str) -> None:
    (found,) = statements(text)

    assert (found.tier, found.subject) == (Tier.FACT, subject)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Where did I park my car?", ExclusionReason.QUESTION),
        ("I live in Bergen, right?", ExclusionReason.QUESTION),
        ("Write a limerick about my boss", ExclusionReason.REQUEST),
        ("Suppose I lived in a lighthouse.", ExclusionReason.HYPOTHETICAL),
        ("I might move to Graz one day.", ExclusionReason.HYPOTHETICAL),
        ("In my novel the hero owns a bakery in Ghent.", ExclusionReason.FICTION),
        ('My aunt wrote: "I am selling the house in Kiel".', ExclusionReason.FICTION),
        ("I'm so tired right now.", ExclusionReason.PASSING),
        ("Thanks, that was exactly what I needed!", ExclusionReason.CHAT),
        ("The early bird catches the worm.", ExclusionReason.CHAT),
        ("Das war sehr nett, danke!", ExclusionReason.CHAT),
        ("My wifi password is [secret removed: password].", ExclusionReason.SECRET),
        ("¿Dónde vive mi hermano?", ExclusionReason.QUESTION),
    ],
)
def test_what_states_nothing_is_left_out(text: str, reason: ExclusionReason) -> None:
    (found,) = read_turn(text)

    assert not isinstance(found, Statement)
    assert found.reason is reason


@pytest.mark.parametrize(
    "text",
    [
        "Our anniversary is on the 4th of October, fifty years, would you believe it.",
        "I'm so tired, and we sign the lease in Harrogate on 4 May.",
        "Everything runs on Fly.io since last night, the Heroku bill made Niall cry.",
        "oh and no more bullets pls, just talk normally",
        "My flatmate works in the morgue and sings in the shower.",
    ],
)
def test_one_clause_does_not_exclude_a_sentence(text: str) -> None:
    assert [each.text for each in read_turn(text) if isinstance(each, Statement)] == [text]


def test_a_joke_takes_back_what_was_said_before_it() -> None:
    assert statements("I adopted eleven alpacas. I'm kidding!") == []


def test_a_sentence_that_starts_with_a_pronoun_joins_the_one_before() -> None:
    (found,) = statements("My neighbour Gerda has a parrot. It speaks Latin.")

    assert found.text == "My neighbour Gerda has a parrot. It speaks Latin."


@pytest.mark.proves("C4")
def test_code_and_quoted_mail_are_not_read() -> None:
    assert statements("> I live in Minsk\n```\nI = 'live in Rome'\n```\nI play the oboe.")[0].text == "I play the oboe."


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("I sold the caravan.", ChangeCue.END),
        ("It's the 9th, not the 6th.", ChangeCue.CORRECTION),
        ("We moved to Aveiro.", ChangeCue.FIRM),
        ("I have a new dentist.", ChangeCue.SOFT),
        ("I keep bees.", ChangeCue.NONE),
        ("Wir sind nach Trier gezogen.", ChangeCue.FIRM),
        ("J'ai quitté mon travail.", ChangeCue.END),
        ("Ya no fumo.", ChangeCue.END),
    ],
)
def test_the_cue_of_a_statement(text: str, cue: ChangeCue) -> None:
    assert statements(text)[0].cue is cue


def test_a_statement_that_adds_says_so() -> None:
    assert ChangeCue.ALSO in statements("I also play the harp.")[0].cues


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("I moved to Aveiro last month.", "lives_in", "Aveiro"),
        ("Please call me Fitz.", "name", "Fitz"),
        ("I work for Nordwind now.", "works_at", "Nordwind"),
        ("Meine neue Adresse ist Am Hang 4.", "address", "Am Hang 4"),
        ("Je suis végétarienne.", "diet", "végétarienne"),
        ("Vivo en Cádiz.", "lives_in", "Cádiz"),
    ],
)
def test_an_attribute_and_its_value(text: str, attribute: str, value: str) -> None:
    (found,) = statements(text)

    assert (found.attribute, found.value) == (attribute, value)
