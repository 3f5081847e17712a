"""`SqlStore` as an index: what is found by words and by meaning, in which order, and what never is."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import (
    ALL_KINDS,
    DIMENSIONS,
    EARLIER,
    EMBEDDER,
    LATER,
    NOW,
    note,
    owner,
    seqs,
    vector,
)
from wellkept.language.text import terms
from wellkept.model import Kind, Match, Memory, Owner, Role
from wellkept.model.stored import Vector
from wellkept.recall.rules_features import SPEAKERS, Evidence
from wellkept.recall.rules_question import ParsedQuery
from wellkept.store import open_store
from wellkept.store.sqlstore import SqlStore


def add(store: SqlStore, owner: Owner, *texts: str) -> Sequence[Memory]:
    return store.add_memories([note(text, owner) for text in texts], [None] * len(texts))


def search(store: SqlStore, owner: Owner, query: str, *, limit: int = 10) -> list[int]:
    return seqs(store.search_memories(owner, query, kinds=ALL_KINDS, now=NOW, limit=limit))


def nearest(store: SqlStore, owner: Owner, query: Vector, *, limit: int = 10) -> list[int]:
    return seqs(store.nearest_memories(owner, query, kinds=ALL_KINDS, now=NOW, limit=limit))


# --- words


@pytest.mark.parametrize(
    ("text", "query", "is_found"),
    [
        ("She prefers tabs", "preferred TAB", True),
        ("Die Straße ist lang", "STRASSE", True),
        ("un café", "CAFE\N{COMBINING ACUTE ACCENT}", True),
        ("Paul's boat", "paul", True),
        ("東京都に住む", "京都", True),
        ("東京都に住む", "大阪", False),
        ("서울에 산다", "서울", True),
        ("she prefers tabs", "spaces", False),
        ("it is what it is", "what is it", False),  # nothing but stopwords
        ("snake_case names", "case", True),
        ("version 2.0", "2", True),
        ("", "anything", False),
    ],
)
def test_words_are_compared_by_their_stem(store: SqlStore, ann: Owner, text: str, query: str, is_found: bool) -> None:
    add(store, ann, text)

    assert search(store, ann, query) == ([1] if is_found else [])


def test_only_the_owner_is_searched(store: SqlStore, ann: Owner, bob: Owner, stranger: Owner) -> None:
    for each in (ann, bob, stranger):
        store.add_memory(note("apples", each), vector(1))
    add(store, bob, "apples again")

    assert search(store, ann, "apples") == [1]
    assert nearest(store, ann, vector(1)) == [1]


def test_an_owner_with_nothing_finds_nothing(store: SqlStore, ann: Owner) -> None:
    assert search(store, ann, "apples") == []
    assert nearest(store, ann, vector(1)) == []


@pytest.mark.parametrize("wanted", [(), (Kind.CORE,), (Kind.NOTE, Kind.EPISODE), ALL_KINDS])
def test_only_the_wanted_kinds_are_found(store: SqlStore, ann: Owner, wanted: tuple[Kind, ...]) -> None:
    store.add_memories([note("apples", ann, kind=kind) for kind in Kind], [vector(1)] * len(Kind))
    expected = {number for number, kind in enumerate(Kind, 1) if kind in wanted}

    assert set(seqs(store.search_memories(ann, "apples", kinds=wanted, now=NOW))) == expected
    assert set(seqs(store.nearest_memories(ann, vector(1), kinds=wanted, now=NOW))) == expected


def test_what_is_past_archived_or_held_is_never_found(store: SqlStore, ann: Owner) -> None:
    for changes in (
        {},
        {"expires_at": LATER},
        {"expires_at": NOW},
        {"expires_at": EARLIER},
        {"archived_at": EARLIER},
        {"archived_at": LATER},
        {"held_at": EARLIER},
        {"valid_to": NOW},
        {"valid_to": EARLIER, "expires_at": LATER},
    ):
        store.add_memory(note("apples", ann, **changes), vector(1))

    assert search(store, ann, "apples") == nearest(store, ann, vector(1)) == [2, 1]


def test_time_alone_ends_and_a_longer_life_brings_back(store: SqlStore, ann: Owner) -> None:
    memory = store.add_memory(note("apples", ann, expires_at=NOW))
    assert search(store, ann, "apples") == []
    assert seqs(store.search_memories(ann, "apples", kinds=ALL_KINDS, now=EARLIER)) == [1]

    store.update_memory(replace(memory, expires_at=LATER), replaced_at=NOW)
    assert search(store, ann, "apples") == [1]


def test_archiving_hides_and_bringing_back_shows_at_once(store: SqlStore, ann: Owner) -> None:
    memory = store.add_memory(note("apples", ann), vector(1))
    assert search(store, ann, "apples") == [1]

    memory = store.update_memory(replace(memory, archived_at=NOW), vector(1), replaced_at=NOW)
    assert search(store, ann, "apples") == nearest(store, ann, vector(1)) == []

    store.update_memory(replace(memory, archived_at=None), vector(1), replaced_at=NOW)
    assert search(store, ann, "apples") == nearest(store, ann, vector(1)) == [1]


def test_every_change_is_seen_by_the_next_search(store: SqlStore, ann: Owner) -> None:
    first, second = store.add_memories([note("apples", ann), note("apples", ann)], [vector(1), vector(0, 1)])
    assert search(store, ann, "apples") == [2, 1]

    store.update_memory(replace(first, text="pears"), vector(0, 0, 1), replaced_at=NOW)
    assert search(store, ann, "apples") == [2]
    assert search(store, ann, "pears") == [1]
    assert nearest(store, ann, vector(0, 0, 1), limit=1) == [1]

    store.delete_memory(ann, second.id)
    assert search(store, ann, "apples") == []
    assert nearest(store, ann, vector(0, 1)) == [1]

    add(store, ann, "apples once more")
    assert search(store, ann, "apples") == [3]

    store.prune_memories(ann, Kind.NOTE, keep=0)
    assert search(store, ann, "apples pears") == []


def test_another_open_store_sees_every_change(lasting_place: Place, store: SqlStore, ann: Owner) -> None:
    other = lasting_place.open()
    first, second = add(store, ann, "apples", "pears")
    assert search(other, ann, "apples pears") == [2, 1]

    store.update_memory(replace(first, text="plums"), replaced_at=NOW)
    store.delete_memory(ann, second.id)
    add(store, ann, "figs")

    assert search(other, ann, "apples pears") == []
    assert search(other, ann, "plums figs") == [3, 1]
    other.close()


def bm25(corpus: Mapping[int, str], query: str, *, k1: float = 1.2, b: float = 0.75) -> dict[int, float]:
    """The textbook formula, with the logarithm that never goes below zero."""
    words = {seq: Counter(terms(text)) for seq, text in corpus.items()}
    average = sum(count.total() for count in words.values()) / len(words)
    scores: dict[int, float] = {}
    for term in set(terms(query)):
        holding = sum(term in count for count in words.values())
        weight = math.log(1 + (len(words) - holding + 0.5) / (holding + 0.5))
        for seq, count in words.items():
            if frequency := min(count[term], 255):
                norm = k1 * (1 - b + b * sum(min(each, 255) for each in count.values()) / average)
                scores[seq] = scores.get(seq, 0) + weight * frequency * (k1 + 1) / (frequency + norm)
    return scores


CORPUS = (
    "the cat sat on the mat",
    "the cat chased the other cats and one more cat",
    "dogs chase cats",
    "a mat",
    "nothing of the kind is said here, though it is said at great length and with many different words",
    "猫はマットの上に座った",
    "is it",
    "cats cats cats cats dogs",
)


@pytest.mark.parametrize("query", ["cat", "cat mat", "chasing dogs", "マット", "cat cat cat dog", "length unicorn"])
def test_scores_are_bm25_to_the_third_digit(store: SqlStore, ann: Owner, query: str) -> None:
    add(store, ann, *CORPUS)
    expected = bm25(dict(enumerate(CORPUS, 1)), query)

    found = store.search_memories(ann, query, kinds=ALL_KINDS, now=NOW)

    assert {match.seq: match.score for match in found} == pytest.approx(expected, abs=1e-3)
    assert seqs(found) == sorted(expected, key=lambda seq: (-round(expected[seq], 4), -seq))


def test_a_word_said_hundreds_of_times_scores_the_same_everywhere(store: SqlStore, ann: Owner) -> None:
    texts = ("echo " * 300 + "end", "echo end", "silence " * 20)
    add(store, ann, *texts)
    counted = {1: "echo " * 255 + "end", 2: texts[1], 3: texts[2]}  # an index counts no further

    found = store.search_memories(ann, "echo", kinds=ALL_KINDS, now=NOW)

    assert {match.seq: match.score for match in found} == pytest.approx(bm25(counted, "echo"), abs=1e-3)


def test_scores_are_those_of_what_can_be_found(store: SqlStore, ann: Owner, bob: Owner) -> None:
    add(store, ann, *CORPUS)
    for hidden in (note("cat", bob), note("cat", ann, expires_at=EARLIER), note("cat", ann, kind=Kind.CORE)):
        store.add_memory(hidden)

    found = store.search_memories(ann, "cat", kinds=[Kind.NOTE], now=NOW)

    expected = bm25(dict(enumerate(CORPUS, 1)), "cat")
    assert {match.seq: match.score for match in found} == pytest.approx(expected, abs=1e-3)


def test_the_best_come_first_and_of_equals_the_newest(store: SqlStore, ann: Owner) -> None:
    add(store, ann, "red apple", "apple", "apple", "apple apple", "pear")

    assert search(store, ann, "apple") == [4, 3, 2, 1]
    assert search(store, ann, "apple", limit=2) == [4, 3]


@pytest.mark.parametrize(
    "query",
    [
        "",
        " \t\n",
        "'",
        "''",
        '"',
        "\\",
        "\\'",
        "' | 'pears",
        "apples & !pears",
        "apples <-> pears",
        "apples:*",
        "(((",
        ":A & :*",
        "!!",
        "%s %(tenant)s {0}",
        ":tenant ?1",
        "'; DROP TABLE memories; --",
        "apples\x00pears",
        "\ud800 apples",
        "🦉" * 100,
        "'" * 5_000,
        "x" * 100_000,
        "apples " * 20_000,
        " ".join(f"word{number}" for number in range(3_000)),
    ],
    ids=lambda query: ascii(query[:20]),
)
def test_a_hostile_query_is_only_words(store: SqlStore, ann: Owner, query: str) -> None:
    add(store, ann, "apples", "nothing else")

    assert search(store, ann, query) == ([1] if "apples" in query else [])


@pytest.mark.parametrize("text", ["'", "\\' \\", "a:1A b:2,3", "'a':1", "x" * 10_000, "o''neil \\", "& | ! <-> ( )"])
def test_hostile_text_is_only_text(store: SqlStore, ann: Owner, text: str) -> None:
    add(store, ann, f"{text} marker")

    assert search(store, ann, "marker") == [1]


# --- meaning


def test_the_nearest_come_first_with_their_cosine(store: SqlStore, ann: Owner) -> None:
    store.add_memories(
        [note(text, ann) for text in ("opposite", "same", "half way", "across")],
        [vector(-1), vector(1), vector(1, 1), vector(0, 1)],
    )

    found = store.nearest_memories(ann, vector(1), kinds=ALL_KINDS, now=NOW)

    assert seqs(found) == [2, 3, 4, 1]
    assert [match.score for match in found] == pytest.approx([1, math.sqrt(0.5), 0, -1], abs=0.005)


@pytest.mark.parametrize("seed", [1, 11, 13, 15, 18])  # where the last bit of the 37th to 39th product differs
def test_of_equally_near_the_newest_come_first(store: SqlStore, ann: Owner, seed: int) -> None:
    place, question = (vector(*numbers) for numbers in np.random.default_rng(seed).normal(size=(2, DIMENSIONS)))
    store.add_memories([note("same", ann) for _ in range(39)], [place] * 39)

    assert nearest(store, ann, question, limit=25) == list(range(39, 14, -1))
    assert nearest(store, ann, question, limit=39) == list(range(39, 0, -1))


def test_a_full_page_is_found_among_many_strangers(store: SqlStore, ann: Owner) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        other = owner()
        store.add_memories([note("near", other) for _ in range(40)], [vector(1, 0.01 * n) for n in range(40)])
    mine = [vector(*rng.normal(size=DIMENSIONS)) for _ in range(12)]
    store.add_memories([note("far", ann) for _ in mine], mine)

    assert len(nearest(store, ann, vector(1), limit=12)) == 12


def test_without_a_vector_nothing_is_near(store: SqlStore, ann: Owner) -> None:
    store.add_memories([note("without", ann), note("with", ann), note("without", ann)], [None, vector(1), None])

    assert nearest(store, ann, vector(1)) == [2]
    assert search(store, ann, "without") == [3, 1]


def test_an_edit_without_a_vector_is_no_longer_near(store: SqlStore, ann: Owner) -> None:
    memory = store.add_memory(note("apples", ann), vector(1))
    assert nearest(store, ann, vector(1)) == [1]

    store.update_memory(replace(memory, text="pears"), replaced_at=NOW)

    assert nearest(store, ann, vector(1)) == []
    assert search(store, ann, "pears") == [1]


def test_a_search_asks_for_nothing_and_gets_nothing(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("apples", ann), vector(1))

    assert search(store, ann, "apples", limit=0) == nearest(store, ann, vector(1), limit=0) == []


def test_a_text_without_meaning_comes_last(store: SqlStore, ann: Owner) -> None:
    nowhere = np.zeros(DIMENSIONS, np.float32)
    store.add_memories([note("?!", ann), note("apples", ann)], [nowhere, vector(1)])

    assert store.nearest_memories(ann, vector(1), kinds=ALL_KINDS, now=NOW) == [
        Match(2, pytest.approx(1, abs=0.005)),  # type: ignore[arg-type]
        Match(1, 0.0),
    ]


# --- everything that is known about a question


def talk(text: str, owner: Owner, session: str | None, role: Role = Role.USER, **changes: Any) -> Memory:
    return note(text, owner, kind=Kind.EPISODE, session_id=session, role=role, **changes)


def weigh(store: SqlStore, owner: Owner, query: str, place: Vector | None = None, **changes: Any) -> Evidence:
    wanted = {"kinds": ALL_KINDS, "now": NOW, **changes}
    return store.weigh_memories(owner, ParsedQuery.read(query, NOW).terms, place, **wanted)


def found_at(evidence: Evidence, term: int) -> dict[int, float]:
    rows, counts = evidence.occurrences[term]
    return dict(zip(evidence.seqs[rows].tolist(), counts.tolist(), strict=True))


def test_words_are_told_with_where_and_how_often(store: SqlStore, ann: Owner) -> None:
    add(store, ann, "red apple", "an apple, an apple", "pear")

    found = weigh(store, ann, "apples plum red")

    assert [found_at(found, term) for term in range(3)] == [{1: 1, 2: 2}, {}, {1: 1}]
    assert dict(zip(found.seqs.tolist(), found.lengths.tolist(), strict=True)) == {1: 2, 2: 2, 3: 1}
    assert found.cosines is None


def test_a_conversation_is_told_together_and_in_order(store: SqlStore, ann: Owner) -> None:
    sessions = ("one", "two", "one", None, "two", None, "one")
    store.add_memories([talk("hello", ann, session) for session in sessions], [None] * 7)
    store.update_memory(replace(store.get_memory(ann, "m-1"), text="hello again"), replaced_at=NOW)

    found = weigh(store, ann, "hello")

    assert conversations(found) == [[1, 3, 7], [2, 5], [4, 6]]
    assert sorted(found_at(found, 0)) == [1, 2, 3, 4, 5, 6, 7]


def conversations(found: Evidence) -> list[list[int]]:
    """The numbers of each conversation's records, which must stand side by side."""
    groups: dict[int, list[int]] = {}
    for seq, conversation in zip(found.seqs.tolist(), found.conversations.tolist(), strict=True):
        groups.setdefault(conversation, []).append(seq)
    assert [seq for group in groups.values() for seq in group] == found.seqs.tolist()
    return sorted(groups.values())


