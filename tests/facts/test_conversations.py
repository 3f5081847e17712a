"""What is kept of conversations: figures on labelled ones, and sentences that are kept or never kept."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.facts.fact_set import Score, load_set, read_turn, score
from wellkept.facts import rules_statements as rules
from wellkept.facts.rules_forget import find_forget_request
from wellkept.model import Role

BED = Path(__file__).parents[2] / "benchmarks" / "truth" / "data"
LANGUAGES = ("en", "de", "fr", "es")
LEAST_PRECISION, LEAST_RECALL = 0.7, 0.7


def kept(said: str) -> list[str]:
    return [
        each.text
        for each in rules.read_turn(said)
        if isinstance(each, rules.Statement) and not find_forget_request(each.text)
    ]


def measure(name: str) -> Score:
    conversations = [each for each in load_set(name) if each.language in LANGUAGES]
    stored = [
        [
            (turn, text)
            for turn, (role, said) in enumerate(each.messages)
            if role is Role.USER
            for text in kept(said)
            # A sentence that was joined with the one before it is not in the words of the turn.
            if text in said
        ]
        for each in conversations
    ]
    return score(conversations, stored)


@pytest.mark.parametrize("name", ["dev", "held_out"])
def test_the_figures(name: str) -> None:
    result = measure(name)

    assert result.precision >= LEAST_PRECISION, result.wrong
    assert result.recall >= LEAST_RECALL, result.missed


def test_the_score_tells_right_from_junk() -> None:
    """A measure that cannot fail would prove nothing."""
    turn = read_turn("U: Hi! [[I live in Oslo]] {{and it rains}} so what?")
    assert (turn.text[turn.facts[0].start : turn.facts[0].stop], turn.text[turn.harmless[0].start :][:8]) == (
        "I live in Oslo",
        "and it r",
    )
    [conversation] = [each for each in load_set("dev") if each.language == "en" and each.domain == "support"][:1]
    everything = [[(number, turn.text) for number, turn in enumerate(conversation.turns)]]
    assert score([conversation], everything).precision < 0.5
    assert score([conversation], [[]]).recall == 0


@pytest.mark.parametrize(
    "text",
    [
        "What is my name?",
        "where do i live",
        "do you know my birthday",
        "wie heißt mein hund",
        "weißt du noch wo ich wohne",
        "où est-ce que j'habite ?",
        "dónde vivo",
        "qual é o meu aniversário",
        "dove abito",
        "我住在哪里？",
        "私の名前は何ですか",
        "My name is Ann, right?",
        "I wonder what my favourite colour is?",
        "I'm allergic to peanuts, am I not?",
        "Ich wohne in Hamburg, oder?",
        "Vivo en Madrid, ¿verdad?",
        "Hi there!",
        "Thanks so much, you're the best",
        "lol same",
        "I love it!",
        "Please write a poem about my cat",
        "I'm on the train right now",
        "I have a question about my contract",
        "I need to buy milk",
        "Maybe we could meet sometime",
        "If I moved to Berlin, I would need a flat",
        "ModuleNotFoundError: No module named 'yaml'",
        "早上好",
        "",
        "   ",
        "Forget that I live in Oslo",
        "Please forget that I live in Oslo and that I have two dogs.",
        "Don't remember this: my dog's name is Rex",
        "Vergiss, dass ich in Hamburg wohne.",
        "Oublie que j'habite à Lyon.",
        "Translate to German: I live in Boston and I have two dogs.",
        "Please proofread this email:\n\nDear Bob, I work at Acme since 2010 and my salary is 4000 USD.",
        "Can you proofread this?\n\nDear Bob, I work at Acme since 2010.",
        "Here is a text from a novel: I am called Ishmael. I live on a ship. I have three sons.",
        "Übersetze ins Englische: Ich wohne in Hamburg und ich habe zwei Hunde.",
        "# I live in Oslo\nprint('done')",
    ],
)
def test_what_the_user_does_not_state_for_good_is_never_kept(text: str) -> None:
    assert kept(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I'm Dana",
        "I'm allergic to penicillin.",
        "My favourite colour is blue",
        "I live with my wife and our two kids.",
        "actually we're in Porto now, not Lisbon",
        "We decided to use PostgreSQL for the new service.",
        "I'll send you the report on Friday",
        "Remember that the gate code is on the fridge",
        "Ich bin Vegetarier",
        "Meine Tochter heißt Lena",
        "Ab jetzt bitte immer auf Deutsch antworten",
        "J'habite à Lyon",
        "Mon fils s'appelle Paul",
        "Mi hija se llama Sofía",
        "Prefiero el tren",
    ],
)
def test_what_lasts_is_kept_as_a_whole_sentence(text: str) -> None:
    assert kept(text) == [text]


def test_a_fact_is_taken_out_of_what_surrounds_it() -> None:
    assert kept("Look at this:\n```\nI live = 'Oslo'\n```\n> I live in Rome\nI live in Bergen.") == [
        "I live in Bergen."
    ]
    assert kept("I'm allergic to peanuts. Translate this to German: I live in Boston.") == ["I'm allergic to peanuts."]
    assert kept("I live in Oslo and " + "very " * rules.MAX_CHARS + "cold places") == []


def test_long_junk_is_read_in_bounded_time() -> None:
    started = time.process_time()
    for junk in ("a " * 50_000, "I " * 50_000, "(" * 100_000, "my, " * 25_000, "the x " * 20_000, "no. " * 25_000):
        kept(junk)
    assert time.process_time() - started < 20


@pytest.mark.proves("C3")
def test_nothing_that_only_sounds_like_it_asks_to_forget() -> None:
    """More than 500 sentences: "don't forget …", "forget it, let's …", quotations, code, output of tools."""
    rows = [json.loads(line) for path in BED.glob("**/never.jsonl") for line in path.read_text("utf-8").splitlines()]

    assert len(rows) >= 500
    triggered = [row["said"] for row in rows for each in rules.read_turn(row["said"]) if find_forget_request(each.text)]
    # What a tool wrote is never read for requests, whatever it says.
    assert [each for each in triggered if each not in {row["said"] for row in rows if row["by"] == "tool"}] == []
