"""Finding the memories a question is about, ranked, each with the reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from recollect.errors import Invalid
from recollect.model import Hit, Kind, Memory, Owner, Source
from recollect.policy import ranking
from recollect.policy.names import memory_seq
from recollect.policy.text import checked_text
from recollect.ports import Clock, MemoryStore, Vector
from recollect.services.echoes import Echoes
from recollect.services.embedding import Embedding
from recollect.services.retrieved import Retrieved

CANDIDATES = 50
"""How many each way of searching may propose, per hit that is wanted and at least."""

PAST_STEP = 8
"""How much further a question about the past looks, each time it found too little that is old enough."""

MAX_LIMIT = 100
MAX_QUERY_CHARS = 10_000


class Recall:
    """Searches by words and by meaning, and ranks by the weighted sum of similarity, recency, importance and source."""

    def __init__(
        self,
        store: MemoryStore,
        embedding: Embedding,
        echoes: Echoes,
        retrieved: Retrieved,
        now: Clock,
        *,
        weights: Mapping[str, float],
        words_share: float,
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._echoes = echoes
        self._retrieved = retrieved
        self._now = now
        self._weights = weights
        self._words_share = words_share

    def __call__(
        self,
        owner: Owner,
        query: str,
        *,
        limit: int = 5,
        kinds: Collection[Kind] = tuple(Kind),
        as_of: datetime | None = None,
    ) -> Sequence[Hit]:
        """The best first; `as_of` asks what would have been recalled then.

        Raises: Invalid.
        """
        query = checked_query(query)
        checked_limit(limit)
        now = self._now() if as_of is None else as_of
        hits = self._hits(owner, query, kinds, now, max(CANDIDATES, limit), is_past=as_of is not None)
        hits.sort(key=lambda hit: (hit.score, memory_seq(hit.id) or 0), reverse=True)
        best = hits[:limit]
        self._echoes.shown(owner, [hit.text for hit in best])
        if as_of is None:
            self._retrieved.mark(owner, [memory_seq(hit.id) or 0 for hit in best], now)
        return best

    def _hits(
        self, owner: Owner, query: str, kinds: Collection[Kind], now: datetime, limit: int, *, is_past: bool
    ) -> list[Hit]:
        """What was true at `now` among the `limit` most similar; in the past, among more until there are enough."""
        vector, wanted = self._embedding.of_query(query), limit
        while True:
            similarity = self._similarity(owner, query, vector, kinds, now, limit)
            memories = self._store.find_memories(owner, list(similarity))
            hits = [
                self._hit(memory, similarity[seq], now)
                for seq, memory in memories.items()
                if not is_past or (memory.valid_from or memory.created_at) <= now
            ]
            if not is_past or len(hits) >= wanted or len(similarity) < limit:
                return hits
            limit *= PAST_STEP

    def _similarity(
        self, owner: Owner, query: str, vector: Vector | None, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Mapping[int, float]:
        words = self._store.search_memories(owner, query, kinds=kinds, now=now, limit=limit)
        near = [] if vector is None else self._store.nearest_memories(owner, vector, kinds=kinds, now=now, limit=limit)
        return ranking.hybrid(
            {match.seq: match.score for match in words},
            {match.seq: match.score for match in near},
            words_share=self._words_share,
        )

    def _hit(self, memory: Memory, similarity: float, now: datetime) -> Hit:
        parts = {
            "similarity": similarity,
            "recency": ranking.recency(memory.created_at, now=now),
            "importance": memory.importance,
            "source": ranking.SOURCE_PRIORITY[Source.MEMORY],
        }
        return Hit(
            source=Source.MEMORY,
            id=memory.id,
            text=memory.text,
            score=ranking.weighted(parts, self._weights),
            parts=parts,
            weights=self._weights,
            created_at=memory.created_at,
            memory=memory,
        )


def checked_query(query: str) -> str:
    """Raises: Invalid."""
    query = checked_text(query, what="query").strip()
    if not query:
        raise Invalid("The query is blank; say what to look for.")
    return query[:MAX_QUERY_CHARS]


def checked_limit(limit: object, *, most: int = MAX_LIMIT) -> int:
    """Raises: Invalid."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise Invalid(f"The limit is a whole number from 1 to {most}.")
    return limit
