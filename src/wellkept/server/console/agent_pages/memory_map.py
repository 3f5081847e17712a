"""A map of an agent's memories by meaning, as a picture made on the server; each dot is a link."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import Query, Request
from fastapi.responses import Response

from wellkept.model import Kind, MapPoint
from wellkept.server.console.memories import count_kinds
from wellkept.server.console.pages import clip, page, page_router, place
from wellkept.server.http.auth import CurrentAgent, CurrentTenant
from wellkept.server.http.routing import READ

POINTS = 300
"""Dots of a map: with titles and links they take about 80 KB."""

TITLE_BYTES = 80
WIDTH, HEIGHT = 1000, 560
MARGIN = 16
AGES = (
    ("today", timedelta(days=1)),
    ("this week", timedelta(days=7)),
    ("this month", timedelta(days=30)),
    ("this year", timedelta(days=365)),
)
OLDER = "older"
KINDS = [*map(str, (Kind.NOTE, Kind.JOURNAL, Kind.CORE, Kind.EPISODE, Kind.ITEM))]
"""Kinds in the order of their colours on other pages."""

router = page_router("/agents/{agent}/map")


@dataclass(frozen=True, slots=True)
class Dot:
    """A memory on the map."""

    x: int
    y: int
    group: str
    address: str
    title: str


@router.get("", scope=READ)
def show_map(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    by: Annotated[Literal["kind", "age"], Query()] = "kind",
) -> Response:
    """Show memories in two dimensions, coloured by kind or age."""
    agent, now = tenant.get_agent(memory.owner.agent), request.app.state.wellkept.now()
    points, counts = memory.map(limit=POINTS), count_kinds(request, tenant, agent.id)
    dots = [_place_dot(each, agent.id, by, now) for each in points]
    groups = KINDS if by == "kind" else [*(name for name, _ in AGES), OLDER]
    return page(
        request,
        "map.html",
        agent=agent,
        dots=dots,
        by=by,
        groups={name: number for number, name in enumerate(groups, 1) if any(dot.group == name for dot in dots)},
        total=None if counts is None else sum(counts.values()),
        width=WIDTH,
        height=HEIGHT,
    )


def _place_dot(point: MapPoint, agent: str, by: str, now: datetime) -> Dot:
    memory = point.memory
    return Dot(
        x=round(MARGIN + point.x * (WIDTH - 2 * MARGIN)),
        y=round(MARGIN + point.y * (HEIGHT - 2 * MARGIN)),
        group=memory.kind.value if by == "kind" else find_age(memory.created_at, now),
        address=place("agents", agent, "memories", memory.id),
        title=clip(" ".join(memory.text.split()), TITLE_BYTES),
    )


def find_age(at: datetime, now: datetime) -> str:
    """Return the name of the span of time in which something was written.

    >>> from datetime import UTC
    >>> now = datetime(2026, 1, 31, tzinfo=UTC)
    >>> find_age(now, now), find_age(now - timedelta(days=5), now), find_age(now - timedelta(days=900), now)
    ('today', 'this week', 'older')
    """
    return next((name for name, span in AGES if now - at < span), OLDER)
