"""Merge the candidates of all sources into one ranking."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import compress
from typing import NamedTuple

from wellkept.memory.rules_importance import is_small_talk
from wellkept.memory.rules_trust import Judge
from wellkept.model import Hit, Source, Unanswered
from wellkept.recall import rules_purposes as purposes
from wellkept.recall import rules_ranking as ranking
from wellkept.recall.question import Candidate, RecallRequest, SourceAnswer
from wellkept.recall.rules_rare_words import raise_relevance


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Ranked candidates of all sources, best first, before they are cut to the limit."""

    hits: Sequence[Hit]
    duplicates: Mapping[str, str] = field(default_factory=dict)  # by id of a duplicate: the better hit
    unwanted: Collection[str] = ()  # ids rejected by the filter of the purpose
    below: Mapping[str, Candidate] = field(default_factory=dict)  # candidates below `min_relevance` by id, best first
    counted: Mapping[str, str] = field(default_factory=dict)  # by id of a merged hit: its agent's hit
    unanswered: Sequence[Unanswered] = ()


class Formula(NamedTuple):
    """Weights and judge with which hits are scored."""

    weights: Mapping[str, float]  # of similarity, recency, importance and source
    judge: Judge


def merge_candidates(
    found: Mapping[Source, SourceAnswer],
    now: datetime,
    request: RecallRequest,
    formula: Formula,
    *,
    unanswered: Sequence[Unanswered],
    most: int | None,
) -> Ranking:
    """Merge the candidates of all sources into one ranking; leave out duplicates and those outside the purpose."""
    purpose = request.purpose
    weights = formula.weights if purpose is None else purpose.weights
    proposed, below = _split_by_relevance(found, request)
    is_wanted = [purpose is None or purposes.is_relevant(purpose, each.facts()) for each in proposed]
    relevant = list(compress(proposed, is_wanted))
    scored = [_Scored.of(each, now, weights) for each in relevant]
    # Whoever holds a rare word of the question comes first. Ties go to the newest memory.
    scored.sort(key=lambda each: (len(each.candidate.held), each.score, each.candidate.seq), reverse=True)
    if len({each.source for each in relevant}) > 1:
        texts = [(each.candidate.content_hash, each.candidate.source) for each in scored]
        scored = [scored[place] for place in ranking.order_equal_texts(texts)]
    # A success rate counts every run, so runs with the same text are not duplicates.
    keeps_duplicates = request.keeps_duplicates or (purpose is not None and purpose.by_agent)

    def take_best(most: int | None) -> tuple[Sequence[int], Mapping[int, int], Sequence[Hit]]:
        hashes = (each.candidate.id if keeps_duplicates else each.candidate.content_hash for each in scored)
        distinct, duplicates = ranking.drop_duplicates(hashes, most=most)
        return distinct, duplicates, [scored[each].to_hit(weights, formula.judge) for each in distinct]

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
        counted=counted,
        unanswered=unanswered,
    )


def _split_by_relevance(
    found: Mapping[Source, SourceAnswer], request: RecallRequest
) -> tuple[list[Candidate], dict[str, Candidate]]:
    """Split the candidates into those to rank and those below `min_relevance`; for small talk, all are below."""
    # "Thanks, that's all" asks for nothing.
    is_silent = not request.is_asking and is_small_talk(request.query)
    least = request.min_relevance or 0.0
    proposed, below = list[Candidate](), dict[str, Candidate]()
    for answer in found.values():
        for candidate in answer.candidates:
            if candidate.held:
                candidate = candidate._replace(similarity=raise_relevance(candidate.similarity, candidate.held))
            if is_silent or candidate.similarity < least:
                below[candidate.id] = candidate
            else:
                proposed.append(candidate)
    return proposed, below


class _Scored(NamedTuple):
    """Candidate with its score. Few candidates become hits, so a hit is built on demand."""

    candidate: Candidate
    score: float
    recency: float

    @classmethod
    def of(cls, candidate: Candidate, now: datetime, weights: Mapping[str, float]) -> _Scored:
        recency = ranking.recency(candidate.created_at, now=now)
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
            held=candidate.held,
        )
