"""Why was this recalled, or why not?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from recollect.policy.recall.purposes import PURPOSES
from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page
from recollect.server.auth import CurrentAgent, CurrentTenant

LIMIT = 5

router = APIRouter(prefix=f"{PATH}/agents/{{agent}}", include_in_schema=False)


@router.get("/why")
def show_why(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    q: Annotated[str, Query()] = "",
    id: Annotated[str, Query()] = "",
    limit: Annotated[int, Query()] = LIMIT,
    purpose: Annotated[str, Query()] = "",
) -> Response:
    """Asks the question again, without marking anything as retrieved."""
    agent, id = tenant.get_agent(memory.owner.agent), id.strip()
    explained = memory.explain(q, id, limit=limit, purpose=purpose or None) if q.strip() else None
    return page(
        request,
        "why.html",
        agent=agent,
        q=q,
        id=id,
        limit=limit,
        purpose=purpose,
        purposes=[*PURPOSES],
        explained=explained,
    )
