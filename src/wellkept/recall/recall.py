"""Recall: search memories, documents, the audit log and workflow steps, and merge the results into one ranking.

The sources are searched in sequence on the caller's thread, in one read transaction if the store supports it. The
database drivers interrupt a source that takes too long (see `wellkept.deadline.limit_reads`). A source that times out
or fails, for whatever reason, is listed in the result, and the results of the others are kept. Only an embedder that
may hang runs on a separate thread, so that the search can continue without it.

Retrieval marks record that memories were recalled, without delaying the recall. They are queued and written in batches
by a thread; reads of a memory include its queued mark. A crash loses the marks of the last second, and those memories
fade a little sooner. A mark also moves the end of an episode, and of an item whose life a reading extends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Unpack

from wellkept.caller import current_caller
from wellkept.deadline import limit_reads
from wellkept.errors import Invalid, SchemaMismatch, StoreError, StoreTimeout, TimedOut, WellkeptError
from wellkept.language.names import memory_seq
from wellkept.language.values import check_limit, check_min_relevance, check_query
from wellkept.memory.rules_filters import MemoryFilters, check_filters
from wellkept.memory.rules_items import end_of
from wellkept.memory.rules_kinds import check_kind, check_moment
from wellkept.memory.rules_lifetime import LIFETIMES, Lifetimes
from wellkept.meter import METER
from wellkept.model import BackgroundStatus, Kind, KindName, Memory, Owner, Recalled, Source, SourceName, Unanswered
from wellkept.model.stored import Vector
from wellkept.recall.rules_question import asks_history
from wellkept.recall.rules_ranking import (
    DEPTH,
    Candidate,
    Question,
    Ranking,
    RecallRequest,
    check_purpose,
    keep_user_sources,
    merge_candidates,
)
from wellkept.recall.sources import Sources
from wellkept.shared import Shared
from wellkept.store import is_postgres
from wellkept.upkeep.background import Queue, Turns, Workers

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_MARKS = 100_000
"""Maximum number of queued marks; beyond it, the marks of whole agents are dropped, the oldest first."""


@dataclass(frozen=True, slots=True)
class _Queued:
    """Queued marks of an agent: when each memory was recalled last, and the recalls of each day."""

    times: Mapping[int, datetime]
    recalls: Mapping[date, int]

    def join(self, newer: _Queued) -> _Queued:
        days = {day: self.recalls.get(day, 0) + newer.recalls.get(day, 0) for day in {**self.recalls, **newer.recalls}}
        return _Queued({**self.times, **newer.times}, days)


class RetrievalMarks:
    """Queue of retrieval marks, and of the number of recalls."""

    def __init__(self, store: SqlStore, *, unmarked: Collection[Kind] = (), lifetimes: Lifetimes = LIFETIMES) -> None:
        """Set up the queue; `unmarked` are kinds in a storage that cannot hold a mark."""
        self._store = store
        self._lifetimes = lifetimes
        self._unmarked = frozenset(unmarked)
        self._writer = Queue[Owner, _Queued](
            self._write,
            merge=_Queued.join,
            name="retrieved",
            failed="Recalled memories could not be marked as such",
            size=lambda queued: len(queued.times) + 1,
            max_size=MAX_MARKS,
        )

    def mark(self, owner: Owner, seqs: Sequence[int], at: datetime, *, recalls: int = 0) -> None:
        """Queue marks for recalled memories, count the recalls, and return at once."""
        if seqs or recalls:
            days = {at.astimezone(UTC).date(): recalls} if recalls else {}
            self._writer.add(owner.whole, _Queued(dict.fromkeys(seqs, at), days))

    def apply(self, owner: Owner, memories: Sequence[Memory]) -> Sequence[Memory]:
        """Return the memories with their queued marks applied."""
        queued = self._writer.peek(owner.whole)
        if queued is None:
            return memories
        return [self._apply_mark(memory, queued.times.get(memory_seq(memory.id) or 0)) for memory in memories]

    def flush(self, tenant: str | None = None) -> None:
        """Write the queued marks of one tenant or of all; marks that cannot be written stay queued."""
        self._writer.flush(lambda owner: tenant in (None, owner.tenant))

    def status(self) -> BackgroundStatus:
        """Return the state of the queue."""
        return self._writer.status()

    def close(self) -> None:
        """Write the queued marks and stop the thread.

        Raises: StoreError.
        """
        self._writer.close()

    def _write(self, owner: Owner, queued: _Queued) -> None:
        for at, seqs in _group_by_second(queued.times):
            self._store.mark_retrieved(owner, seqs, at=at, lifetimes=self._lifetimes)
        # Last: marks may be written again if this fails, but no recall is counted twice.
        if queued.recalls:
            self._store.count_recalls(owner, queued.recalls)

    def _apply_mark(self, memory: Memory, at: datetime | None) -> Memory:
        if at is None or memory.kind in self._unmarked:
            return memory
        known, end = memory.last_retrieved_at, memory.expires_at
        if known is not None and known >= at:
            return memory
        # The item was alive when it was read, even if the mark of an earlier reading is not stored yet.
        if end is not None and (until := end_of(at, memory.ttl_seconds)) is not None:
            end = max(end, until)
        return replace(memory, last_retrieved_at=at, expires_at=end)


def _group_by_second(times: Mapping[int, datetime]) -> Iterator[tuple[datetime, Sequence[int]]]:
    """Group marks by second, each group with its latest time.

    Otherwise, a hundred recalls in a second would be a hundred transactions.
    """
    seconds: dict[int, list[int]] = {}
    for seq, at in times.items():
        seconds.setdefault(int(at.timestamp()), []).append(seq)
    for seqs in seconds.values():
        yield max(times[seq] for seq in seqs), seqs


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

UNEXPECTED = "It failed unexpectedly; the log of the program says why."

PARTS = ("similarity", "recency", "importance", "source")
"""Parts of a score that have a weight in the settings."""

log = logging.getLogger("wellkept")


class Recall:
    """Service that searches the sources and ranks by a weighted sum of similarity, recency, importance and source."""

    def __init__(self, shared: Shared, *, on_recall: Callable[[], None]) -> None:
        self._store, self._embedding, self._now, self._judge = shared.store, shared.embedding, shared.now, shared.judge
        self._loop_guard, self._retrieval_marks = shared.loop_guard, shared.retrieval_marks
        self._on_recall = on_recall
        settings = shared.settings
        # Recalls of a store in this process only compute.
        self._take_turn = nullcontext if is_postgres(settings.store_url) else Turns().take
        self._weights = {name: getattr(settings, f"weight_{name}") for name in PARTS}
        self._deadline = settings.recall_deadline
        self._sources = Sources(shared.store, shared.judge).by_name
        self._workers = Workers()

    def __call__(self, owner: Owner, query: str, **options: Any) -> Recalled:
        """Return the best hits; those that read like instructions come last. The options are those of `build_request`.

        The texts are recorded in the loop guard, which recognises them if the agent stores them again. Recalled
        memories are marked as retrieved, unless the request is about the past.

        Raises: Invalid; WellkeptError when every source failed, but not when all of them timed out.
        """
        request = build_request(query, **options)
        ranked = self.rank(owner, request, most=request.limit)
        best = ranked.hits[: request.limit]
        self._loop_guard.note_shown(owner, [hit.text for hit in best])
        recalled = [hit for hit in best if hit.source is Source.MEMORY and request.as_of is None]
        self._retrieval_marks.mark(owner, [memory_seq(hit.id) or 0 for hit in recalled], self._now(), recalls=1)
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
        check_min_relevance(request.min_relevance)
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
            answer_vector=self._embedding.move_to_answer(vector),
            where=request.where,
            # Purposes choose among the events themselves.
            with_bookkeeping=request.sources is not None or request.purpose is not None or asks_history(query),
        )
        depth *= 1 if request.purpose is None else DEPTH
        with self._take_turn():
            # An embedder that had to be loaded, or others that came first, may have used up the time.
            until = max(until, monotonic() + (1 - EMBEDDER_SHARE) * self._deadline)
            found, unanswered = self._search(sources, question, depth=depth, until=until)
            if is_embedder_late:
                unanswered.append(EMBEDDER_LATE)
            return merge_candidates(
                found,
                question.now,
                request,
                weights=self._weights,
                judge=self._judge,
                unanswered=unanswered,
                most=most,
            )

    def close(self) -> None:
        """Stop the embedder's threads without waiting for them."""
        self._workers.close()

    def _embed(self, owner: Owner, query: str) -> tuple[Vector | None, bool]:
        """Return the question's vector, if there is one, and True if the embedder did not answer in time.

        What was stored a moment ago is embedded, too. The question comes first with a local embedder: it may have to be
        loaded, which is not to use up the time for the others.

        Raises: SchemaMismatch.
        """
        vector = None if self._embedding.may_hang else self._embedding.of_query(query)
        seconds = self._deadline * MISSING_SHARE
        with limit_reads(seconds):
            is_missing = self._embedding.is_missing(owner)
        if is_missing:
            with suppress(TimeoutError):  # it goes on without us
                self._workers.submit(partial(self._embedding.embed_missing, owner, seconds)).result(2 * seconds)
        if not self._embedding.may_hang:
            return vector, False
        embedding = self._workers.submit(partial(self._embedding.of_query, query))
        try:
            return embedding.result(self._deadline * EMBEDDER_SHARE), False
        except TimeoutError:
            return None, True

    def _search(
        self, names: Sequence[Source], question: Question, *, depth: int, until: float
    ) -> tuple[dict[Source, Sequence[Candidate]], list[Unanswered]]:
        """Search the sources in sequence until the time `until`, reserving some of it for those that follow.

        Raises: SchemaMismatch; TimedOut, Cancelled when the request itself is over; the first failure when no source
        answered and at least one failed for another reason than its timeout.
        """
        found, failed = dict[Source, Sequence[Candidate]](), dict[Source, Exception]()
        reserved = RESERVED_SHARE * (until - monotonic())

        def seconds_for(position: int) -> float:
            # Time left, less the reserve of every source after this one.
            return until - monotonic() - reserved * (len(names) - 1 - position)

        def search_all() -> None:
            for position, name in enumerate(names):
                began = monotonic()
                try:
                    with limit_reads(seconds_for(position)):
                        found[name] = self._sources[name](question, depth)
                except (SchemaMismatch, TimedOut):
                    # A wrong schema affects every source, and a request that is over needs no answer.
                    raise
                except WellkeptError as error:
                    failed[name] = error
                except Exception as error:
                    # A defect of one source must not take the answers of the others with it.
                    log.exception("The recall source %s failed unexpectedly", name.value)
                    failed[name] = error
                METER.get().time_source(name.value, monotonic() - began, has_answered=name in found)

        try:
            with limit_reads(seconds_for(0)):
                self._store.read_together(question.owner.tenant, search_all)
        except SchemaMismatch:
            raise
        except StoreError as error:
            # No connection, or it broke: keep the answers that arrived before.
            failed |= {name: error for name in names if name not in found and name not in failed}
        if not found:
            for failure in failed.values():
                if not isinstance(failure, StoreTimeout):
                    raise failure
        return found, [Unanswered(source=name, reason=self._describe(failure)) for name, failure in failed.items()]

    def _describe(self, failure: Exception) -> str:
        if isinstance(failure, StoreTimeout):
            return f"It did not answer within {self._deadline:g} s."
        return str(failure) if isinstance(failure, WellkeptError) else UNEXPECTED


def build_request(
    query: str,
    *,
    limit: int = 5,
    kinds: Collection[KindName] | None = None,
    sources: Collection[SourceName] | None = None,
    purpose: str | None = None,
    as_of: datetime | None = None,
    min_relevance: float | None = None,
    **filters: Unpack[MemoryFilters],
) -> RecallRequest:
    """Check the options of a recall. Raises: Invalid."""
    return RecallRequest(
        query=query,
        limit=limit,
        kinds=None if kinds is None else tuple(check_kind(kind) for kind in kinds),
        sources=parse_sources(sources),
        purpose=check_purpose(purpose),
        as_of=None if as_of is None else check_moment(as_of, "as_of"),
        min_relevance=min_relevance,
        where=check_filters(**filters),
    )


def parse_sources(names: Collection[str] | None) -> Sequence[Source] | None:
    """Look up sources by name; None stays None, for the default.

    Raises: Invalid.
    """
    if names is None:
        return None
    known = {each.value: each for each in Source}
    for name in names:
        if name not in known:
            raise Invalid(f"There is no source {str(name)[:40]!r}; choose among {', '.join(known)}.")
    if not names:
        raise Invalid(f"Name at least one source: {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(names)]
