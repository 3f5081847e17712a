"""Recall: search memories, documents, the audit log and workflow steps, and merge the results into one ranking.

The sources are searched in sequence on the caller's thread, in one read transaction if the store supports it. The
database drivers interrupt a source that takes too long (see `wellkept.deadline.limit_reads`). A source that fails or
times out is listed in the result, and the results of the others are kept. Only an embedder that may hang runs on a
separate thread, so that the search can continue without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import field
from datetime import datetime, timedelta
from functools import partial
from itertools import compress
from time import monotonic
from typing import NamedTuple

from wellkept.caller import current_caller
from wellkept.deadline import limit_reads
from wellkept.errors import Invalid, SchemaMismatch, StoreError, StoreTimeout, TimedOut, WellkeptError
from wellkept.lazy import dataclass
from wellkept.meter import METER
from wellkept.model import Hit, Kind, Owner, Recalled, Source, Unanswered
from wellkept.policy.filters.conditions import Condition
from wellkept.policy.memories.importance import is_small_talk
from wellkept.policy.memories.trust import Judge
from wellkept.policy.names import memory_seq
from wellkept.policy.numbers import check_whole
from wellkept.policy.recall import purposes, ranking
from wellkept.policy.recall.calibration import keep_relevant
from wellkept.policy.recall.purposes import Purpose
from wellkept.policy.recall.question import asks_history
from wellkept.policy.text import check_text
from wellkept.ports import Clock, Store, Vector
from wellkept.services.background.embedding import Embedding
from wellkept.services.background.workers import Turns, Workers
from wellkept.services.memories.loop_guard import LoopGuard
from wellkept.services.recall.marks import RetrievalMarks
from wellkept.services.recall.question import Candidate, Question, RecallSource, SourceAnswer, keep_user_sources

MAX_LIMIT = 100
MIN_SCORE = "`min_score` is a number from 0 (no limit) to 1."
MAX_QUERY_CHARS = 10_000

EMBEDDER = "embedder"
MISSING_SHARE = 0.15
"""Share of the deadline in which a recall first embeds the latest texts; it waits up to twice as long for them."""

EMBEDDER_SHARE = 0.75
"""Share of the deadline to wait for the question's vector. The rest is left for a search by words alone."""

RESERVED_SHARE = 0.1
"""Share of the reading time reserved for each source still to be searched, so that a slow one cannot use it all."""

WITH_MEANING = frozenset({Source.MEMORY, Source.KNOWLEDGE})
"""Sources that search by meaning and therefore need the question's vector."""

EMBEDDER_LATE = Unanswered(
    source=EMBEDDER, reason="It did not answer in time, so memories and documents were searched by words alone."
)

