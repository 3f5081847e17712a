"""Recall: search memories, documents, the audit log and workflow steps, and merge the results into one ranking.

The sources are searched in sequence on the caller's thread, in one read transaction if the store supports it. The
database drivers interrupt a source that takes too long (see `wellkept.deadline.limit_reads`). A source that times out
or fails, for whatever reason, is listed in the result, and the results of the others are kept. Only an embedder that
may hang runs on a separate thread, so that the search can continue without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from wellkept.caller import current_caller
from wellkept.deadline import limit_reads
from wellkept.errors import Invalid, SchemaMismatch, StoreError, StoreTimeout, TimedOut, WellkeptError
from wellkept.extension import Clock
from wellkept.language.names import memory_seq
from wellkept.language.values import check_whole
from wellkept.memory.loop_guard import LoopGuard
from wellkept.memory.rules_trust import Judge
from wellkept.meter import METER
from wellkept.model import Kind, Owner, Recalled, Source, Unanswered
from wellkept.model.stored import Vector
from wellkept.recall import rules_purposes as purposes
from wellkept.recall.marks import RetrievalMarks
from wellkept.recall.merging import Formula, Ranking, merge_candidates
from wellkept.recall.question import Question, RecallRequest, RecallSource, SourceAnswer, keep_user_sources
from wellkept.recall.rules_question import asks_history
from wellkept.upkeep.embedding import Embedding
from wellkept.upkeep.workers import Turns, Workers

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_LIMIT = 100
MIN_RELEVANCE = "`min_relevance` is a number from 0 (everything) to 1."
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

UNEXPECTED = "It failed unexpectedly; the log of the program says why."

Answers = dict[Source, SourceAnswer | Exception]

log = logging.getLogger("wellkept")


class Recall:
    """Service that searches the sources and ranks by a weighted sum of similarity, recency, importance and source."""

    def __init__(
        self,
        store: SqlStore,
        sources: Sequence[RecallSource],
        embedding: Embedding,
        loop_guard: LoopGuard,
        retrieval_marks: RetrievalMarks,
        judge: Judge,
        now: Clock,
        *,
        weights: Mapping[str, float],
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
        self._loop_guard, self._retrieval_marks = loop_guard, retrieval_marks
        self._formula = Formula(weights, judge)
        self._now = now
        self._deadline = deadline
        self._workers = Workers()

    def __call__(self, owner: Owner, request: RecallRequest) -> Recalled:
        """Return the best hits; those that read like instructions come last.

        The texts are recorded in the loop guard, which recognises them if the agent stores them again. Recalled
        memories are marked as retrieved, unless the request is about the past.

        Raises: Invalid; WellkeptError when every source failed, but not when all of them timed out.
        """
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
        depth *= 1 if request.purpose is None else purposes.DEPTH
        with self._take_turn():
            # An embedder that had to be loaded, or others that came first, may have used up the time.
            until = max(until, monotonic() + (1 - EMBEDDER_SHARE) * self._deadline)
            found, unanswered = self._split_answers(self._search(sources, question, depth=depth, until=until))
            if is_embedder_late:
                unanswered.append(EMBEDDER_LATE)
            return merge_candidates(found, question.now, request, self._formula, unanswered=unanswered, most=most)

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
                except Exception as error:
                    # A defect of one source must not take the answers of the others with it.
                    log.exception("The recall source %s failed unexpectedly", name.value)
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

        Raises: the first failure when no source answered and at least one failed for another reason than its timeout.
        """
        found: dict[Source, SourceAnswer] = {}
        unanswered, failures = list[Unanswered](), list[Exception]()
        for name, answer in answers.items():
            if isinstance(answer, SourceAnswer):
                found[name] = answer
            elif isinstance(answer, StoreTimeout):
                unanswered.append(Unanswered(source=name, reason=f"It did not answer within {self._deadline:g} s."))
            else:
                failures.append(answer)
                reason = str(answer) if isinstance(answer, WellkeptError) else UNEXPECTED
                unanswered.append(Unanswered(source=name, reason=reason))
        if failures and not found:
            raise failures[0]
        return found, unanswered


def check_query(query: str) -> str:
    """Return a query without surrounding white space, cut to `MAX_QUERY_CHARS`. Raises: Invalid."""
    query = query.strip()
    if not query:
        raise Invalid("The query is blank; say what to look for.")
    return query[:MAX_QUERY_CHARS]


def check_limit(limit: object, *, most: int = MAX_LIMIT) -> int:
    """Return a limit if it is a whole number from 1 to `most`. Raises: Invalid."""
    return check_whole(limit, "The limit", least=1, most=most)


def check_min_relevance(min_relevance: object) -> float | None:
    """Return a least relevance if it is None or a number from 0 to 1.

    Raises: Invalid.
    """
    if min_relevance is None:
        return None
    if isinstance(min_relevance, bool) or not isinstance(min_relevance, int | float) or not 0 <= min_relevance <= 1:
        raise Invalid(MIN_RELEVANCE)
    return float(min_relevance)


def parse_min_relevance(text: str) -> float | None:
    """Parse a least relevance from a form; None if it is left empty.

    Raises: Invalid.
    """
    try:
        least = float(text) if text.strip() else None
    except ValueError:
        raise Invalid(MIN_RELEVANCE) from None
    return check_min_relevance(least)
