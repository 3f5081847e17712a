"""The first page: what there is, what happened, what waits for a decision; sample data; and the list of agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, floor, log10
from operator import attrgetter
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response

from wellkept.model import DayCount, KeyScope, TenantStats
from wellkept.server.console import sample
from wellkept.server.console.pages import BOX_HEIGHT, BOX_WIDTH, AtTenant, describe_bytes, go, page_router
from wellkept.server.http.routing import ADMIN, READ
from wellkept.server.paging import READ_LARGE_AT_ONCE, read_page
from wellkept.server.rest.health import find_problems
from wellkept.upkeep.stats import DAYS

AGENTS = 50
SHOWN = 8
CHOICES = (7, 30, 90)
"""Days that the chart may cover."""

TICKS = 4
ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
GAP = 0.25
"""Share of a column's place that stays empty."""

router = page_router()


@router.get("", scope=READ)
def show_home(visit: AtTenant, days: Annotated[int, Query(ge=1, le=CHOICES[-1])] = DAYS) -> Response:
    """Show the tenant at a glance."""
    # A key of one user has no numbers of the whole tenant.
    is_whole = visit.access.user is None
    stats = visit.tenant.upkeep.peek_stats(days=days) if is_whole else None
    agents = visit.tenant.agents.list(limit=AGENTS)
    counts = {} if stats is None else count_agents(stats)
    users = Counter[str]() if stats is None else _sum_counts(stats.users, "name")
    return visit.page(
        "home.html",
        stats=stats,
        is_counting=is_whole and stats is None,
        counts=counts,
        users=users.most_common(SHOWN),
        agents=sorted(agents, key=lambda agent: -counts.get(agent.id, Counter()).total())[:SHOWN],
        names={agent.id: agent.name for agent in agents},
        has_more=len(agents) > SHOWN,
        days=days,
        choices=CHOICES,
        kind_counts=Counter[str]() if stats is None else _sum_counts(stats.memories, "name"),
        activity=None if stats is None else draw_activity(stats),
        problems=find_problems(visit.wellkept, visit.tenant),
        waiting=visit.tenant.upkeep.count_waiting(),
        # The size of the whole store is no tenant's business.
        size=describe_bytes(visit.wellkept.count_bytes()) if visit.access.scope is KeyScope.OPERATOR else "",
        maintenance=visit.wellkept.maintenance.refresh(),
        has_sample=sample.has_sample(visit.tenant),
    )


@router.post("/sample", scope=ADMIN)
def add_sample(visit: AtTenant) -> Response:
    """Store the sample data, unless it is there, and show its memories."""
    sample.add(visit.tenant, visit.wellkept.now())
    return go("agents", sample.AGENT)


@router.post("/sample/remove", scope=ADMIN)
def remove_sample(visit: AtTenant) -> Response:
    """Delete the sample data."""
    sample.remove(visit.tenant)
    return go()


@router.get("/agents", scope=READ)
def list_agents(visit: AtTenant, after: Annotated[str, Query()] = "") -> Response:
    """Show agents by id, with the number of memories of each kind."""
    found = read_page(
        lambda after, limit: visit.tenant.agents.list(after=after, limit=limit),
        attrgetter("id"),
        after,
        limit=AGENTS,
        at_once=READ_LARGE_AT_ONCE,
    )
    is_user = visit.access.user is not None
    stats = None if is_user else visit.tenant.upkeep.peek_stats()
    return visit.page(
        "agents.html",
        agents=found.items,
        stats=stats,
        counts={} if stats is None else count_agents(stats),
        is_counting=not is_user and stats is None,
        more=found.end or "",
        is_first=not after,
    )


def count_agents(stats: TenantStats) -> dict[str, Counter[str]]:
    """Count the memories of each agent by kind."""
    counts: dict[str, Counter[str]] = {}
    for each in stats.memories:
        counts.setdefault(each.agent, Counter())[each.name] += each.count
    return counts


def draw_activity(stats: TenantStats) -> Chart | None:
    """Return what was written, recalled and sent as a prompt on each day; None unless two days have any of it."""
    count = (stats.counted_at.date() - stats.first_day).days + 1
    days = [stats.first_day + timedelta(days=each) for each in range(count)]
    prompts = [each for each in stats.prompts if each.name == "prompts"]
    counted = {"written": stats.memories, "recalls": stats.recalls, "prompts": prompts}
    sums = {name: _sum_counts(counts, "day") for name, counts in counted.items()}
    series = {name: [found[day] for day in days] for name, found in sums.items()}
    if sum(map(bool, map(sum, zip(*series.values(), strict=True)))) < 2:
        return None
    return stack_columns([f"{day:%-d %b}" for day in days], series)


def _sum_counts(counts: Sequence[DayCount], by: str) -> Counter[Any]:
    """Return the sums of counts by "day" or by "name"."""
    found = Counter[Any]()
    for each in counts:
        found[getattr(each, by)] += each.count
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartColumn:
    """Place of one day in a chart of columns, and its parts from the bottom."""

    label: str
    x: float
    width: float
    parts: tuple[tuple[str, float, float, int], ...]  # name, y, height and value


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Shapes and labels of a chart."""

    ticks: tuple[str, ...]  # labels of the vertical axis, highest first
    totals: Mapping[str, int]  # of each series
    columns: tuple[ChartColumn, ...]


def stack_columns(labels: Sequence[str], series: Mapping[str, Sequence[int]]) -> Chart:
    """Return a column for each label, with the values of all series on top of each other."""
    top = _round_up(max(map(sum, zip(*series.values(), strict=True)), default=0))
    place = BOX_WIDTH / max(1, len(labels))
    columns = []
    for index, label in enumerate(labels):
        parts, y = [], float(BOX_HEIGHT)
        for name, values in series.items():
            height = BOX_HEIGHT * values[index] / top
            y -= height
            parts.append((name, round(y, 1), round(height, 1), values[index]))
        x, width = round(place * (index + GAP / 2), 1), round(place * (1 - GAP), 1)
        columns.append(ChartColumn(label=label, x=x, width=width, parts=tuple(parts)))
    ticks = tuple(shorten(top * part // TICKS) for part in (4, 2, 0))
    return Chart(ticks=ticks, totals={name: sum(values) for name, values in series.items()}, columns=tuple(columns))


def _round_up(value: int) -> int:
    """Return a round number that is not below, and that divides into ticks.

    >>> _round_up(0), _round_up(7), _round_up(99), _round_up(1_234)
    (4, 8, 100, 1600)
    """
    if value <= TICKS:
        return TICKS
    step = value / TICKS
    unit = 10 ** floor(log10(step))
    return TICKS * int(next(each for each in ROUND if each * unit >= step and each * unit % 1 == 0) * unit)


def shorten(value: float) -> str:
    """Return a number with at most three digits and a unit.

    >>> shorten(950), shorten(1_234), shorten(45_678), shorten(2_000_000)
    ('950', '1.2k', '46k', '2M')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            short = value / size
            return f"{short:.1f}".removesuffix(".0") + unit if short < 10 else f"{ceil(short - 0.5)}{unit}"
    return f"{value:g}"
