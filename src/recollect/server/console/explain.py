"""Pages for debugging an agent: why something was recalled or not, and what a prompt showed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request
from fastapi.responses import Response

from recollect.api.agent import CALLS_PAGE
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


@router.get("/seen", scope=READ)
def list_seen(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    session: Annotated[str, Query()] = "",
    before: Annotated[str, Query()] = "",
) -> Response:
    """Show the latest prompts of an agent."""
    agent = tenant.get_agent(memory.owner.agent)
    calls = memory.context_calls(session_id=session.strip(), before=before, limit=CALLS_PAGE + 1)
    listed = calls[:CALLS_PAGE]
    older = listed[-1].id if len(calls) > CALLS_PAGE else ""
    return page(request, "calls.html", agent=agent, calls=listed, session=session, older=older)


@router.get("/seen/{id}", scope=READ)
def show_seen(request: Request, tenant: CurrentTenant, memory: CurrentAgent, id: Annotated[str, Path()]) -> Response:
    """Show a prompt, block by block."""
    agent = tenant.get_agent(memory.owner.agent)
    return page(request, "call.html", agent=agent, call=memory.context_call(id))
