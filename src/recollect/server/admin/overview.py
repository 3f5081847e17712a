"""The first page: the tenant's agents."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page
from recollect.server.auth import CurrentRecollect, CurrentTenant
from recollect.server.paging import READ_LARGE_AT_ONCE, read_page
from recollect.server.rest.health import problems_of

AGENTS = 50

router = APIRouter(prefix=PATH, include_in_schema=False)


@router.get("")
def show_overview(
    request: Request, recollect: CurrentRecollect, tenant: CurrentTenant, after: Annotated[str, Query()] = ""
) -> Response:
    """Agents by id, with how many memories of each kind they have, and what is wrong with the store."""
    shown = read_page(
        lambda after, limit: tenant.list_agents(after=after, limit=limit),
        attrgetter("id"),
        after,
        limit=AGENTS,
        at_once=READ_LARGE_AT_ONCE,
    )
    return page(
        request,
        "overview.html",
        tenant=tenant.id,
        agents=shown.items,
        counts=tenant.count_memories_by_agent([agent.id for agent in shown.items]),
        more=shown.end or "",
        is_first=not after,
        problems=problems_of(recollect, tenant),
    )
