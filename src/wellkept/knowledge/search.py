"""Search documents for passages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from wellkept.knowledge.rules_chunking import check_categories
from wellkept.knowledge.rules_passages import find_best_passages, query_terms
from wellkept.language.values import check_limit, check_min_relevance, check_query
from wellkept.memory.loop_guard import LoopGuard
from wellkept.memory.rules_filters import DOCUMENT_FIELDS, Condition, KnowledgeOptions, Where, parse_filter
from wellkept.memory.rules_importance import is_small_talk
from wellkept.model import Chunk, Document, HeldWord, Hit, Owner, Source
from wellkept.model.stored import Vector
from wellkept.recall.rules_question import find_names
from wellkept.recall.rules_ranking import is_unverified
from wellkept.recall.rules_rare_words import find_held_words, find_rare_words, nominate, raise_relevance
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Passage that matches a query, with the probability that it is relevant as its similarity."""

    chunk: Chunk
    document: Document
    similarity: float
    held: tuple[HeldWord, ...] = ()  # rare words of the query; see `recall.rules_rare_words`

    @property
    def id(self) -> str:
        """Id of the document and position of the passage."""
        return f"{self.document.id}#{self.chunk.position}"


class PassageSearch:
    """Search for passages of published documents, by words and by meaning."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def find(
        self,
        tenant: str,
        query: str,
        vector: Vector | None,
        *,
        categories: Collection[str] = (),
        where: Condition | None = None,
        limit: int,
    ) -> Sequence[Passage]:
        """Return the best passages, however relevant. Without categories, search all."""
        words, names = query_terms(query), find_names(query)
        evidence = self._store.weigh_chunks(tenant, words, vector, categories=categories, where=where)
        if not evidence.total:
            return ()
        similarity = find_best_passages(evidence, [word in names for word in words], limit=limit)
        rare = find_rare_words(query)
        nominated = {word: seqs or () for word, seqs in nominate(rare, words, evidence.found, evidence.total).items()}
        chunks = self._store.find_chunks(tenant, list({*similarity}.union(*nominated.values())))
        held = find_held_words(rare, nominated, {seq: chunk.text for seq, chunk in chunks.items()})
        documents = self._store.find_documents(tenant, {chunk.document_id for chunk in chunks.values()})
        return [
            Passage(
                chunk=chunks[seq],
                document=documents[chunks[seq].document_id],
                similarity=similarity.get(seq, 0.0),
                held=tuple(held.get(seq, ())),
            )
            for seq in dict.fromkeys((*similarity, *held))
            if seq in chunks and chunks[seq].document_id in documents
        ]

    def for_agent(
        self, owner: Owner, query: str, vector: Vector | None, *, categories: Collection[str] = (), **options: Any
    ) -> Sequence[Passage]:
        """Return the best passages within the categories the agent is limited to."""
        agent = self._store.find_agent(owner)
        limits = set(agent.knowledge_categories) if agent is not None else set()
        if limits:
            categories = limits.intersection(categories) if categories else limits
            if not categories:
                return ()
        return self.find(owner.tenant, query, vector, categories=categories, **options)


WEIGHTS = {"similarity": 1.0}
NO_AGENT = ""

SPARE = 10
"""Factor of passages read over passages returned, if some of them are unverified."""


class SearchKnowledge:
    """Service that returns the passages most similar to a query."""

    def __init__(self, passages: PassageSearch, embedding: Embedding, loop_guard: LoopGuard) -> None:
        self._passages = passages
        self._embedding = embedding
        self._loop_guard = loop_guard

    def __call__(self, tenant: str, query: str, **options: Unpack[KnowledgeOptions]) -> Sequence[Hit]:
        """Return the best passages of a tenant, none below `min_relevance`. Raises: Invalid."""
        return self._search(Owner(tenant, NO_AGENT), query, partial(self._passages.find, tenant), **options)

    def for_agent(self, owner: Owner, query: str, **options: Unpack[KnowledgeOptions]) -> Sequence[Hit]:
        """Return the best passages within the categories the agent is limited to. Raises: Invalid."""
        hits = self._search(owner, query, partial(self._passages.for_agent, owner), **options)
        self._loop_guard.note_shown(owner, [hit.text for hit in hits])
        return hits

    def _search(
        self,
        owner: Owner,
        query: str,
        find: Callable[..., Sequence[Passage]],
        *,
        categories: Collection[str] = (),
        where: Where = None,
        limit: int = 5,
        min_relevance: float | None = None,
    ) -> Sequence[Hit]:
        query, categories = check_query(query), check_categories(categories)
        chosen, least = parse_filter(where, DOCUMENT_FIELDS), check_min_relevance(min_relevance) or 0.0
        limit = check_limit(limit)
        if is_small_talk(query):
            # Its few words would cover some passage completely.
            return []
        vector = self._embedding.of_query(query)
        self._embedding.prepare(owner)

        def search(limit: int) -> Sequence[Hit]:
            found = find(query, vector, categories=categories, where=chosen, limit=limit)
            return _make_hits(_order_passages(found, least)[:limit])

        hits = search(limit)
        # In an agent's prompt, unverified passages only get places that are left.
        if owner.agent != NO_AGENT and any(map(is_unverified, hits)):
            hits = sorted(search(SPARE * limit), key=is_unverified)[:limit]
        return hits


def _order_passages(found: Sequence[Passage], least: float) -> Sequence[Passage]:
    """Return the passages of at least this relevance, first those that hold a rare word of the query."""
    raised = [replace(each, similarity=raise_relevance(each.similarity, each.held)) for each in found if each.held]
    raised.sort(key=lambda each: (len(each.held), each.similarity), reverse=True)
    return [each for each in (*raised, *(each for each in found if not each.held)) if each.similarity >= least]


def _make_hits(found: Iterable[Passage]) -> Sequence[Hit]:
    return [
        Hit(
            source=Source.KNOWLEDGE,
            id=passage.id,
            text=passage.chunk.text,
            score=passage.similarity,
            parts={"similarity": passage.similarity},
            weights=WEIGHTS,
            created_at=passage.document.updated_at,
            document=passage.document,
            held=passage.held,
        )
        for passage in found
    ]
