"""Search of memories and passages in cached indexes (`store.search.index_cache`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from wellkept.knowledge.rules_passages import PassageEvidence
from wellkept.memory.rules_conditions import Comparison, Condition
from wellkept.model import NO_USER, Kind, Match, Owner
from wellkept.model.stored import Vector
from wellkept.recall.rules_similarity import Evidence
from wellkept.store.conditions import compile_field, compile_filter
from wellkept.store.engine import RegisteredEmbedder, Row
from wellkept.store.search.encoding import Encoding
from wellkept.store.search.index import OwnerIndex
from wellkept.store.search.index_cache import BATCH, NO_EMBEDDER, IndexCache, IndexKey, Read
from wellkept.store.search.index_rows import ALWAYS, RowFilter
from wellkept.store.tables.rows import merge_parts


class MemorySearch:
    """Implementation of the part of `engine.SearchIndex` that concerns memories."""

    def __init__(
        self,
        engine: str,
        read: Read,
        *,
        encoding: Encoding,
        numbers: Callable[[Sequence[int]], Any],
        max_bytes: int,
        keeps_last: bool,
    ) -> None:
        self._engine, self._read, self._numbers = engine, read, numbers
        self._indexes = IndexCache(
            read,
            encoding=encoding,
            numbers=numbers,
            max_bytes=max_bytes,
            keeps_last=keeps_last,
        )
        self._embedder = NO_EMBEDDER

    def use(self, embedder: RegisteredEmbedder) -> None:
        self._embedder = embedder
        self._indexes.use(embedder)

    def forget(self, tenant: str) -> None:
        """Drop the cached data of a tenant."""
        self._indexes.forget(tenant)

    def clear(self) -> None:
        """Drop all cached data."""
        self._indexes.clear()

    def search_memories(
        self, owner: Owner, terms: Sequence[str], *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]:
        row_filter = RowFilter(kinds, now.timestamp())
        parts = [self._search_part(key, terms, row_filter, limit) for key in map(self._find_key, owner.parts)]
        return merge_matches(parts, limit)

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]:
        row_filter = RowFilter(kinds, now.timestamp())
        parts = [self._search_nearest(key, vector, row_filter, limit) for key in map(self._find_key, owner.parts)]
        return merge_matches(parts, limit)

    def weigh_memories(
        self,
        owner: Owner,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        kinds: Collection[Kind],
        now: datetime,
        is_past: bool,
        where: Condition | None = None,
    ) -> Evidence:
        row_filter = RowFilter(kinds, now.timestamp(), until=int(now.timestamp()) if is_past else None)
        keys = [*map(self._find_key, owner.parts)]
        own, *others = [self._weigh_part(key, terms, vector, row_filter, where) for key in keys]
        for other in others:
            own = other if not len(own.seqs) else own.with_more(other) if len(other.seqs) else own
        return own

    def _load_field(self, key: IndexKey, field: Comparison, seqs: Sequence[int]) -> Iterator[Row]:
        """Yield the number, the version in the index and the value of a field of these memories."""
        select = compile_field(field, self._engine)
        for start in range(0, len(seqs), BATCH):
            numbers = self._numbers(seqs[start : start + BATCH])
            yield from self._read(key.tenant, partial(key.fields, seqs=numbers, select=select))

    def _search_part(self, key: IndexKey, terms: Sequence[str], row_filter: RowFilter, limit: int) -> Sequence[Match]:
        return self._indexes.current(key).search(terms, row_filter, limit)

    def _search_nearest(self, key: IndexKey, vector: Vector, row_filter: RowFilter, limit: int) -> Sequence[Match]:
        return self._indexes.current(key).nearest(vector, row_filter, limit)

    def _weigh_part(
        self,
        key: IndexKey,
        terms: Sequence[str],
        vector: Vector | None,
        row_filter: RowFilter,
        where: Condition | None,
    ) -> Evidence:
        return self._weigh_index(self._indexes.current(key), key, terms, vector, row_filter, where)

    def _weigh_index(
        self,
        index: OwnerIndex,
        key: IndexKey,
        terms: Sequence[str],
        vector: Vector | None,
        row_filter: RowFilter,
        where: Condition | None,
    ) -> Evidence:
        load = None if where is None else partial(self._load_field, key)
        return index.evidence(terms, vector, row_filter, where=where, load=load)

    def _find_key(self, owner: Owner) -> IndexKey:
        """Return the key of the index of an agent, of one of its users, or of its records of no user, which all users
        share. An agent without users has one, whether or not the search names nobody.

        A row of a user that is added at this moment is in that index, but the statement that reads it leaves it out.
        """
        agent = {"tenant": owner.tenant, "agent": owner.agent}
        is_alone = owner.user == NO_USER and not self._read(owner.tenant, lambda unit: unit.one("any_user", **agent))
        return IndexKey(owner.tenant, owner.agent, None if is_alone else owner.user)

    def weigh_chunks(
        self,
        tenant: str,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        categories: Collection[str],
        where: Condition | None = None,
    ) -> PassageEvidence:
        index = self._indexes.current(IndexKey(tenant))
        return self._weigh_shelf(index, tenant, terms, vector, categories, where)

    def _weigh_shelf(
        self,
        index: OwnerIndex,
        tenant: str,
        terms: Sequence[str],
        vector: Vector | None,
        categories: Collection[str],
        where: Condition | None,
    ) -> PassageEvidence:
        found = index.evidence(terms, vector, RowFilter(categories, ALWAYS))
        if where is not None:
            clause = compile_filter(where, self._engine)
            rows = self._read(tenant, lambda unit: unit.all("chunks_where", clause, tenant=tenant))
            found = replace(found, allowed=np.isin(found.seqs, [number for (number,) in rows]))
        return PassageEvidence.of_shelf(found)


def merge_matches(matches: Sequence[Sequence[Match]], limit: int) -> Sequence[Match]:
    """Return the best matches of several indexes, newest first among equals."""
    return merge_parts(matches, limit, lambda match: (match.score, match.seq))