def test_turns_that_name_no_conversation_are_one_until_a_pause(store: SqlStore, ann: Owner) -> None:
    minutes = (0, 20, 40, 75, 76)
    turns = [talk("hello", ann, None, valid_from=EARLIER + timedelta(minutes=each)) for each in minutes]
    store.add_memories([*turns, note("hello", ann, valid_from=EARLIER), talk("hello", ann, "named")], [None] * 7)

    assert conversations(weigh(store, ann, "hello")) == [[1, 2, 3], [4, 5], [6], [7]]


def test_who_said_it_and_since_when_is_told(store: SqlStore, ann: Owner) -> None:
    store.add_memories(
        [
            talk("mine", ann, "s", valid_from=EARLIER),
            talk("yours", ann, "s", Role.ASSISTANT),
            note("neither", ann, role=Role.ASSISTANT),
        ],
        [None] * 3,
    )

    found = weigh(store, ann, "who")

    told = zip(found.seqs.tolist(), found.speakers.tolist(), found.since.tolist(), strict=True)
    assert sorted(told) == [
        (1, SPEAKERS.index(Role.USER), int(EARLIER.timestamp())),
        (2, SPEAKERS.index(Role.ASSISTANT), int(NOW.timestamp())),
        (3, 0, int(NOW.timestamp())),
    ]