Answers = dict[Source, SourceAnswer | WellkeptError]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """Parameters of a recall."""

    query: str
    limit: int = 5
    kinds: Collection[Kind] | None = None  # without `sources` and `purpose`, also limits the search to memories
    sources: Collection[Source] | None = None
    purpose: Purpose | None = None
    as_of: datetime | None = None
    where: Condition | None = None  # limits the search to memories, as `kinds` does
    keeps_sources: bool = False  # `where` filters memories, and the other sources are searched, too
    min_score: float | None = None  # least similarity of each hit; None: by the floor; 0: no limit
    floor: float | None = None  # least similarity of the best hit of a source; None: the setting `recall_floor`
    keeps_duplicates: bool = False  # return hits with equal texts, too
    is_asking: bool = False  # known to be no small talk, for which nothing is recalled

    def list_sources(self) -> Sequence[Source]:
        """Return the sources to search."""
        if self.purpose is not None:
            return [each for each in self.purpose.sources if self.sources is None or each in self.sources]
        is_filtered = self.kinds is not None or (self.where is not None and not self.keeps_sources)
        return tuple(self.sources or ((Source.MEMORY,) if is_filtered else Source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Ranked candidates of all sources, best first, before they are cut to the limit."""

    hits: Sequence[Hit]
    duplicates: Mapping[str, str] = field(default_factory=dict)  # by id of a duplicate: the better hit
    unwanted: Collection[str] = ()  # ids rejected by the filter of the purpose
    below: Mapping[str, Candidate] = field(default_factory=dict)  # candidates below the floor by id, best first
    floor: float = 0.0  # least similarity of the best hit
    counted: Mapping[str, str] = field(default_factory=dict)  # by id of a merged hit: its agent's hit
    unanswered: Sequence[Unanswered] = ()


class Recall:
    """Service that searches the sources and ranks by a weighted sum of similarity, recency, importance and source."""

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
        floor: float,
        half_life: timedelta,
        deadline: float,
        is_embedded: bool = False,
        on_recall: Callable[[], None] = lambda: None,
    ) -> None:
        """Set up the service; `is_embedded` means that the store runs in this process, so that recalls only compute."""
        self._take_turn = Turns().take if is_embedded else nullcontext
        self._on_recall = on_recall
        self._store = store
        self._sources = {source.name: source for source in sources}
        self._embedding = embedding
        self._echoes, self._retrieved = echoes, retrieved
        self._judge = judge
        self._now = now
        self._weights, self._floor = weights, floor
        self._half_life, self._deadline = half_life, deadline
        self._workers = Workers()

    def __call__(self, owner: Owner, request: RecallRequest) -> Recalled:
        """Return the best hits; those that read like instructions come last.

        The texts are recorded in the loop guard, which recognises them if the agent stores them again. Recalled
        memories are marked as retrieved, unless the request is about the past.

        Raises: Invalid; WellkeptError when every source failed, but not when all of them timed out.
        """
        ranked = self.rank(owner, request, most=request.limit)
        best = ranked.hits[: request.limit]
        self._echoes.shown(owner, [hit.text for hit in best])
        recalled = [hit for hit in best if hit.source is Source.MEMORY and request.as_of is None]
        self._retrieved.mark(owner, [memory_seq(hit.id) or 0 for hit in recalled], self._now(), recalls=1)
        self._on_recall()
        METER.get().count_recall("recall", is_empty=not best)
        return Recalled(best, ranked.unanswered, request.purpose.heading if request.purpose is not None else "")

    def rank(self, owner: Owner, request: RecallRequest, *, depth: int = 1, most: int | None = None) -> Ranking:
        """Search the sources and rank their candidates, `depth` times as many as usual.

        `most` is the number of hits the caller needs. Ranking may stop there, but returns all hits if it has to reorder
        them for a purpose or because some of them read like instructions.

        Raises: Invalid; Forbidden when a user's view asks for a source of no user; WellkeptError when every source
        failed, but not when all of them timed out.
        """
        until = monotonic() + self._deadline
        check_limit(request.limit)
        check_min_score(request.min_score)
        query, sources = check_query(request.query), request.list_sources()
        if owner.user:
            sources = keep_user_sources(sources, request.sources)
        vector, is_embedder_late = None, False
        if WITH_MEANING.intersection(sources):
            began = monotonic()
            vector, is_embedder_late = self._embed(owner, query)
            METER.get().time_source(EMBEDDER, monotonic() - began, has_answered=not is_embedder_late)
        question = Question(
            owner=owner,
            text=query,
            now=self._now() if request.as_of is None else request.as_of,
            is_past=request.as_of is not None,
            kinds=tuple(Kind) if request.kinds is None else request.kinds,
            limit=request.limit,
            agents=current_caller().agents,
            vector=vector,
            where=request.where,
            # Purposes choose among the events themselves.
            with_bookkeeping=request.sources is not None or request.purpose is not None or asks_history(query),
        )
        depth *= 1 if request.purpose is None else purposes.DEPTH
        with self._take_turn():
            found, unanswered = self._split_answers(self._search(sources, question, depth=depth, until=until))
            if is_embedder_late:
                unanswered.append(EMBEDDER_LATE)
            return self._merge(found, question.now, request, unanswered, most=most)

    def close(self) -> None:
        """Stop the embedder's threads without waiting for them."""
        self._workers.close()

    def _embed(self, owner: Owner, query: str) -> tuple[Vector | None, bool]:
        """Return the question's vector, if there is one, and True if the embedder did not answer in time.

        What was stored a moment ago is embedded first.

        Raises: SchemaMismatch.
        """
        if self._embedding.is_missing(owner):
            seconds = self._deadline * MISSING_SHARE
            with suppress(TimeoutError):  # it goes on without us
                self._workers.submit(partial(self._embedding.embed_missing, owner, seconds)).result(2 * seconds)
        if not self._embedding.may_hang:
            return self._embedding.of_query(query), False
        embedding = self._workers.submit(partial(self._embedding.of_query, query))
        try:
            return embedding.result(self._deadline * EMBEDDER_SHARE), False
        except TimeoutError:
            return None, True

    def _search(self, names: Sequence[Source], question: Question, *, depth: int, until: float) -> Answers:
        """Search the sources in sequence until the time `until`, reserving some of it for those that follow.

        Raises: SchemaMismatch; TimedOut, Cancelled when the request itself is over.
        """
        answers: Answers = {}
        reserved = RESERVED_SHARE * (until - monotonic())

        def seconds_for(position: int) -> float:
            # Time left, less the reserve of every source after this one.
            return until - monotonic() - reserved * (len(names) - 1 - position)

        def search_all() -> None:
            for position, name in enumerate(names):
                began = monotonic()
                try:
                    with limit_reads(seconds_for(position)):
                        answers[name] = self._sources[name].find(question, depth=depth)
                except (SchemaMismatch, TimedOut):
                    # A wrong schema affects every source, and a request that is over needs no answer.
                    raise
                except WellkeptError as error:
                    answers[name] = error
                has_answered = isinstance(answers[name], SourceAnswer)
                METER.get().time_source(name.value, monotonic() - began, has_answered=has_answered)

        try:
            with limit_reads(seconds_for(0)):
                self._store.read_together(question.owner.tenant, search_all)
        except SchemaMismatch:
            raise
        except StoreError as error:
            # No connection, or it broke: keep the answers that arrived before.
            for name in names:
                answers.setdefault(name, error)
        return answers

    def _split_answers(self, answers: Answers) -> tuple[dict[Source, SourceAnswer], list[Unanswered]]:
        """Split answers into results and failures, with the reason of each failure.

        Raises: WellkeptError when no source answered and at least one failed for another reason than its timeout.
        """
        found: dict[Source, SourceAnswer] = {}
        unanswered, failures = list[Unanswered](), list[WellkeptError]()
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
        """Merge the candidates of all sources into one ranking; leave out duplicates and those outside the purpose."""
        purpose = request.purpose
        weights = self._weights if purpose is None else purpose.weights
        floor, is_strict = (request.min_score, True) if request.min_score is not None else (request.floor, False)
        floor = self._floor if floor is None else floor
        if request.min_score is None and floor and not request.is_asking and is_small_talk(request.query):
            # "Thanks, that's all" asks for nothing.
            floor = 1.0
        proposed, below = list[Candidate](), dict[str, Candidate]()
        for answer in found.values():
            kept = keep_relevant([each.similarity for each in answer.candidates], floor=floor, is_strict=is_strict)
            proposed += compress(answer.candidates, kept)
            below |= {each.id: each for each, is_kept in zip(answer.candidates, kept, strict=True) if not is_kept}
        is_wanted = [purpose is None or purposes.is_relevant(purpose, each.facts()) for each in proposed]
        relevant = list(compress(proposed, is_wanted))
        scored = [_Scored.of(each, now, weights, self._half_life) for each in relevant]
        # Ties go to the newest memory.
        scored.sort(key=lambda each: (each.score, each.candidate.seq), reverse=True)
        if len({each.source for each in relevant}) > 1:
            texts = [(each.candidate.content_hash, each.candidate.source) for each in scored]
            scored = [scored[place] for place in ranking.order_equal_texts(texts)]
        # A success rate counts every run, so runs with the same text are not duplicates.
        keeps_duplicates = request.keeps_duplicates or (purpose is not None and purpose.by_agent)

        def take_best(most: int | None) -> tuple[Sequence[int], Mapping[int, int], Sequence[Hit]]:
            hashes = (each.candidate.id if keeps_duplicates else each.candidate.content_hash for each in scored)
            distinct, duplicates = ranking.drop_duplicates(hashes, most=most)
            return distinct, duplicates, [scored[each].to_hit(weights, self._judge) for each in distinct]

        distinct, duplicates, hits = take_best(most if purpose is None else None)
        if any(map(purposes.is_unverified, hits)):
            # Unverified hits rank below all others, so take the whole list before sorting.
            distinct, duplicates, hits = take_best(None)
            hits = sorted(hits, key=purposes.is_unverified)
        counted: Mapping[str, str] = {}
        if purpose is not None:
            candidates = [scored[each].candidate for each in distinct]
            failed = {each.id for each in candidates if purposes.is_failure(each.facts())}
            hits, counted = purposes.arrange_hits(purpose, hits, failed, limit=request.limit)
        return Ranking(
            hits=hits,
            duplicates={scored[each].candidate.id: scored[first].candidate.id for each, first in duplicates.items()},
            unwanted=[each.id for each, is_kept in zip(proposed, is_wanted, strict=True) if not is_kept],
            below=below,
            floor=floor,
            counted=counted,
            unanswered=unanswered,
        )


class _Scored(NamedTuple):
    """Candidate with its score. Few candidates become hits, so a hit is built on demand."""

    candidate: Candidate
    score: float
    recency: float

    @classmethod
    def of(cls, candidate: Candidate, now: datetime, weights: Mapping[str, float], half_life: timedelta) -> _Scored:
        recency = ranking.recency(candidate.created_at, now=now, half_life=half_life)
        score = ranking.score(candidate.similarity, recency, candidate.importance, candidate.source, weights)
        return cls(candidate, score, recency)

    def to_hit(self, weights: Mapping[str, float], judge: Judge) -> Hit:
        candidate, memory = self.candidate, self.candidate.memory
        parts = ranking.score_parts(
            candidate.similarity, recency=self.recency, importance=candidate.importance, source=candidate.source
        )
        return Hit(
            source=candidate.source,
            id=candidate.id,
            text=candidate.text,
            score=self.score,
            parts=parts,
            weights=weights,
            created_at=candidate.created_at,
            memory=None if memory is None else judge(memory),
            document=candidate.document,
            agent_id=candidate.agent_id,
        )


def check_query(query: str) -> str:
    """Return a query without surrounding white space, cut to `MAX_QUERY_CHARS`. Raises: Invalid."""
    query = check_text(query, what="query").strip()
    if not query:
        raise Invalid("The query is blank; say what to look for.")
    return query[:MAX_QUERY_CHARS]


def check_limit(limit: object, *, most: int = MAX_LIMIT) -> int:
    """Return a limit if it is a whole number from 1 to `most`. Raises: Invalid."""
    return check_whole(limit, "The limit", least=1, most=most)


def check_min_score(min_score: object) -> float | None:
    """Return a least similarity if it is None or a number from 0 to 1.

    Raises: Invalid.
    """
    if min_score is None:
        return None
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0 <= min_score <= 1:
        raise Invalid(MIN_SCORE)
    return float(min_score)


def parse_min_score(text: str) -> float | None:
    """Parse a least similarity from a form; None if it is left empty.

    Raises: Invalid.
    """
    try:
        least = float(text) if text.strip() else None
    except ValueError:
        raise Invalid(MIN_SCORE) from None
    return check_min_score(least)
