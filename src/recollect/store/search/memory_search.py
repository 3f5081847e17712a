"""Search of memories and passages in the cached indexes and texts, on any engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from recollect.model import Kind, Match, Owner
from recollect.policy.passages import PassageEvidence
from recollect.policy.recall.similarity import Evidence
from recollect.ports import Vector
from recollect.store.engine import RegisteredEmbedder
from recollect.store.search.encoding import Encoding
from recollect.store.search.index import ALWAYS, RowFilter
from recollect.store.search.index_cache import NO_EMBEDDER, IndexCache, IndexKey, Read
from recollect.store.search.texts import Texts


class MemorySearch:
    """Implementation of the part of `engine.SearchIndex` that searches in memory."""

    def __init__(
        self, read: Read, *, encoding: Encoding, numbers: Callable[[Sequence[int]], Any], max_bytes: int
    ) -> None:
        self._indexes = IndexCache(read, encoding=encoding, numbers=numbers, max_bytes=max_bytes)
        self._texts = Texts(read)
        self._embedder = NO_EMBEDDER

    def use(self, embedder: RegisteredEmbedder) -> None:
        self._embedder = embedder
        self._indexes.use(embedder)

    def forget(self, tenant: str) -> None:
        """Drop the cached data of a tenant."""
        self._texts.forget(tenant)
        self._indexes.forget(tenant)

    def clear(self) -> None:
        """Drop all cached data."""
        self._texts.clear()
        self._indexes.clear()

    def search_memories(
        self, owner: Owner, terms: Sequence[str], *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]:
        index = self._indexes.current(IndexKey(owner.tenant, owner.agent))
        return index.search(terms, RowFilter(kinds, now.timestamp()), limit)

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]:
        index = self._indexes.current(IndexKey(owner.tenant, owner.agent))
        return index.nearest(vector, RowFilter(kinds, now.timestamp()), limit)

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
        row_filter = RowFilter(kinds, now.timestamp(), until=int(now.timestamp()) if is_past else None)
        return self._indexes.current(IndexKey(owner.tenant, owner.agent)).evidence(terms, vector, row_filter)

    def weigh_chunks(
        self, tenant: str, terms: Sequence[str], vector: Vector | None, *, categories: Collection[str]
    ) -> PassageEvidence:
        index = self._indexes.current(IndexKey(tenant))
        return PassageEvidence.of_shelf(index.evidence(terms, vector, RowFilter(categories, ALWAYS)))

    def numbers_holding(self, owner: Owner, needle: str) -> Iterator[int] | None:
        return self._texts.holding(owner, needle)
