"""Finding what a question is about, in four places at once, ranked, each with the reason.

The sources are asked on another thread, and on one of its own each as soon as one takes long. One that does not answer
in time, or fails, is named in the answer and not waited for; the others' answers stand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from recollect.caller import current_caller
from recollect.errors import Invalid, RecollectError, SchemaMismatch
from recollect.model import Hit, Kind, Owner, Recalled, Source, Unanswered
from recollect.policy.memories.trust import Judge
from recollect.policy.names import memory_seq
from recollect.policy.numbers import checked_whole
from recollect.policy.recall import purposes, ranking
from recollect.policy.recall import ranking as merging
from recollect.policy.recall.purposes import Purpose
from recollect.policy.text import checked_text
from recollect.ports import Clock, Vector
from recollect.services.background.embedding import Embedding
from recollect.services.background.lanes import LANE
from recollect.services.background.workers import AT_ONCE, HOLD, Turn, Workers
from recollect.services.memories.loop_guard import Echoes
from recollect.services.recall.marks import Retrieved
from recollect.services.recall.question import Candidate, Found, Question, RecallSource

MAX_LIMIT = 100
MAX_QUERY_CHARS = 10_000

EMBEDDER = "embedder"
IN_TURN_SHARE = 0.25
"""Of the deadline, how long sources are asked one after the other before those that wait get threads of their own."""

EMBEDDER_SHARE = 0.5
"""Of the deadline, how long those then wait for the question's vector before words alone have to do."""

