"""Which words of a question are rare by their form, and which texts hold them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.model import HeldWord
from wellkept.recall.rules_rare_words import (
    FEW,
    LARGE_STORE,
    RareWord,
    find_held_words,
    find_holders,
    find_rare_words,
    raise_relevance,
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("q83x2x296zw0", ["q83x2x296zw0"]),
        ("what happened with 21914?", ["21914"]),
        ("why did #404 and #2024 fail?", ["404", "2024"]),
        ("Was ERR-4012-B (or err_4013) fixed in v3.14.2?", ["ERR-4012-B", "err_4013", "v3.14.2"]),
        ("Which host has 10.0.0.7:8080?", ["10.0.0.7:8080"]),
        ("Who wrote to lena.mueller@example.com?", ["lena.mueller@example.com"]),
        ("Where is src/app/main.py's bug?", ["src/app/main.py"]),
        ("What does getUserById return on EPIPE?", ["getUserById", "EPIPE"]),
        ("Did Zyphora Quillembrandt call Ann?", ["Zyphora Quillembrandt", "Ann"]),
        ("Ann's desk", ["Ann"]),
        ("What did Mara Lindqvist's team say?", ["Mara Lindqvist"]),
        ("Wo wohnt Lena Müller?", ["Lena Müller"]),
        ("Was ist mit der Donaudampfschiffkapitänsmütze passiert?", ["Donaudampfschiffkapitänsmütze"]),
        ("Когда приехала Наталья Петрова?", ["Наталья Петрова"]),
        ("田中美咲さんの電話番号は？", ["田中美咲"]),
        ("김민수 씨 전화번호", ["김민수"]),
        ("票号AB-1234怎么样", ["AB-1234"]),
        # What has the form of a word, an amount, a time, a date or a title is not rare.
        ("Which code style do I prefer?", []),
        ("How many of the 12 invoices over 100 came in 2024, at 10:30 or 5pm, on the 3rd?", []),
        ("Is the TV on at 7am on Monday in May?", []),
        ("What Is My Favourite Colour", []),
        ("WHAT IS MY FAVOURITE COLOUR", []),
        ("Wie heißt mein Hund und mag er die Katze?", []),
        ("and/or well-known e-mail, i.e. don't", []),
        ("", []),
    ],
)
def test_a_rare_word_is_read_by_its_form(question: str, expected: list[str]) -> None:
    assert [word.text for word in find_rare_words(question) if not word.least] == expected


def test_a_word_of_no_such_form_is_rare_in_a_large_store_only() -> None:
    assert find_rare_words("kapitänsmütze?") == (RareWord("kapitänsmütze", least=LARGE_STORE),)
    assert find_rare_words("where is zyphora") == (RareWord("zyphora", is_maybe_name=True, least=LARGE_STORE),)


@pytest.mark.parametrize(
    ("word", "texts", "holders"),
    [
        ("ERR-4012-B", ["ERR-4012-C", "see ERR-4012-B.", "ERR-4012-BX"], [1]),
        ("4012", ["ERR-4012-B", "in 4012, too"], [1]),
        ("4012", ["ERR-4012-B", "in 14012"], [0]),
        ("3.14.2", ["3.14.20", "13.14.2", "v3.14.2", "3.14.2-rc", "(3.14.2)"], [4]),
        ("aBc1", ["abc1", "ABC1", "x aBc1"], [2]),
        ("abc1", ["ABC1!", "no"], [0]),
        ("lena@x.org", ["lena@x.org.uk", "<lena@x.org>"], [1]),
        ("straße7", ["STRASSE7"], [0]),
        ("田中美咲", ["田中美咲さんと", "田中美樹さんと"], [0]),
        ("7", [], []),
    ],
)
def test_a_text_holds_a_word_whole_and_as_it_is_written(word: str, texts: list[str], holders: list[int]) -> None:
    assert find_holders(RareWord(word, is_identifier=True), dict(enumerate(texts))) == holders


def test_a_few_may_hold_an_identifier_and_one_a_name() -> None:
    texts = {number: f"step {number} of ab-1 by Ann" for number in range(FEW + 1)}
    some = {number: text for number, text in texts.items() if number < FEW}

    assert find_holders(RareWord("ab-1", is_identifier=True), some) == list(some)
    assert find_holders(RareWord("ab-1", is_identifier=True), texts) == []
    assert find_holders(RareWord("Ann"), some) == []
    assert find_holders(RareWord("Ann"), dict.fromkeys(range(9), "Ann called")) == [*range(9)]  # one text


def test_a_word_that_may_be_a_name_is_written_like_one_in_the_text() -> None:
    word = RareWord("zyphora", is_maybe_name=True)

    assert find_holders(word, {1: "we met Zyphora at the door"}) == [1]
    for text in (
        "Zyphora is a kind of moss",
        "some zyphora on the wall",
        "The Zyphora Style Guide",
        "die alte Zyphora",
    ):
        assert find_holders(word, {1: text}) == []


def test_a_full_name_that_nobody_holds_counts_by_its_parts() -> None:
    words = find_rare_words("Who is Ann Lee?")
    nominated = {each: [1, 2] for word in words for each in (word, *word.parts)}

    assert find_held_words(words, nominated, {1: "Ann called", 2: "Lee called"}) == {
        1: [HeldWord("Ann", 1)],
        2: [HeldWord("Lee", 1)],
    }
    assert find_held_words(words, nominated, {1: "Ann Lee called", 2: "Lee called"}) == {1: [HeldWord("Ann Lee", 1)]}


def test_relevance_is_raised_and_never_lowered() -> None:
    assert raise_relevance(0.95, [HeldWord("x1", 1)]) == 0.95
    assert raise_relevance(0.01, []) == 0.01


@given(st.text(max_size=200), st.dictionaries(st.integers(), st.text(max_size=80), max_size=5))
def test_any_text_may_be_asked_and_held(question: str, texts: dict[int, str]) -> None:
    for word in find_rare_words(question):
        assert word.text in question
        assert set(find_holders(word, texts)) <= set(texts)
        assert find_holders(word, {**texts, -1: word.text}) or not word.text or word.is_maybe_name or texts
