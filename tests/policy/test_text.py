"""What text may be stored, and how words are compared."""

from __future__ import annotations

import tracemalloc
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.errors import Invalid
from wellkept.language.text import (
    MAX_TERM_CHARS,
    STOPWORDS,
    check_text,
    content_hash,
    fold,
    like_literal,
    terms,
)

STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


@given(STORABLE)
def test_whatever_can_be_stored_is_left_as_it_is(text: str) -> None:
    assert check_text(text) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\x00b", "NUL"),
        ("ab\ud800", "position 2"),
        ("\udfff", "position 0"),
        (None, "not NoneType"),
        (b"a", "not bytes"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_the_reason(text: Any, reason: str) -> None:
    with pytest.raises(Invalid, match=f"The tag .*{reason}"):
        check_text(text, what="tag")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("STRASSE", "Straße"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("é", "e\N{COMBINING ACUTE ACCENT}"),
        ("É", "e\N{COMBINING ACUTE ACCENT}"),
        ("ﬁne", "FINE"),
        ("Å", "\N{ANGSTROM SIGN}"),
    ],
)
def test_folding_forgets_case_and_unicode_form(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@given(STORABLE)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(STORABLE)
def test_the_unicode_form_never_matters(text: str) -> None:
    assert fold(unicodedata.normalize("NFD", text)) == fold(text)
    assert terms(unicodedata.normalize("NFD", text)) == terms(text)
    assert content_hash(unicodedata.normalize("NFD", text)) == content_hash(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("?!… 🦉", []),
        ("The cat sat on the mat", ["cat", "sat", "mat"]),
        ("running runs run", ["run", "run", "run"]),
        ("Deployment deployed to Kubernetes", ["deploy", "deploy", "kubernet"]),
        ("snake_case kebab-case", ["snake", "case", "kebab", "case"]),
        ("v2.0 at 10:30", ["v2", "0", "10", "30"]),
        ("Ann's cat isn't Bob’s", ["ann", "cat", "bob"]),
        ("don't won’t can't we're I'll", []),
        ("user@example.org", ["user", "exampl", "org"]),
        ("東京都", ["東京", "京都"]),
        ("私", ["私"]),
        ("Python入門 guide", ["python", "入門", "guid"]),
        ("한국어", ["한국", "국어"]),
        ("Москва", ["москва"]),
        ("हिन्दी में लिखी है।", ["हिन्दी", "में", "लिखी", "है"]),
        ("தமிழ் கற்றல்", ["தமிழ்", "கற்றல்"]),
        ("কলকাতায় থাকি", ["কলকাতায়", "থাকি"]),
        ("كِتَاب", ["كتاب"]),
        ("שָׁלוֹם", ["שלום"]),
        ("x" * 100, ["x" * MAX_TERM_CHARS]),
    ],
)
def test_words_are_cut_folded_and_stemmed(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_stopwords_tell_nothing() -> None:
    assert [word for word in sorted(STOPWORDS) if terms(word) or terms(word.upper())] == []


@given(STORABLE)
def test_terms_are_safe_to_hand_to_any_engine(text: str) -> None:
    for term in terms(text):
        assert term
        assert not set(term) & set("'\"\\:&|!() \t\n\x00")
        assert len(term.encode()) < 2046  # the longest word PostgreSQL takes


@given(st.text("%_!a\\'", max_size=12))
def test_a_like_pattern_stands_for_itself(needle: str) -> None:
    pattern, plain = like_literal(needle), []
    marks = iter(pattern)
    for mark in marks:
        assert mark not in "%_"  # a wildcard is never bare
        plain.append(next(marks) if mark == "!" else mark)
    assert "".join(plain) == needle


def test_a_hash_forgets_case_and_white_space_and_nothing_else() -> None:
    assert content_hash("  Die\n\nStraße ") == content_hash("die STRASSE")
    assert content_hash("die strasse") != content_hash("diestrasse")
    assert len(content_hash("")) == 32


def test_stems_are_those_that_are_stored() -> None:
    # Versions of the stemmer disagree about these words: another answer means that stores have to be reindexed.
    assert terms("interval internal lateral added dying interfered") == [
        "interval",
        "internal",
        "lateral",
        "add",
        "die",
        "interfer",
    ]


@pytest.mark.parametrize("text", ["東" * 50_000, "x" * 5_000_000], ids=["unspaced", "word"])
def test_no_long_text_is_kept_after_its_terms_were_found(text: str) -> None:
    tracemalloc.start()
    try:
        terms(text)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
