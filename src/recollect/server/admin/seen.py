"""What did the agent see at that call?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from recollect.api.agent import CALLS_PAGE
from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page
from recollect.server.auth import CurrentAgent, CurrentTenant

router = APIRouter(prefix=f"{PATH}/agents/{{agent}}/seen", include_in_schema=False)


@router.get("")
def list_seen(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    session: Annotated[str, Query()] = "",
    before: Annotated[str, Query()] = "",
) -> Response:
    """The agent's latest prompts."""
    agent = tenant.get_agent(memory.owner.agent)
    calls = memory.context_calls(session_id=session.strip(), before=before, limit=CALLS_PAGE + 1)
    shown = calls[:CALLS_PAGE]
    older = shown[-1].id if len(calls) > CALLS_PAGE else ""
    return page(request, "calls.html", agent=agent, calls=shown, session=session, older=older)


@router.get("/{id}")
def show_seen(request: Request, tenant: CurrentTenant, memory: CurrentAgent, id: Annotated[str, Path()]) -> Response:
    """One prompt, block by block."""
    agent = tenant.get_agent(memory.owner.agent)
    return page(request, "call.html", agent=agent, call=memory.context_call(id))
