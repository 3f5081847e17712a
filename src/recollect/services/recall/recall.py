"""Recall: find what fits a question in four sources, and rank it together.

The sources are asked one after the other on the caller's thread, in one read transaction. The database drivers stop a
source that takes too long (see `recollect.deadline.limit_reads`). A source that fails or runs out of time is named in
the answer, and the others' answers stand. Only an embedder that may hang gets a thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from time import monotonic
from typing import NamedTuple

from recollect.caller import current_caller
from recollect.deadline import limit_reads
from recollect.errors import Invalid, RecollectError, SchemaMismatch, StoreError, StoreTimeout, TimedOut
from recollect.model import Hit, Kind, Owner, Recalled, Source, Unanswered
from recollect.policy.memories.trust import Judge
from recollect.policy.names import memory_seq
from recollect.policy.numbers import check_whole
from recollect.policy.recall import purposes, ranking
from recollect.policy.recall import ranking as merging
from recollect.policy.recall.purposes import Purpose
from recollect.policy.text import check_text
from recollect.ports import Clock, Store, Vector
from recollect.services.background.embedding import Embedding
from recollect.services.background.workers import Workers
from recollect.services.memories.loop_guard import LoopGuard
from recollect.services.recall.marks import RetrievalMarks
from recollect.services.recall.question import Candidate, Question, RecallSource, SourceAnswer

MAX_LIMIT = 100
MAX_QUERY_CHARS = 10_000

EMBEDDER = "embedder"
EMBEDDER_SHARE = 0.75
"""Share of the deadline to wait for the question's vector before searching by words alone."""

RESERVED_SHARE = 0.1
"""Share of the time for reading that is kept for each source that has not been asked yet."""

WITH_MEANING = frozenset({Source.MEMORY, Source.KNOWLEDGE})
"""The sources that compare meanings, and so need the question's vector."""

EMBEDDER_LATE = Unanswered(
    source=EMBEDDER, reason="It did not answer in time, so memories and documents were searched by words alone."
)

