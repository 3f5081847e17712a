"""Search of large indexes by a shortlist: the same best records as without one, up to a few."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from wellkept.language.text import index_terms
from wellkept.model import Kind
from wellkept.recall import rules_shortlist as shortlist
from wellkept.recall.rules_matching import find_best
from wellkept.recall.rules_question import ParsedQuery
from wellkept.recall.rules_similarity import Evidence
from wellkept.store.engine import RegisteredEmbedder, Row
from wellkept.store.search.encoding import encode_terms, encode_vector
from wellkept.store.search.index import OwnerIndex
from wellkept.store.search.index_rows import RowFilter

DIMENSIONS = 32
EMBEDDER = RegisteredEmbedder(1, "test", DIMENSIONS)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
ALL = RowFilter(tuple(Kind), NOW.timestamp())
SYLLABLES = ("ba", "do", "ki", "lu", "me", "na", "po", "ra", "si", "to", "ve", "zu")
VOCABULARY = [f"{a}{b}{c}" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES]
WEIGHTS = [1 / (rank + 5) for rank in range(len(VOCABULARY))]
MEANINGS = np.random.default_rng(1).standard_normal((len(VOCABULARY), DIMENSIONS)).astype(np.float32)
PLACE_OF = {word: place for place, word in enumerate(VOCABULARY)}


def embed(words: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    total = MEANINGS[[PLACE_OF[word] for word in words]].sum(0)
    unit: np.ndarray[tuple[int], np.dtype[np.float32]] = total / np.linalg.norm(total)
    return unit


def build(count: int, *, talks: int, embedded: float = 1.0) -> OwnerIndex:
    """Build an index of `count` memories in `talks` sessions that go on side by side; 0: without sessions."""
    rng = random.Random(count + talks)
    rows = list[Row]()
    for seq in range(1, count + 1):
        words = rng.choices(VOCABULARY, WEIGHTS, k=rng.randint(4, 12))
        vector = encode_vector(embed(words)) if rng.random() < embedded else None
        session = f"s{seq * talks // count + rng.randint(0, 1)}" if talks else None
        terms = encode_terms(index_terms(" ".join(words)))
        since = int(NOW.timestamp()) - 60 * (count - seq)
        rows.append((seq, 1, "episode", None, terms, 1 if vector else None, vector, session, "user", since))
    index = OwnerIndex(EMBEDDER)
    for start in range(0, count, 20_000):
        index.append(rows[start : start + 20_000])
    return index


def ask(count: int) -> list[tuple[ParsedQuery, np.ndarray[tuple[int], np.dtype[np.float32]]]]:
    rng = random.Random(99)
    questions = [rng.choices(VOCABULARY, WEIGHTS, k=rng.randint(2, 8)) for _ in range(count)]
    return [(ParsedQuery.read(" ".join(words), NOW), embed(words)) for words in questions]


def measure_recall(index: OwnerIndex, questions: int = 30, *, with_vectors: bool = True) -> float:
    """Return the share of the ten best of all records that are among the ten best of the shortlist."""
    shares = []
    for query, vector in ask(questions):
        given = vector if with_vectors else None
        exact, short = (index.evidence(query.lookups, given, ALL, is_whole=each) for each in (False, True))
        assert len(short.seqs) < len(exact.seqs) == index.count
        wanted, found = ({*find_best(each, query, words_share=0.67, limit=10)} for each in (exact, short))
        shares.append(len(wanted & found) / len(wanted))
    return float(np.mean(shares))


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "LARGE", 1000)
    monkeypatch.setattr(shortlist, "CANDIDATES", 300)
    monkeypatch.setattr(shortlist, "SAMPLE", 50)


def test_a_hundred_thousand_and_more_are_searched_by_a_shortlist() -> None:
    index = build(shortlist.LARGE + 5000, talks=3000)

    assert measure_recall(index) >= 0.98


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("talks", [0, 3, 400, 6000])
def test_conversations_of_any_length_are_found(talks: int) -> None:
    assert measure_recall(build(6000, talks=talks)) >= 0.98


@pytest.mark.usefixtures("_small")
def test_memories_without_vectors_are_found() -> None:
    index = build(6000, talks=300, embedded=0.7)

    assert measure_recall(index) >= 0.98
    assert measure_recall(index, with_vectors=False) >= 0.98


@pytest.mark.usefixtures("_small")
def test_relevance_is_about_the_same() -> None:
    index, differences = build(6000, talks=300), []
    for query, vector in ask(20):
        exact, short = (
            find_best(index.evidence(query.lookups, vector, ALL, is_whole=each), query, words_share=0.67, limit=5)
            for each in (False, True)
        )
        differences.append(abs(max(exact.values()) - max(short.values())))

    assert max(differences) < 0.05
    assert np.mean(differences) < 0.01


@pytest.mark.usefixtures("_small")
def test_rows_outside_the_filter_are_never_found() -> None:
    index = build(6000, talks=300)
    query, vector = ask(1)[0]
    before = int(NOW.timestamp()) - 60 * 3000

    found = index.evidence(query.lookups, vector, RowFilter(ALL.groups, ALL.now, before), is_whole=True)

    assert 0 < len(found.seqs) < 3000
    assert found.population is not None
    assert found.population.total == 3000
    assert found.seqs.max() <= 3000


@pytest.mark.usefixtures("_small")
def test_equal_records_are_found_newest_first() -> None:
    words = VOCABULARY[:6]
    terms, vector = encode_terms(index_terms(" ".join(words))), encode_vector(embed(words))
    index = OwnerIndex(EMBEDDER)
    index.append([(seq, 1, "note", None, terms, 1, vector, f"s{seq}", "user", 0) for seq in range(1, 5001)])
    query = ParsedQuery.read(" ".join(words), NOW)

    found = index.evidence(query.lookups, embed(words), ALL, is_whole=True)

    assert list(find_best(found, query, words_share=0.67, limit=5)) == [5000, 4999, 4998, 4997, 4996]


def test_up_to_the_limit_everything_is_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "LARGE", 600)
    query, vector = ask(1)[0]
    found: list[Evidence] = [
        build(count, talks=10).evidence(query.lookups, vector, ALL, is_whole=True) for count in (600, 601)
    ]

    assert [each.population is None for each in found] == [True, False]