def test_cosines_are_told_and_where_there_is_none(store: SqlStore, ann: Owner) -> None:
    nowhere = np.zeros(DIMENSIONS, np.float32)
    store.add_memories([note("x", ann) for _ in range(4)], [vector(1), None, vector(1, 1), nowhere])

    found = weigh(store, ann, "x", vector(1))

    assert found.cosines is not None
    told = dict(zip(found.seqs.tolist(), found.cosines.tolist(), strict=True))
    assert told == pytest.approx({1: 1, 2: math.nan, 3: math.sqrt(0.5), 4: 0}, abs=0.005, nan_ok=True)


def test_only_what_can_be_recalled_is_told(store: SqlStore, ann: Owner, bob: Owner) -> None:
    for changes in ({}, {"expires_at": EARLIER}, {"archived_at": EARLIER}, {"kind": Kind.CORE}, {"valid_from": LATER}):
        store.add_memory(note("apples", ann, **changes), vector(1))
    store.add_memory(note("apples", bob), vector(1))

    def told(**changes: Any) -> list[int]:
        found = weigh(store, ann, "apples", vector(1), **changes)
        assert set(found_at(found, 0)) == set(found.seqs.tolist())
        return sorted(found.seqs.tolist())

    assert told() == [1, 4, 5]
    assert told(kinds=[Kind.NOTE]) == [1, 5]
    assert told(is_past=True) == [1, 4]
    assert not len(weigh(store, ann, "apples", kinds=[]).seqs)
    assert not len(weigh(store, owner(), "apples").seqs)


