"""Conversations of an agent, with their summaries and turns."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Annotated

from fastapi import Path, Query, Request
from fastapi.responses import Response

from recollect.errors import Invalid
from recollect.policy.names import is_session_id
from recollect.server.console.pages import page, page_router
from recollect.server.http.auth import CurrentAgent, CurrentTenant
from recollect.server.http.routing import READ
from recollect.server.paging import READ_LARGE_AT_ONCE, read_page

SESSIONS = 50
MESSAGES = 100

router = page_router("/agents/{agent}/sessions")


@router.get("", scope=READ)
def list_sessions(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    at: Annotated[str, Query()] = "",
    id: Annotated[str, Query()] = "",
) -> Response:
    """Show the most recently used first; `at` and `id` are the end of the previous page."""
    agent = tenant.get_agent(memory.owner.agent)
    found = memory.sessions(before=_place(at, id) if at or id else None, limit=SESSIONS + 1)
    listed = found[:SESSIONS]
    return page(
        request, "sessions.html", agent=agent, sessions=listed, older=listed[-1] if len(found) > SESSIONS else None
    )


@router.get("/{id}", scope=READ)
def show_session(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    id: Annotated[str, Path()],
    after: Annotated[int, Query()] = 0,
) -> Response:
    """Show the summary of a conversation and its messages, in order."""
    agent, session = tenant.get_agent(memory.owner.agent), memory.session(id)
    listed = read_page(
        lambda after, limit: memory.messages(id, after=after, limit=limit),
        attrgetter("position"),
        after,
        limit=MESSAGES,
        at_once=READ_LARGE_AT_ONCE,
    )
    return page(
        request, "session.html", agent=agent, session=session, messages=listed.items, more=listed.end or 0, after=after
    )


def _place(at: str, id: str) -> tuple[datetime, str]:
    """Raises: Invalid."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise Invalid("There is no such page; start with the first one.") from None
    if moment.tzinfo is None or not is_session_id(id):
        raise Invalid("There is no such page; start with the first one.")
    return moment, id
