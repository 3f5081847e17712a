"""Finding what a question is about, in four places at once, ranked, each with the reason.

Every source runs on a thread of its own. One that does not answer in time, or fails, is named in the answer and not
waited for; the others' answers stand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from recollect.errors import Invalid, RecollectError, SchemaMismatch
from recollect.model import Hit, Kind, Owner, Recalled, Source, Unanswered
from recollect.policy import merging, ranking
from recollect.policy.names import memory_seq
from recollect.policy.text import checked_text
from recollect.ports import Clock, Vector
from recollect.services.echoes import Echoes
from recollect.services.embedding import Embedding
from recollect.services.retrieved import Retrieved
from recollect.services.sources.question import Candidate, Found, Question, RecallSource
from recollect.services.workers import Workers

MAX_LIMIT = 100
MAX_QUERY_CHARS = 10_000

EMBEDDER = "embedder"
EMBEDDER_SHARE = 0.75
"""Of the time a source has, how much it waits for the question's vector before words alone have to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Everything that was proposed, best first, before it is cut to what was asked for."""

    hits: Sequence[Hit]
    doubles: Mapping[str, str] = field(default_factory=dict)  # what says the same as a better one, by id
    unanswered: Sequence[Unanswered] = ()


class Recall:
    """Asks the sources and ranks by the weighted sum of similarity, recency, importance and source."""

    def __init__(
        self,
        sources: Sequence[RecallSource],
        embedding: Embedding,
        echoes: Echoes,
        retrieved: Retrieved,
        now: Clock,
        *,
        weights: Mapping[str, float],
        deadline: float,
    ) -> None:
        self._sources = {source.name: source for source in sources}
        self._embedding = embedding
        self._echoes = echoes
        self._retrieved = retrieved
        self._now = now
        self._weights = weights
        self._deadline = deadline
        self._workers = Workers()

    def __call__(
        self,
        owner: Owner,
        query: str,
        *,
        limit: int = 5,
        kinds: Collection[Kind] | None = None,
        sources: Collection[Source] | None = None,
        as_of: datetime | None = None,
    ) -> Recalled:
        """The best first; `as_of` asks what would have been recalled then. Who asks for kinds means memories.

        Raises: Invalid; StoreError when no source could answer.
        """
        checked_limit(limit)
        ranking = self.ranked(owner, query, limit=limit, kinds=kinds, sources=sources, as_of=as_of)
        best = ranking.hits[:limit]
        self._echoes.shown(owner, [hit.text for hit in best])
        if as_of is None:
            seqs = [memory_seq(hit.id) or 0 for hit in best if hit.source is Source.MEMORY]
            self._retrieved.mark(owner, seqs, self._now())
        return Recalled(best, ranking.unanswered)

    def ranked(
        self,
        owner: Owner,
        query: str,
        *,
        limit: int,
        kinds: Collection[Kind] | None = None,
        sources: Collection[Source] | None = None,
        as_of: datetime | None = None,
        depth: int = 1,
    ) -> Ranking:
        """All that the sources propose, `depth` times as much as a recall looks at.

        Raises: Invalid; StoreError when no source could answer.
        """
        query = checked_query(query)
        asked = sources or ((Source.MEMORY,) if kinds is not None else tuple(self._sources))
        meaning = _Meaning(self._workers, self._embedding, query, patience=self._deadline * EMBEDDER_SHARE)
        question = Question(
            owner=owner,
            text=query,
            now=self._now() if as_of is None else as_of,
            is_past=as_of is not None,
            kinds=tuple(Kind) if kinds is None else kinds,
            limit=limit,
            vector=meaning.vector,
        )
        found, unanswered = self._answers(asked, question, depth)
        if meaning.is_late:
            reason = "It did not answer in time, so memories and documents were searched by words alone."
            unanswered.append(Unanswered(source=EMBEDDER, reason=reason))
        hits, doubles = self._merged(found, question.now)
        return Ranking(hits=hits, doubles=doubles, unanswered=unanswered)

    def close(self) -> None:
        self._workers.close()

    def _answers(
        self, asked: Collection[Source], question: Question, depth: int
    ) -> tuple[dict[Source, Found], list[Unanswered]]:
        begun = {name: self._workers.submit(partial(self._sources[name].find, question, depth=depth)) for name in asked}
        wait(begun.values(), timeout=self._deadline)
        found: dict[Source, Found] = {}
        unanswered, failures = [], []
        for name, future in begun.items():
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
        return found, unanswered

    def _merged(self, found: Mapping[Source, Found], now: datetime) -> tuple[list[Hit], dict[str, str]]:
        scales = merging.scales({name: each.strength for name, each in found.items() if each.candidates})
        scored = [
            (each, self._hit(each, scales[name], now)) for name, answer in found.items() for each in answer.candidates
        ]
        scored.sort(key=lambda pair: (-pair[1].score, -(memory_seq(pair[1].id) or 0)))
        doubles = merging.without_doubles([candidate.content_hash for candidate, _ in scored])
        hits = [hit for position, (_, hit) in enumerate(scored) if position not in doubles]
        return hits, {scored[each][1].id: scored[first][1].id for each, first in doubles.items()}

    def _hit(self, candidate: Candidate, scale: float, now: datetime) -> Hit:
        parts = {
            "similarity": candidate.similarity * scale,
            "recency": ranking.recency(candidate.created_at, now=now),
            "importance": candidate.importance,
            "source": ranking.SOURCE_PRIORITY[candidate.source],
        }
        return Hit(
            source=candidate.source,
            id=candidate.id,
            text=candidate.text,
            score=ranking.weighted(parts, self._weights),
            parts=parts,
            weights=self._weights,
            created_at=candidate.created_at,
            memory=candidate.memory,
            document=candidate.document,
            agent_id=candidate.agent_id,
        )


class _Meaning:
    """A question's vector, on its way since somebody first asked for it."""

    def __init__(self, workers: Workers, embedding: Embedding, text: str, *, patience: float) -> None:
        self._future: Future[Vector | None] = workers.submit(partial(embedding.of_query, text))
        self._patience = patience
        self.is_late = False

    def vector(self) -> Vector | None:
        """Raises: SchemaMismatch."""
        try:
            return self._future.result(self._patience)
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
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise Invalid(f"The limit is a whole number from 1 to {most}.")
    return limit


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
