"""Facts by rules: what is kept of conversations, in figures, and what never is."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tests.policy.fact_set import Score, load_set, read_turn, score
from wellkept.memory.rules_facts import MAX_FACT_CHARS, find_unfit, read_facts
from wellkept.model import Role

HALVES = ("dev", "held_out")
LEAST_PRECISION, LEAST_RECALL, MOST_JUNK = 0.9, 0.6, 0.05


def measure(name: str, *, is_english: bool | None = None) -> Score:
    conversations = [each for each in load_set(name) if is_english in (None, each.language == "en")]
    stored = [
        [(each.turn, each.text) for each in read_facts(conversation.messages) if not each.reason]
        for conversation in conversations
    ]
    return score(conversations, stored)


def kept(*said: str) -> list[str]:
    """What is kept of messages, the first of them the user's."""
    messages = [(Role.ASSISTANT if number % 2 else Role.USER, text) for number, text in enumerate(said)]
    return [each.text for each in read_facts(messages) if not each.reason]


@pytest.mark.parametrize("name", HALVES)
def test_the_figures(name: str) -> None:
    result = measure(name)

    assert result.precision >= LEAST_PRECISION, result.wrong
    assert result.recall >= LEAST_RECALL, result.missed
    assert result.junk_share < MOST_JUNK, result.wrong


@pytest.mark.parametrize("name", HALVES)
def test_other_languages_are_read_as_well(name: str) -> None:
    result = measure(name, is_english=False)

    assert result.precision >= LEAST_PRECISION, result.wrong
    assert result.recall >= 0.5, result.missed


def test_the_set_is_as_large_and_mixed_as_it_says() -> None:
    conversations = [each for name in HALVES for each in load_set(name)]
    turns = Counter[str]()
    for each in conversations:
        turns["en" if each.language == "en" else "other"] += len(each.turns)

    assert turns == {"en": 250, "other": 250}
    assert {each.domain for each in conversations} == {"personal", "support", "software", "sales", "health"}
    assert {each.language for each in conversations} == {"en", "de", "fr", "es", "pt", "it", "ja", "zh"}


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
    assert score([conversation], everything).junk_share > 0.5
    assert score([conversation], [[]]).recall == 0


@pytest.mark.parametrize(
    "question",
    [
        "What is my name?",
        "where do i live",
        "do you know my birthday",
        "Is my sister still vegetarian?",
        "wie heißt mein hund",
        "weißt du noch wo ich wohne",
        "où est-ce que j'habite ?",
        "comment s'appelle mon fils",
        "¿Cómo se llama mi hija?",
        "dónde vivo",
        "qual é o meu aniversário",
        "dove abito",
        "我住在哪里？",
        "私の名前は何ですか",
        "My name is Ann, right?",
        "I wonder what my favourite colour is?",
    ],
)
def test_a_question_is_never_a_fact(question: str) -> None:
    assert question not in kept(question)
    assert find_unfit(question) == "a question"


@pytest.mark.parametrize(
    "text",
    [
        "Hi there!",
        "Thanks so much, you're the best",
        "Danke dir, schönes Wochenende!",
        "lol same",
        "I love it!",
        "Please write a poem about my cat",
        "I'm on the train right now",
        "I have a question about my contract",
        "I need to buy milk",
        "Maybe we could meet sometime",
        "If I moved to Berlin, I would need a flat",
        "ModuleNotFoundError: No module named 'yaml'",
        "Ich habe eine Frage zu meinem Vertrag",
        "早上好",
        "よろしくお願いします",
        "Jag bor i Stockholm och gillar kaffe",
        "",
        "   ",
    ],
)
def test_what_does_not_last_is_not_kept(text: str) -> None:
    assert kept(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I'm allergic to penicillin.",
        "I’m allergic to penicillin",
        "My favourite colour is blue",
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
        "Sou alérgico a amendoins",
        "Mia moglie è allergica alle noci",
        "我们公司在上海",
        "私は東京に住んでいます",
    ],
)
def test_what_lasts_is_kept_in_its_own_words(text: str) -> None:
    assert kept(text) == [text]


def test_a_fact_is_taken_out_of_what_surrounds_it() -> None:
    assert kept("Hi! I'm vegan, what can I eat there?") == ["I'm vegan"]
    assert kept("oh and btw, my sister lives in Oslo. Anyway, thanks!") == ["my sister lives in Oslo."]
    assert kept("Look at this:\n```\nI live = 'Oslo'\n```\n> I live in Rome\nI live in Bergen.") == [
        "I live in Bergen."
    ]


def test_an_assistant_repeats_promises_and_talks() -> None:
    mine = "I'm allergic to shellfish."
    assert kept(mine, "Noted: you are allergic to shellfish.") == [mine]
    assert kept("Hi", "Lisbon is the capital of Portugal, founded around 1200 BC.") == []
    promise = "You will receive a credit note by Friday."
    assert kept("My invoice was wrong", promise)[-1:] == [promise]
    said = "Your contract with Acme runs until 31 May 2027."
    assert kept("hm", said, "ok thanks") == []
    assert kept("hm", said, "Yes, exactly.") == [said]
    assert kept("hm", f"{said} Shall I extend it?", "Yes") == []


def test_pasted_text_is_bounded() -> None:
    assert kept("I live in Oslo and " + "very " * MAX_FACT_CHARS + "cold places") == []
    started = time.perf_counter()
    for junk in ("a " * 50_000, "I " * 50_000, "(" * 100_000, "my, " * 25_000, "the x " * 20_000, "no. " * 25_000):
        kept(junk)
    assert time.perf_counter() - started < 20


@pytest.mark.parametrize(
    "said",
    [
        ["I live in Paris, right?"],
        ["I'm allergic to peanuts, am I not?"],
        ["Ich wohne in Hamburg, oder?"],
        ["Vivo en Madrid, ¿verdad?"],
        ["Forget that I live in Oslo"],
        ["Please forget that I live in Oslo and that I have two dogs."],
        ["Don't remember this: my dog's name is Rex"],
        ["Vergiss, dass ich in Hamburg wohne."],
        ["Oublie que j'habite à Lyon."],
        ["Translate to German: I live in Boston and I have two dogs."],
        ["Please proofread this email:\n\nDear Bob, I work at Acme since 2010 and my salary is 4000 USD."],
        ["Can you proofread this?\n\nDear Bob, I work at Acme since 2010."],
        ["Here is a text from a novel: I am called Ishmael. I live on a ship. I have three sons."],
        ["Übersetze ins Englische: Ich wohne in Hamburg und ich habe zwei Hunde."],
        ["Hi", "You live in Rome.", "Yes, but not anymore"],
        ["Hi", "You work at Acme since 2010.", "Right, I used to"],
        ["Hallo", "Du wohnst in Hamburg.", "Ja, aber nicht mehr"],
    ],
)
def test_what_the_user_does_not_claim_is_not_kept(said: list[str]) -> None:
    assert kept(*said) == []


def test_the_user_speaks_before_and_beside_a_task() -> None:
    assert kept("I'm allergic to peanuts. Translate this to German: I live in Boston.") == ["I'm allergic to peanuts."]
    assert kept("Here is my email: bob@example.org. I live in Oslo since 2010.") == ["I live in Oslo since 2010."]
    assert kept("Forget it, I prefer tea over coffee.") != []
    assert kept("I translate books: I work for Acme since 2010.") != []
    assert kept("Hi", "You live in Rome.", "Yes, exactly") == ["You live in Rome."]
