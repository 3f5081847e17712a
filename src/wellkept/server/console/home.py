"""The first page: what there is, what happened, what waits for a decision; sample data for an empty store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from operator import attrgetter
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import RedirectResponse, Response

from wellkept.model import DayCount, KeyScope, TenantStats
from wellkept.server.console import sample
from wellkept.server.console.charts import Chart, describe_bytes, stack_columns
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.routing import ADMIN, READ
from wellkept.server.paging import READ_LARGE_AT_ONCE, read_page
from wellkept.server.rest.health import find_problems
from wellkept.upkeep.stats import DAYS

AGENTS = 50
SHOWN = 8
CHOICES = (7, 30, 90)
"""Days that the chart may cover."""

router = page_router()


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
    stats = tenant.upkeep.peek_stats(days=days) if is_whole else None
    agents = tenant.agents.list(limit=AGENTS)
    counts = {} if stats is None else count_agents(stats)
    users = Counter[str]() if stats is None else _sum_names(stats.users)
    return page(
        request,
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
        kind_counts=Counter[str]() if stats is None else _sum_names(stats.memories),
        activity=None if stats is None else draw_activity(stats),
        problems=find_problems(wellkept, tenant),
        waiting=tenant.upkeep.count_waiting(),
        # The size of the whole store is no tenant's business.
        size=describe_bytes(wellkept.count_bytes()) if request.state.access.scope is KeyScope.OPERATOR else "",
        maintenance=wellkept.maintenance.refresh(),
        has_sample=any(map(sample.is_sample, agents)),
    )


@router.post("/sample", scope=ADMIN)
def add_sample(wellkept: CurrentWellkept, tenant: CurrentTenant) -> Response:
    """Store the sample data, unless it is there, and show its memories."""
    sample.add(tenant, wellkept.now())
    return RedirectResponse(place("agents", sample.AGENT), status_code=303)


@router.post("/sample/remove", scope=ADMIN)
def remove_sample(tenant: CurrentTenant) -> Response:
    """Delete the sample data."""
    sample.remove(tenant)
    return RedirectResponse(place(), status_code=303)


@router.get("/agents", scope=READ)
def list_agents(request: Request, tenant: CurrentTenant, after: Annotated[str, Query()] = "") -> Response:
    """Show agents by id, with the number of memories of each kind."""
    found = read_page(
        lambda after, limit: tenant.agents.list(after=after, limit=limit),
        attrgetter("id"),
        after,
        limit=AGENTS,
        at_once=READ_LARGE_AT_ONCE,
    )
    is_user = request.state.access.user is not None
    stats = None if is_user else tenant.upkeep.peek_stats()
    return page(
        request,
        "agents.html",
        agents=found.items,
        stats=stats,
        counts={} if stats is None else count_agents(stats),
        is_counting=not is_user and stats is None,
        more=found.end or "",
        is_first=not after,
    )


@router.get("/manage", scope=READ)
def list_admin_pages(request: Request) -> Response:
    """Show links to the pages that administer a tenant and the store."""
    return page(request, "manage.html")


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
    series = {
        "written": _sum_days(stats.memories, days),
        "recalls": _sum_days(stats.recalls, days),
        "prompts": _sum_days(prompts, days),
    }
    if sum(map(bool, map(sum, zip(*series.values(), strict=True)))) < 2:
        return None
    return stack_columns([f"{day:%-d %b}" for day in days], series)


def _sum_days(counts: Sequence[DayCount], days: Sequence[date]) -> list[int]:
    found = Counter[date | None]()
    for each in counts:
        found[each.day] += each.count
    return [found[day] for day in days]


def _sum_names(counts: Sequence[DayCount]) -> Counter[str]:
    found = Counter[str]()
    for each in counts:
        found[each.name] += each.count
    return found
