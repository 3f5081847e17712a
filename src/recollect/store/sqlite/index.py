"""Search on SQLite: entirely in memory, for an agent's memories and a tenant's passages alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from recollect.model import Match
from recollect.ports import Vector
from recollect.store.search.encoding import COMPACT_ENCODING, encode_terms, encode_vector, has_same_terms
from recollect.store.search.index import ALWAYS, RowFilter
from recollect.store.search.index_cache import IndexKey, Read
from recollect.store.search.memory_search import MemorySearch


class SqliteIndex(MemorySearch):
    """Implementation of `engine.SearchIndex` over rows of bytes."""

    def __init__(self, read: Read, *, numbers: Callable[[Sequence[int]], Any], max_bytes: int) -> None:
        super().__init__(read, encoding=COMPACT_ENCODING, numbers=numbers, max_bytes=max_bytes)

    def encoded(self, terms: Sequence[Sequence[str]], vectors: Sequence[Vector | None]) -> Sequence[Mapping[str, Any]]:
        self._embedder.check(vectors)
        return [
            {
                "terms": encode_terms(words),
                "embedder_id": None if vector is None else self._embedder.id,
                "vector": None if vector is None else encode_vector(vector),
            }
            for words, vector in zip(terms, vectors, strict=True)
        ]

    def has_words(self, stored: Any, terms: Sequence[str]) -> bool:
        return has_same_terms(stored, terms)

    def search_chunks(
        self, tenant: str, terms: Sequence[str], *, categories: Collection[str], limit: int
    ) -> Sequence[Match]:
        return self._indexes.current(IndexKey(tenant)).search(terms, RowFilter(categories, ALWAYS), limit)

    def nearest_chunks(
        self, tenant: str, vector: Vector, *, categories: Collection[str], limit: int
    ) -> Sequence[Match]:
        return self._indexes.current(IndexKey(tenant)).nearest(vector, RowFilter(categories, ALWAYS), limit)
