"""A playground for recall: why something was recalled or not, and what other weights would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from wellkept.errors import Invalid
from wellkept.model import Explanation, Hit
from wellkept.recall.recall import parse_min_relevance
from wellkept.recall.rules_purposes import PURPOSES
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.http.auth import CurrentAgent, CurrentTenant, CurrentWellkept
from wellkept.server.http.routing import READ

LIMIT = 5
CANDIDATES = 40
"""Hits that the second setting orders anew; what recall ranks below them cannot rise."""

PARTS = ("similarity", "recency", "importance", "source")

router = page_router("/agents/{agent}")
Weight = Annotated[float | None, Query(ge=0, le=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyQuery:
    """Parameters of the playground; its address reproduces it."""

    q: Annotated[str, Query()] = ""
    id: Annotated[str, Query()] = ""
    limit: Annotated[int, Query()] = LIMIT
    purpose: Annotated[str, Query()] = ""
    min_relevance: Annotated[str, Query()] = ""
    where: Annotated[str, Query()] = ""
    as_of: Annotated[str, Query()] = ""
    similarity: Weight = None
    recency: Weight = None
    importance: Weight = None
    source: Weight = None

    def options(self) -> dict[str, Any]:
        """Return the arguments of `explain`. Raises: Invalid."""
        return {
            "limit": self.limit,
            "purpose": self.purpose or None,
            "min_relevance": parse_min_relevance(self.min_relevance),
            "where": self.where.strip() or None,
            "as_of": _parse_moment(self.as_of),
        }

    def address(self, agent: str, **changes: object) -> str:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return place("agents", agent, "why", **values | changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A hit in the order of other weights."""

    hit: Hit
    score: float
    was: int | None  # its place in the answer, counted from 1; None: not in the answer
    widths: tuple[float, ...]  # of the parts of its bar


@router.get("/why", scope=READ)
def show_why(
    request: Request,
    wellkept: CurrentWellkept,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    asked: Annotated[WhyQuery, Depends()],
) -> Response:
    """Explain a recall, without marking anything as retrieved."""
    agent, id = tenant.get_agent(memory.owner.agent), asked.id.strip()
    configured = {part: getattr(wellkept.settings, f"weight_{part}") for part in PARTS}
    weights = {part: value if (value := getattr(asked, part)) is not None else configured[part] for part in PARTS}
    explained, others, problem = None, [], ""
    try:
        options = asked.options()
        if asked.q.strip():
            explained = memory.explain(asked.q, id or None, **options)
            wide = memory.explain(asked.q, None, **options | {"limit": max(CANDIDATES, asked.limit)})
            others = rank_anew(wide.hits, explained, weights)
    except Invalid as error:
        problem = str(error)
    return page(
        request,
        "why.html",
        status=400 if problem else 200,
        agent=agent,
        asked=asked,
        id=id,
        purposes=[*PURPOSES],
        parts=PARTS,
        configured=configured,
        weights=weights,
        is_changed=weights != configured,
        explained=explained,
        others=others,
        problem=problem,
    )


def rank_anew(hits: Sequence[Hit], explained: Explanation, weights: Mapping[str, float]) -> list[Ranked]:
    """Return the hits in the order of other weights, best first."""
    places = {hit.id: place for place, hit in enumerate(explained.hits, 1)}
    ranked = [
        Ranked(
            hit=hit,
            # The score of recall is the sum of each part times its weight.
            score=sum(weights[part] * hit.parts.get(part, 0.0) for part in PARTS),
            was=places.get(hit.id),
            widths=tuple(round(1000 * weights[part] * hit.parts.get(part, 0.0), 1) for part in PARTS),
        )
        for hit in hits
    ]
    return sorted(ranked, key=lambda each: -each.score)


def _parse_moment(text: str) -> datetime | None:
    """Raises: Invalid."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Invalid("`as_of` is a date or a time, such as 2026-10-01 or 2026-10-01T09:00.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