WITH_MEANING = frozenset({Source.MEMORY, Source.KNOWLEDGE})
"""The sources that compare meanings, and so need the question's vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for, as a caller says it."""

    query: str
    limit: int = 5
    kinds: Collection[Kind] | None = None  # who names kinds means memories
    sources: Collection[Source] | None = None
    purpose: Purpose | None = None
    as_of: datetime | None = None

    def asked(self) -> Sequence[Source]:
        """The sources that are asked."""
        if self.purpose is not None:
            return [each for each in self.purpose.sources if self.sources is None or each in self.sources]
        return tuple(self.sources or ((Source.MEMORY,) if self.kinds is not None else Source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Everything that was proposed, best first, before it is cut to what was asked for."""

    hits: Sequence[Hit]
    doubles: Mapping[str, str] = field(default_factory=dict)  # by id, what says the same and is better
    unwanted: Collection[str] = ()  # ids that the purpose has no use for
    counted: Mapping[str, str] = field(default_factory=dict)  # by id, the hit of its agent that it is part of
    unanswered: Sequence[Unanswered] = ()


class Recall:
    """Asks the sources and ranks by the weighted sum of similarity, recency, importance and source."""

    def __init__(
        self,
        sources: Sequence[RecallSource],
        embedding: Embedding,
        echoes: Echoes,
        retrieved: Retrieved,
        judge: Judge,
        now: Clock,
        *,
        weights: Mapping[str, float],
        deadline: float,
        at_once: int = AT_ONCE,
    ) -> None:
        self._sources = {source.name: source for source in sources}
        self._embedding = embedding
        self._echoes = echoes
        self._retrieved = retrieved
        self._judge = judge
        self._now = now
        self._weights = weights
        self._deadline = deadline
        self._workers = Workers(at_once=at_once)

    def __call__(self, owner: Owner, wish: Wish) -> Recalled:
        """The best first, what reads like instructions last. What is shown is marked as retrieved, and recognised when
        it comes back.

        Raises: Invalid; StoreError when no source could answer.
        """
        ranking = self.ranked(owner, wish, most=wish.limit)
        best = ranking.hits[: wish.limit]
        self._echoes.shown(owner, [hit.text for hit in best])
        if wish.as_of is None:
            seqs = [memory_seq(hit.id) or 0 for hit in best if hit.source is Source.MEMORY]
            self._retrieved.mark(owner, seqs, self._now())
        return Recalled(best, ranking.unanswered, wish.purpose.heading if wish.purpose is not None else "")

    def ranked(self, owner: Owner, wish: Wish, *, depth: int = 1, most: int | None = None) -> Ranking:
        """All that the sources propose, `depth` times as much as a recall looks at; or only the `most` best of it.

        Raises: Invalid; StoreError when no source could answer.
        """
        checked_limit(wish.limit)
        query, asked = checked_query(wish.query), wish.asked()
        meaning = _Meaning(patience=self._deadline * EMBEDDER_SHARE)
        question = Question(
            owner=owner,
            text=query,
            now=self._now() if wish.as_of is None else wish.as_of,
            is_past=wish.as_of is not None,
            kinds=tuple(Kind) if wish.kinds is None else wish.kinds,
            limit=wish.limit,
            # Sources are asked on threads that do not know the caller.
            agents=current_caller().agents,
            vector=meaning.vector,
        )
        depth *= 1 if wish.purpose is None else purposes.DEPTH
        found, unanswered = self._answers(self._asked(asked, question, meaning, depth=depth))
        return self._merged(found, question.now, wish, unanswered, most=most)

    def close(self) -> None:
        self._workers.close()

    def _asked(self, asked: Collection[Source], question: Question, meaning: _Meaning, *, depth: int) -> _Asking:
        """All sources, asked until they have answered or there is no more time to wait."""
        lane = LANE.get()
        if lane is not None and (taken_over := lane.taken_over()) is not None:
            asking: _Asking = taken_over
            self._workers.give_up(asking.turn)
            wait(asking.begun.values(), timeout=self._deadline * (1 - IN_TURN_SHARE))
            return asking
        works: list[Callable[[], Any]] = [partial(self._sources[name].find, question, depth=depth) for name in asked]
        if WITH_MEANING.intersection(asked):
            works.insert(0, partial(self._embedding.of_query, question.text))
        turn = Turn(works)
        begun = dict(zip(asked, turn.futures[-len(asked) :], strict=True))
        if len(works) > len(begun):
            meaning.future = turn.futures[0]
        asking = _Asking(turn, begun, meaning)
        if lane is not None and lane.enter(asking, patience=self._deadline * IN_TURN_SHARE):
            turn.work_through()
            lane.end()
        else:
            self._workers.begin(turn)
            self._wait(turn, begun.values())
        return asking

    def _answers(self, asking: _Asking) -> tuple[dict[Source, Found], list[Unanswered]]:
        found: dict[Source, Found] = {}
        unanswered, failures = [], []
        for name, future in asking.begun.items():
            if not future.done():
                unanswered.append(Unanswered(source=name, reason=f"It did not answer within {self._deadline:g} s."))
                continue
            try:
                found[name] = future.result()
            except SchemaMismatch:
                raise  # every other answer would be as wrong
            except RecollectError as error:
                failures.append(error)
                unanswered.append(Unanswered(source=name, reason=str(error)))
        if failures and not found:
            raise failures[0]
        if asking.meaning.is_late:
            reason = "It did not answer in time, so memories and documents were searched by words alone."
            unanswered.append(Unanswered(source=EMBEDDER, reason=reason))
        return found, unanswered

    def _wait(self, turn: Turn[Any], needed: Collection[Future[Any]]) -> None:
        """Until the deadline at most. Nobody is held up for long by a turn that takes long, not even by itself."""
        waited, patience, has_begun = 0.0, self._deadline * IN_TURN_SHARE, False
        while waited < patience:
            step = min(HOLD, patience - waited)
            if turn.wait(step):
                return
            waited += step
            if has_begun:
                self._workers.pass_on(turn)
            has_begun = turn.is_under_way
        self._workers.give_up(turn)
        wait(needed, timeout=self._deadline - patience)

    def _merged(
        self,
        found: Mapping[Source, Found],
        now: datetime,
        wish: Wish,
        unanswered: Sequence[Unanswered],
        *,
        most: int | None,
    ) -> Ranking:
        """One list of what all sources found, without doubles and without what the purpose has no use for."""
        purpose = wish.purpose
        weights = self._weights if purpose is None else purpose.weights
        scales = merging.scales({name: each.strength for name, each in found.items() if each.candidates})
        proposed = [(each, scales[name]) for name, answer in found.items() for each in answer.candidates]
        wanted = [pair for pair in proposed if purpose is None or purposes.is_wanted(purpose, pair[0].facts())]
        scored = [_Scored.of(each, scale, now, weights) for each, scale in wanted]
        scored.sort(key=lambda each: (-each.score, -each.candidate.seq))
        is_counted = purpose is not None and purpose.by_agent  # doing the same twice counts twice

        def found_first(most: int | None) -> tuple[Sequence[int], Mapping[int, int], Sequence[Hit]]:
            hashes = (each.candidate.id if is_counted else each.candidate.content_hash for each in scored)
            singles, doubles = merging.without_doubles(hashes, most=most)
            return singles, doubles, [scored[each].hit(weights, self._judge) for each in singles]

        singles, doubles, hits = found_first(most if purpose is None else None)
        if any(map(purposes.is_unverified, hits)):  # it only gets the places that all others leave
            singles, doubles, hits = found_first(None)
            hits = sorted(hits, key=purposes.is_unverified)
        counted: Mapping[str, str] = {}
        if purpose is not None:
            candidates = [scored[each].candidate for each in singles]
            failed = {each.id for each in candidates if purposes.is_failure(each.facts())}
            hits, counted = purposes.arranged(purpose, hits, failed, limit=wish.limit)
        kept = {each.id for each, _ in wanted}
        return Ranking(
            hits=hits,
            doubles={scored[each].candidate.id: scored[first].candidate.id for each, first in doubles.items()},
            unwanted=[each.id for each, _ in proposed if each.id not in kept] if purpose is not None else (),
            counted=counted,
            unanswered=unanswered,
        )


class _Scored(NamedTuple):
    """A candidate and its score; few of them become hits."""

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
        return cls(candidate, ranking.weighted(parts, weights), parts)

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


class _Asking(NamedTuple):
    """The sources of one question, and how far they are."""

    turn: Turn[Any]
    begun: Mapping[Source, Future[Any]]
    meaning: _Meaning


class _Meaning:
    """A question's vector, which may be on its way."""

    def __init__(self, *, patience: float) -> None:
        self.future: Future[Vector | None] | None = None  # None: nobody needs it
        self.is_late = False
        self._patience = patience

    def vector(self) -> Vector | None:
        """Raises: SchemaMismatch."""
        if self.future is None:
            return None
        try:
            return self.future.result(self._patience)
        except TimeoutError:
            self.is_late = True
            return None


def checked_query(query: str) -> str:
    """Raises: Invalid."""
    query = checked_text(query, what="query").strip()
    if not query:
        raise Invalid("The query is blank; say what to look for.")
    return query[:MAX_QUERY_CHARS]


def checked_limit(limit: object, *, most: int = MAX_LIMIT) -> int:
    """Raises: Invalid."""
    return checked_whole(limit, "The limit", least=1, most=most)


def checked_sources(names: Collection[str] | None) -> Sequence[Source] | None:
    """The sources of these names; None means all of them.

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
