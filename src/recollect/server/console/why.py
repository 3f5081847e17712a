"""Pages for debugging an agent: why something was recalled or not, and what a prompt showed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from recollect.policy.recall.purposes import PURPOSES
from recollect.server.console.pages import page, page_router
from recollect.server.http.auth import CurrentAgent, CurrentTenant
from recollect.server.http.routing import READ
from recollect.services.recall.recall import parse_min_score

LIMIT = 5

router = page_router("/agents/{agent}")


@router.get("/why", scope=READ)
def show_why(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    q: Annotated[str, Query()] = "",
    id: Annotated[str, Query()] = "",
    limit: Annotated[int, Query()] = LIMIT,
    purpose: Annotated[str, Query()] = "",
    min_score: Annotated[str, Query()] = "",
) -> Response:
    """Explain a recall, without marking anything as retrieved."""
    agent, id = tenant.get_agent(memory.owner.agent), id.strip()
    least = parse_min_score(min_score)
    explained = (
        memory.explain(q, id or None, limit=limit, purpose=purpose or None, min_score=least) if q.strip() else None
    )
    return page(
        request,
        "why.html",
        agent=agent,
        q=q,
        id=id,
        limit=limit,
        purpose=purpose,
        min_score=min_score,
        purposes=[*PURPOSES],
        explained=explained,
    )
