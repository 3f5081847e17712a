"""Search documents for passages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any, TypedDict, Unpack

from wellkept.lazy import dataclass
from wellkept.model import Chunk, Document, HeldWord, Hit, Owner, Source
from wellkept.policy.documents import check_categories
from wellkept.policy.filters.conditions import DOCUMENT_FIELDS, Condition
from wellkept.policy.filters.language import Where, parse_filter
from wellkept.policy.memories.importance import is_small_talk
from wellkept.policy.passages import find_best_passages, query_terms
from wellkept.policy.recall.calibration import keep_relevant
from wellkept.policy.recall.purposes import is_unverified
from wellkept.policy.recall.question import find_names
from wellkept.policy.recall.rare_words import find_held_words, find_rare_words, nominate, raise_relevance
from wellkept.ports import Store, Vector
from wellkept.services.background.embedding import Embedding
from wellkept.services.memories.loop_guard import LoopGuard
from wellkept.services.recall.recall import check_limit, check_min_score, check_query


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Passage that matches a query, with the probability that it is relevant as its similarity."""

    chunk: Chunk
    document: Document
    similarity: float
    held: tuple[HeldWord, ...] = ()  # rare words of the query; see `policy.recall.rare_words`

    @property
    def id(self) -> str:
        """Id of the document and position of the passage."""
        return f"{self.document.id}#{self.chunk.position}"


class KnowledgeOptions(TypedDict, total=False):
    """Options of a search for passages."""

    categories: Collection[str]  # empty: all
    where: Where  # only passages of documents that pass this filter
    limit: int
    min_score: float | None  # replaces the default floor


class PassageSearch:
    """Search for passages of published documents, by words and by meaning."""

    def __init__(self, store: Store) -> None:
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


FindPassages = Callable[..., Sequence[Passage]]
"""Search of a `PassageSearch` for one tenant or agent."""

WEIGHTS = {"similarity": 1.0}

SPARE = 10
"""Factor of passages read over passages returned, if some of them are unverified."""


class SearchKnowledge:
    """Service that returns the passages most similar to a query."""

    def __init__(self, passages: PassageSearch, embedding: Embedding, echoes: LoopGuard, *, floor: float) -> None:
        """Set up the service to return nothing if even the best passage is below `floor`."""
        self._passages = passages
        self._floor = floor
        self._embedding = embedding
        self._echoes = echoes

    def __call__(self, tenant: str, query: str, **options: Unpack[KnowledgeOptions]) -> Sequence[Hit]:
        """Return the best passages of a tenant, none below `min_score` (None: the default floor).

        Raises: Invalid.
        """
        search, limit = self._prepare(partial(self._passages.find, tenant), query, **options)
        return search(limit)

    def for_agent(self, owner: Owner, query: str, **options: Unpack[KnowledgeOptions]) -> Sequence[Hit]:
        """Return the best passages within the categories the agent is limited to.

        Raises: Invalid.
        """
        search, limit = self._prepare(partial(self._passages.for_agent, owner), query, **options)
        hits = search(limit)
        # Unverified passages only get places that are left.
        if any(map(is_unverified, hits)):
            hits = sorted(search(SPARE * limit), key=is_unverified)[:limit]
        self._echoes.shown(owner, [hit.text for hit in hits])
        return hits

    def _prepare(
        self,
        find: FindPassages,
        query: str,
        *,
        categories: Collection[str] = (),
        where: Where = None,
        limit: int = 5,
        min_score: float | None = None,
    ) -> tuple[Callable[[int], Sequence[Hit]], int]:
        """Check the options and return the search for a number of hits above the floor, and the limit."""
        query, categories = check_query(query), check_categories(categories)
        chosen, is_strict = parse_filter(where, DOCUMENT_FIELDS), check_min_score(min_score) is not None
        floor, limit = self._floor if min_score is None else min_score, check_limit(limit)
        if floor and not is_strict and is_small_talk(query):
            # Its few words would cover some passage completely.
            return lambda limit: [], limit
        vector = self._embedding.of_query(query)

        def search(limit: int) -> Sequence[Hit]:
            found = find(query, vector, categories=categories, where=chosen, limit=limit)
            return _make_hits(_keep_relevant(found, floor, is_strict=is_strict)[:limit])

        return search, limit


def _keep_relevant(found: Sequence[Passage], floor: float, *, is_strict: bool) -> Sequence[Passage]:
    """Return the passages that reach the floor, and first those that hold a rare word of the query."""
    kept = keep_relevant([each.similarity for each in found], floor=floor, is_strict=is_strict)
    raised = [replace(each, similarity=raise_relevance(each.similarity, each.held)) for each in found if each.held]
    first = [each for each in raised if not is_strict or each.similarity >= floor]
    first.sort(key=lambda each: (len(each.held), each.similarity), reverse=True)
    return [*first, *(each for each in compress(found, kept) if not each.held)]


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
