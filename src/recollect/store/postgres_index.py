"""Search on PostgreSQL: inside the database.

Words: the program cuts and stems them, PostgreSQL keeps them as a tsvector and scores them with the same BM25 as the
index in memory does. Vectors: one agent's are few and compared one by one; a tenant's shared shelf has an approximate
index (HNSW) once it is large. Such an index answers a filtered question with too few rows and no warning, so it is
asked to go on until it has enough, and if it still falls short the exact way is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from math import isnan
from typing import Any

import numpy as np

from recollect.model import Kind, Match, Owner
from recollect.policy.ranking import BM25_B, BM25_K1
from recollect.policy.similarity import SPEAKERS, Evidence, conversations_of
from recollect.ports import Vector
from recollect.store.agents import whose
from recollect.store.engine import Registered, Row, Unit
from recollect.store.index import SCORE_DIGITS

EXACT_BELOW = 20_000
"""A tenant with fewer chunks than this is searched exactly: it is fast enough, and finds everything."""

MAX_INDEXED_DIMENSIONS = 4000
"""pgvector cannot index longer half-precision vectors; they are searched exactly."""

MAX_POSITIONS = 255
"""A tsvector keeps at most this many places of one word."""

FOREVER = 2**62
"""A second no memory begins after."""

Read = Callable[[str, Callable[[Unit], Sequence[Row]]], Sequence[Row]]


class PostgresIndex:
    """`engine.SearchIndex` in SQL."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._embedder = Registered(0, "", 0)

    def use(self, embedder: Registered) -> None:
        self._embedder = embedder

    def encoded(self, terms: Sequence[Sequence[str]], vectors: Sequence[Vector | None]) -> Sequence[Mapping[str, Any]]:
        self._embedder.check(vectors)
        return [
            {
                "words": tsvector_literal(words),
                "length": sum(min(count, MAX_POSITIONS) for count in Counter(words).values()),
                "embedder_id": None if vector is None else self._embedder.id,
                "vector": None if vector is None else vector_literal(vector),
            }
            for words, vector in zip(terms, vectors, strict=True)
        ]

    def search_memories(
        self, owner: Owner, terms: Sequence[str], *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]:
        values = {"terms": _distinct(terms), "kinds": _names(kinds), "now": now, "limit": limit, **_BM25}
        return _matches(self._read(owner.tenant, lambda unit: unit.all("search_memories", **whose(owner), **values)))

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]:
        values = {"kinds": _names(kinds), "now": now, "limit": limit, "vector": vector_literal(vector)}
        values["embedder_id"] = self._embedder.id
        return _matches(self._read(owner.tenant, lambda unit: unit.all("nearest_memories", **whose(owner), **values)))

    def weigh_memories(
        self,
        owner: Owner,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        kinds: Collection[Kind],
        now: datetime,
        is_past: bool,
    ) -> Evidence:
        values = {"kinds": _names(kinds), "now": now, "until": int(now.timestamp()) if is_past else FOREVER}
        asked = {
            "vector": None if vector is None else vector_literal(vector),
            "embedder_id": None if vector is None else self._embedder.id,
            "speakers": [role.value for role in SPEAKERS if role is not None],
        }
        words = _distinct(terms)

        def weigh(unit: Unit) -> Sequence[Row]:
            columns = unit.all("memory_columns", **whose(owner), **values, **asked)
            return [*columns, *(unit.all("memory_occurrences", **whose(owner), **values, terms=words) if words else ())]

        columns, *occurrences = self._read(owner.tenant, weigh)
        if columns[0] is None:
            return Evidence.empty()
        return _evidence(columns, words, occurrences, has_vector=vector is not None)

    def numbers_holding(self, owner: Owner, needle: str) -> Iterator[int] | None:
        return None

    def search_chunks(
        self, tenant: str, terms: Sequence[str], *, categories: Collection[str], limit: int
    ) -> Sequence[Match]:
        values = {"terms": _distinct(terms), "limit": limit, **_in_categories(categories), **_BM25}
        return _matches(self._read(tenant, lambda unit: unit.all("search_chunks", tenant=tenant, **values)))

    def nearest_chunks(
        self, tenant: str, vector: Vector, *, categories: Collection[str], limit: int
    ) -> Sequence[Match]:
        values = {
            "tenant": tenant,
            "embedder_id": self._embedder.id,
            "vector": vector_literal(vector),
            "limit": limit,
            **_in_categories(categories),
        }

        def nearest(unit: Unit) -> Sequence[Row]:
            row = unit.one("chunks_ever", tenant=tenant)
            if row is not None and row[0] >= EXACT_BELOW and self._embedder.dimensions <= MAX_INDEXED_DIMENSIONS:
                unit.run("scan_until_enough")
                found = unit.all("nearest_chunks_by_index", **values)
                if len(found) == limit:
                    return found
            return unit.all("nearest_chunks", **values)

        return _matches(self._read(tenant, nearest))


_BM25 = {"k1": BM25_K1, "b": BM25_B}


def _evidence(columns: Row, words: Sequence[str], occurrences: Sequence[Row], *, has_vector: bool) -> Evidence:
    """Columns of big-endian numbers, ordered by seq, as the evidence they are."""
    sent = (">i8", ">i8", ">i4", ">i8", ">i2", ">f4")
    kept = (np.int64, np.int64, np.float32, np.float64, np.int8, np.float32)
    seqs, sessions, lengths, since, speakers, cosines = (
        np.frombuffer(column, one).astype(other) for column, one, other in zip(columns, sent, kept, strict=True)
    )
    conversations = conversations_of(sessions, seqs=seqs, speakers=speakers, since=since)
    order = np.lexsort((seqs, conversations))
    places = np.argsort(order)
    found = {
        word: (places[np.searchsorted(seqs, np.frombuffer(numbers, ">i8"))], np.frombuffer(counts, ">f4"))
        for word, numbers, counts in occurrences
    }
    none = (np.zeros(0, np.int64), np.zeros(0, np.float32))
    return Evidence(
        seqs=seqs[order],
        conversations=conversations[order],
        lengths=lengths[order],
        since=since[order],
        speakers=speakers[order],
        cosines=cosines[order].round(SCORE_DIGITS) if has_vector else None,
        occurrences=[(at, counts.astype(np.float32)) for at, counts in (found.get(word, none) for word in words)],
    )


def tsvector_literal(terms: Sequence[str]) -> str:
    """Words and how often each occurs, as PostgreSQL writes a tsvector.

    >>> tsvector_literal(["tab", "space", "tab", "o'neil"])
    "'tab':1,2 'space':1 'o''neil':1"
    """
    return " ".join(
        f"{_quoted(term)}:{','.join(map(str, range(1, min(count, MAX_POSITIONS) + 1)))}"
        for term, count in Counter(terms).items()
    )


def _quoted(term: str) -> str:
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def vector_literal(vector: Vector) -> str:
    """A vector as pgvector writes it; six digits are more than half precision keeps."""
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"


def _distinct(terms: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(terms))


def _names(kinds: Collection[Kind]) -> list[str]:
    return [kind.value for kind in kinds]


def _in_categories(categories: Collection[str]) -> dict[str, object]:
    return {"any_category": not categories, "categories": list(categories)}


def _matches(rows: Sequence[Row]) -> list[Match]:
    # A text without meaning has no direction: pgvector's cosine to it is NaN.
    return [Match(seq, 0.0 if isnan(score) else float(score)) for seq, score in rows]