# --- much, and much at once


def test_a_long_list_is_searched_like_a_short_one(store: SqlStore, ann: Owner) -> None:
    for step in range(4):  # more words than are kept unsorted, and searches in between
        words = [f"common word{number} step{step}" for number in range(step * 700, step * 700 + 700)]
        add(store, ann, *words)
        assert len(search(store, ann, "common", limit=5000)) == 700 * (step + 1)
    store.delete_memory(ann, "m-1500")
    store.update_memory(replace(store.get_memory(ann, "m-10"), text="changed"), replaced_at=NOW)

    assert search(store, ann, "word0 word2799") == [2800, 1]
    assert search(store, ann, "word1499 word9") == []
    assert search(store, ann, "step1", limit=5000) == list(range(1400, 700, -1))
    assert search(store, ann, "changed") == [10]
    assert len(search(store, ann, "common", limit=5000)) == 2798


def test_more_owners_than_fit_into_memory_are_all_searched(lasting_place: Place) -> None:
    store = open_store(lasting_place.url, busy_timeout=100, pool_size=1, index_cache_mb=1)
    store.use_embedder(EMBEDDER, DIMENSIONS)
    crowd = [owner() for _ in range(10)]
    for each in crowd:
        many = [note(f"apples number{number}", each) for number in range(1500)]
        store.add_memories(many, [vector(1), *[vector(0, 1)] * 1499])

    for each in crowd * 2:
        assert search(store, each, "number1499") == [1500]
        assert nearest(store, each, vector(1), limit=1) == [1]
    store.close()


