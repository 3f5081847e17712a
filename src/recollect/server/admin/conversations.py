"""What was said: an agent's conversations, with their summaries and turns."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from recollect.errors import Invalid
from recollect.policy.names import is_session
from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page
from recollect.server.auth import CurrentAgent, CurrentTenant
from recollect.server.paging import READ_LARGE_AT_ONCE, read_page

SESSIONS = 50
MESSAGES = 100

router = APIRouter(prefix=f"{PATH}/agents/{{agent}}/sessions", include_in_schema=False)


@router.get("")
def list_sessions(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    at: Annotated[str, Query()] = "",
    id: Annotated[str, Query()] = "",
) -> Response:
    """The one used last first; `at` and `id` are where the page before ended."""
    agent = tenant.get_agent(memory.owner.agent)
    found = memory.sessions(before=_place(at, id) if at or id else None, limit=SESSIONS + 1)
    shown = found[:SESSIONS]
    return page(
        request, "sessions.html", agent=agent, sessions=shown, older=shown[-1] if len(found) > SESSIONS else None
    )


@router.get("/{id}")
def show_session(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    id: Annotated[str, Path()],
    after: Annotated[int, Query()] = 0,
) -> Response:
    """The summary of what came first, and what was said, in order."""
    agent, session = tenant.get_agent(memory.owner.agent), memory.session(id)
    shown = read_page(
        lambda after, limit: memory.messages(id, after=after, limit=limit),
        attrgetter("position"),
        after,
        limit=MESSAGES,
        at_once=READ_LARGE_AT_ONCE,
    )
    return page(
        request, "session.html", agent=agent, session=session, messages=shown.items, more=shown.end or 0, after=after
    )


def _place(at: str, id: str) -> tuple[datetime, str]:
    """Raises: Invalid."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise Invalid("There is no such page; begin with the first one.") from None
    if moment.tzinfo is None or not is_session(id):
        raise Invalid("There is no such page; begin with the first one.")
    return moment, id