Answers = dict[Source, SourceAnswer | RecollectError]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """A question and where to look for its answer."""

    query: str
    limit: int = 5
    kinds: Collection[Kind] | None = None  # asking for kinds means asking for memories
    sources: Collection[Source] | None = None
    purpose: Purpose | None = None
    as_of: datetime | None = None

    def list_sources(self) -> Sequence[Source]:
        """Return the sources to ask."""
        if self.purpose is not None:
            return [each for each in self.purpose.sources if self.sources is None or each in self.sources]
        return tuple(self.sources or ((Source.MEMORY,) if self.kinds is not None else Source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Everything the sources proposed, best first, before it is cut to the limit."""

    hits: Sequence[Hit]
    doubles: Mapping[str, str] = field(default_factory=dict)  # by id, the better hit that says the same
    unwanted: Collection[str] = ()  # ids that the purpose has no use for
    counted: Mapping[str, str] = field(default_factory=dict)  # by id, the hit of its agent that it is part of
    unanswered: Sequence[Unanswered] = ()


class Recall:
    """Asks the sources and ranks by the weighted sum of similarity, recency, importance and source."""

    def __init__(
        self,
        store: Store,
        sources: Sequence[RecallSource],
        embedding: Embedding,
        echoes: LoopGuard,
        retrieved: RetrievalMarks,
        judge: Judge,
        now: Clock,
        *,
        weights: Mapping[str, float],
        deadline: float,
    ) -> None:
        self._store = store
        self._sources = {source.name: source for source in sources}
        self._embedding = embedding
        self._echoes = echoes
        self._retrieved = retrieved
        self._judge = judge
        self._now = now
        self._weights = weights
        self._deadline = deadline
        self._workers = Workers()

    def __call__(self, owner: Owner, request: RecallRequest) -> Recalled:
        """Return the best hits, those that read like instructions last. Mark them as retrieved, and remember them as
        shown, so that they are recognised when an agent stores them again.

        Raises: Invalid; StoreError when no source could answer.
        """
        ranking = self.rank(owner, request, most=request.limit)
        best = ranking.hits[: request.limit]
        self._echoes.shown(owner, [hit.text for hit in best])
        if request.as_of is None:
            seqs = [memory_seq(hit.id) or 0 for hit in best if hit.source is Source.MEMORY]
            self._retrieved.mark(owner, seqs, self._now())
        return Recalled(best, ranking.unanswered, request.purpose.heading if request.purpose is not None else "")

    def rank(self, owner: Owner, request: RecallRequest, *, depth: int = 1, most: int | None = None) -> Ranking:
        """Rank what the sources propose, `depth` times as much as a recall looks at; return at most `most` hits.

        Raises: Invalid; StoreError when no source could answer.
        """
        until = monotonic() + self._deadline
        check_limit(request.limit)
        query, sources = check_query(request.query), request.list_sources()
        vector, is_embedder_late = None, False
        if WITH_MEANING.intersection(sources):
            vector, is_embedder_late = self._embed(query)
        question = Question(
            owner=owner,
            text=query,
            now=self._now() if request.as_of is None else request.as_of,
            is_past=request.as_of is not None,
            kinds=tuple(Kind) if request.kinds is None else request.kinds,
            limit=request.limit,
            agents=current_caller().agents,
            vector=vector,
        )
        depth *= 1 if request.purpose is None else purposes.DEPTH
        found, unanswered = self._sort_answers(self._ask(sources, question, depth=depth, until=until))
        if is_embedder_late:
            unanswered.append(EMBEDDER_LATE)
        return self._merge(found, question.now, request, unanswered, most=most)

    def close(self) -> None:
        """Let the embedder's threads end, without waiting for them."""
        self._workers.close()

    def _embed(self, query: str) -> tuple[Vector | None, bool]:
        """Return the question's vector, and True if the embedder did not answer in time.

        Raises: SchemaMismatch.
        """
        if not self._embedding.may_hang:
            return self._embedding.of_query(query), False
        embedding = self._workers.submit(partial(self._embedding.of_query, query))
        try:
            return embedding.result(self._deadline * EMBEDDER_SHARE), False
        except TimeoutError:
            return None, True

    def _ask(self, names: Sequence[Source], question: Question, *, depth: int, until: float) -> Answers:
        """Ask the sources in turn, each until `until` less what is kept for those after it.

        Raises: SchemaMismatch.
        """
        answers: Answers = {}
        reserved = RESERVED_SHARE * (until - monotonic())

        def seconds_for(place: int) -> float:
            return until - monotonic() - reserved * (len(names) - 1 - place)

        def ask_all() -> None:
            for place, name in enumerate(names):
                try:
                    with limit_reads(seconds_for(place)):
                        answers[name] = self._sources[name].find(question, depth=depth)
                except (SchemaMismatch, TimedOut):
                    # With a wrong schema every other answer would be wrong too, and a request that is over needs none.
                    raise
                except RecollectError as error:
                    answers[name] = error

        try:
            with limit_reads(seconds_for(0)):
                self._store.read_together(question.owner.tenant, ask_all)
        except SchemaMismatch:
            raise
        except StoreError as error:
            # There was no connection, or it broke. Answers that came before stand.
            for name in names:
                answers.setdefault(name, error)
        return answers

    def _sort_answers(self, answers: Answers) -> tuple[dict[Source, SourceAnswer], list[Unanswered]]:
        """Tell what was found from what did not answer, and why.

        Raises: RecollectError when nothing was found because sources failed.
        """
        found: dict[Source, SourceAnswer] = {}
        unanswered, failures = list[Unanswered](), list[RecollectError]()
        for name, answer in answers.items():
            if isinstance(answer, SourceAnswer):
                found[name] = answer
            elif isinstance(answer, StoreTimeout):
                unanswered.append(Unanswered(source=name, reason=f"It did not answer within {self._deadline:g} s."))
            else:
                failures.append(answer)
                unanswered.append(Unanswered(source=name, reason=str(answer)))
        if failures and not found:
            raise failures[0]
        return found, unanswered

    def _merge(
        self,
        found: Mapping[Source, SourceAnswer],
        now: datetime,
        request: RecallRequest,
        unanswered: Sequence[Unanswered],
        *,
        most: int | None,
    ) -> Ranking:
        """Merge what all sources found into one list, without doubles and without what the purpose has no use for."""
        purpose = request.purpose
        weights = self._weights if purpose is None else purpose.weights
        scales = merging.source_scales({name: each.strength for name, each in found.items() if each.candidates})
        proposed = [(each, scales[name]) for name, answer in found.items() for each in answer.candidates]
        wanted = [pair for pair in proposed if purpose is None or purposes.is_relevant(purpose, pair[0].facts())]
        scored = [_Scored.of(each, scale, now, weights) for each, scale in wanted]
        scored.sort(key=lambda each: (-each.score, -each.candidate.seq))
        # Doing the same twice counts twice.
        is_counted = purpose is not None and purpose.by_agent

        def take_best(most: int | None) -> tuple[Sequence[int], Mapping[int, int], Sequence[Hit]]:
            hashes = (each.candidate.id if is_counted else each.candidate.content_hash for each in scored)
            singles, doubles = merging.drop_duplicates(hashes, most=most)
            return singles, doubles, [scored[each].hit(weights, self._judge) for each in singles]

        singles, doubles, hits = take_best(most if purpose is None else None)
        if any(map(purposes.is_unverified, hits)):
            # Unverified hits only get the places that all others leave.
            singles, doubles, hits = take_best(None)
            hits = sorted(hits, key=purposes.is_unverified)
        counted: Mapping[str, str] = {}
        if purpose is not None:
            candidates = [scored[each].candidate for each in singles]
            failed = {each.id for each in candidates if purposes.is_failure(each.facts())}
            hits, counted = purposes.arrange_hits(purpose, hits, failed, limit=request.limit)
        kept = {each.id for each, _ in wanted}
        return Ranking(
            hits=hits,
            doubles={scored[each].candidate.id: scored[first].candidate.id for each, first in doubles.items()},
            unwanted=[each.id for each, _ in proposed if each.id not in kept] if purpose is not None else (),
            counted=counted,
            unanswered=unanswered,
        )


class _Scored(NamedTuple):
    """A candidate and its score. Few candidates become hits, so the hit is made on demand."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float]

    @classmethod
    def of(cls, candidate: Candidate, scale: float, now: datetime, weights: Mapping[str, float]) -> _Scored:
        parts = {
            "similarity": candidate.similarity * scale,
            "recency": ranking.recency(candidate.created_at, now=now),
            "importance": candidate.importance,
            "source": ranking.SOURCE_PRIORITY[candidate.source],
        }
        return cls(candidate, ranking.weighted_sum(parts, weights), parts)

    def hit(self, weights: Mapping[str, float], judge: Judge) -> Hit:
        candidate, memory = self.candidate, self.candidate.memory
        return Hit(
            source=candidate.source,
            id=candidate.id,
            text=candidate.text,
            score=self.score,
            parts=self.parts,
            weights=weights,
            created_at=candidate.created_at,
            memory=None if memory is None else judge(memory),
            document=candidate.document,
            agent_id=candidate.agent_id,
        )


def check_query(query: str) -> str:
    """Raises: Invalid."""
    query = check_text(query, what="query").strip()
    if not query:
        raise Invalid("The query is blank; say what to look for.")
    return query[:MAX_QUERY_CHARS]


def check_limit(limit: object, *, most: int = MAX_LIMIT) -> int:
    """Raises: Invalid."""
    return check_whole(limit, "The limit", least=1, most=most)


def parse_sources(names: Collection[str] | None) -> Sequence[Source] | None:
    """Return the sources of these names; None means all of them.

    Raises: Invalid.
    """
    if names is None:
        return None
    if isinstance(names, str):
        raise Invalid("The sources are a list of names.")
    known = {each.value: each for each in Source}
    for name in names:
        if name not in known:
            raise Invalid(f"There is no source {str(name)[:40]!r}; choose among {', '.join(known)}.")
    if not names:
        raise Invalid(f"Name at least one source: {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(names)]