def test_searches_hold_while_others_write(store: SqlStore, ann: Owner) -> None:
    rock = store.add_memory(note("rock", ann), vector(1))
    done, gate = threading.Event(), threading.Barrier(8, timeout=100)

    def write(name: str) -> None:
        gate.wait()
        for number in range(40):
            memory = store.add_memory(note(f"sand {name}", ann), vector(0, 1))
            memory = store.update_memory(replace(memory, text=f"dust {number}"), vector(0, 0, 1), replaced_at=NOW)
            if number % 2:
                store.delete_memory(ann, memory.id)

    def read() -> None:
        gate.wait()
        while True:
            assert search(store, ann, "rock") == [1]
            assert nearest(store, ann, vector(1), limit=1) == [1]
            found = store.find_memories(ann, search(store, ann, "dust", limit=500))
            assert all(memory.text.startswith("dust") for memory in found.values())
            if done.is_set():
                return

    with ThreadPoolExecutor(8) as threads:
        readers = [threads.submit(read) for _ in range(4)]
        try:
            list(threads.map(write, "abcd"))
        finally:
            done.set()
        for reader in readers:
            reader.result()

    assert len(search(store, ann, "dust", limit=500)) == 80
    assert search(store, ann, "sand") == []
    assert store.get_memory(ann, rock.id) == rock
