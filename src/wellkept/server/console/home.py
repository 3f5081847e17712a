"""The first page: how memory grows, what happened, what waits for a decision, and which agents there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from operator import attrgetter
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from wellkept.model import DayCount, KeyScope, Kind, TenantStats
from wellkept.server.console.charts import Chart, describe_bytes, draw_line, stack_areas, stack_columns
from wellkept.server.console.pages import page, page_router
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.routing import READ
from wellkept.server.paging import READ_LARGE_AT_ONCE, read_page
from wellkept.server.rest.health import find_problems
from wellkept.upkeep.stats import DAYS

AGENTS = 50
SHOWN_AGENTS = 8
CHOICES = (7, 30, 90)
"""Days that the charts may cover."""

ADDED, CHANGED, REFUSED, SHORTENED = "written", "changed", "refused", "truncated"
GROUPS: Mapping[str, str] = {
    "memory.refuse": REFUSED,
    "secret.refuse": REFUSED,
    "context.truncate": SHORTENED,
}
"""Series of the chart of activity, by action of the event; other events of memories are changes.

One event may stand for a batch of new memories, so those are counted themselves.
"""

PROMPTS, RECALLS = "prompts", "recalls"
STRIPS = ((RECALLS,), (ADDED, CHANGED, REFUSED), (PROMPTS, SHORTENED))
"""Series of the charts of activity."""

router = page_router()


@dataclass(slots=True)
class AgentCounts:
    """Numbers of one agent on the first page."""

    kinds: Counter[str] = field(default_factory=Counter)
    days: list[int] = field(default_factory=list)  # memories written on each day
    review: int = 0
    proposals: int = 0

    @property
    def total(self) -> int:
        return sum(self.kinds.values())

    @property
    def line(self) -> str:
        return draw_line(self.days, max(self.days, default=0))


@router.get("", scope=READ)
def show_home(
    request: Request,
    wellkept: CurrentWellkept,
    tenant: CurrentTenant,
    days: Annotated[int, Query(ge=1, le=CHOICES[-1])] = DAYS,
) -> Response:
    """Show the tenant at a glance."""
    # A key of one user has no numbers of the whole tenant.
    is_whole = request.state.access.user is None
    stats = tenant.peek_stats(days=days) if is_whole else None
    agents = tenant.list_agents(limit=AGENTS)
    counts = {} if stats is None else count_agents(stats)
    names = {agent.id: agent for agent in agents}
    busiest = sorted(agents, key=lambda agent: counts[agent.id].total if agent.id in counts else 0, reverse=True)
    return page(
        request,
        "home.html",
        stats=stats,
        is_counting=is_whole and stats is None,
        counts=counts,
        users=() if stats is None else count_users(stats),
        agents=busiest[:SHOWN_AGENTS],
        names=names,
        has_more=len(agents) > SHOWN_AGENTS,
        days=days,
        choices=CHOICES,
        growth=None if stats is None else draw_growth(stats),
        activity=None if stats is None else draw_activity(stats),
        day_labels=[] if stats is None else _label_days(stats),
        problems=find_problems(wellkept, tenant),
        waiting=tenant.count_waiting(),
        # The size of the whole store is no tenant's business.
        size=describe_bytes(wellkept.count_bytes()) if request.state.access.scope is KeyScope.OPERATOR else "",
        maintenance=wellkept.maintenance.refresh(),
    )


@router.get("/agents", scope=READ)
def list_agents(request: Request, tenant: CurrentTenant, after: Annotated[str, Query()] = "") -> Response:
    """Show agents by id, with the number of memories of each kind."""
    found = read_page(
        lambda after, limit: tenant.list_agents(after=after, limit=limit),
        attrgetter("id"),
        after,
        limit=AGENTS,
        at_once=READ_LARGE_AT_ONCE,
    )
    is_user = request.state.access.user is not None
    stats = None if is_user else tenant.peek_stats()
    return page(
        request,
        "agents.html",
        agents=found.items,
        counts={} if stats is None else count_agents(stats),
        is_counting=not is_user and stats is None,
        more=found.end or "",
        is_first=not after,
    )


def count_agents(stats: TenantStats) -> dict[str, AgentCounts]:
    """Return the numbers of each agent that has any."""
    counts: dict[str, AgentCounts] = {}
    places = {day: index for index, day in enumerate(list_days(stats))}
    for each in stats.memories:
        agent = counts.setdefault(each.agent, AgentCounts(days=[0] * len(places)))
        agent.kinds[each.name] += each.count
        if each.day in places:
            agent.days[places[each.day]] += each.count
    for name, waiting in (("review", stats.review), ("proposals", stats.proposals)):
        for id, count in waiting.items():
            setattr(counts.setdefault(id, AgentCounts(days=[0] * len(places))), name, count)
    return counts


def count_users(stats: TenantStats) -> list[tuple[str, int, str]]:
    """Return the users who wrote most: id, number of memories, and the line of their days."""
    days, written = list_days(stats), dict[str, list[DayCount]]()
    for each in stats.users:
        written.setdefault(each.name, []).append(each)
    lines = {user: _sum_days(counts, days) for user, counts in written.items()}
    busiest = sorted(lines, key=lambda user: (-sum(lines[user]), user))[:SHOWN_AGENTS]
    return [(user, sum(lines[user]), draw_line(lines[user], max(lines[user]))) for user in busiest]


def list_days(stats: TenantStats) -> Sequence[date]:
    """Return the days that were counted."""
    count = (stats.counted_at.date() - stats.first_day).days + 1
    return [stats.first_day + timedelta(days=each) for each in range(count)]


def draw_growth(stats: TenantStats) -> Chart:
    """Return the number of memories of each kind at the end of each day, for kinds that occur."""
    days = list_days(stats)
    series: dict[str, list[int]] = {}
    for kind in Kind:
        of_kind = [each for each in stats.memories if each.name == kind.value]
        if of_kind:
            written = _sum_days(of_kind, days)
            total, grown = sum(each.count for each in of_kind if each.day is None), []
            for count in written:
                total += count
                grown.append(total)
            series[kind.value] = grown
    return stack_areas(series)


def draw_activity(stats: TenantStats) -> list[Chart]:
    """Return recalls, writes and prompts of each day, each in a chart of its own scale."""
    days = list_days(stats)
    groups: dict[str, list[DayCount]] = {name: [] for name in (ADDED, CHANGED, RECALLS, PROMPTS, SHORTENED, REFUSED)}
    for each in stats.events:
        is_change = each.name.startswith("memory.") and each.name != "memory.add"
        name = GROUPS.get(each.name) or (CHANGED if is_change else None)
        if name is not None:
            groups[name].append(each)
    groups[PROMPTS] += [each for each in stats.prompts if each.name == PROMPTS]
    groups[RECALLS] += stats.recalls
    groups[ADDED] += stats.memories
    labels, counted = [f"{day:%-d %b}" for day in days], {name: _sum_days(each, days) for name, each in groups.items()}
    return [stack_columns(labels, {name: counted[name] for name in names}) for names in STRIPS]


def _sum_days(counts: Sequence[DayCount], days: Sequence[date]) -> list[int]:
    found = Counter[date | None]()
    for each in counts:
        found[each.day] += each.count
    return [found[day] for day in days]


def _label_days(stats: TenantStats) -> list[str]:
    """Return labels of the first, the middle and the last day."""
    days = list_days(stats)
    return [f"{day:%-d %b}" for day in (days[0], days[len(days) // 2], days[-1])]
