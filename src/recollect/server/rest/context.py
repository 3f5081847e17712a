"""Working memory: `/api/agents/{agent}/context`, and what was shown at earlier calls."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query

from recollect.api.agent import MAX_CALLS
from recollect.server.auth import CurrentAgent
from recollect.server.paging import READ_LARGE_AT_ONCE, read_page
from recollect.server.rest import cursor
from recollect.server.rest.context_shapes import CallBody, CallFilter, CallPage, ContextBody, Prompting, SeenCallBody
from recollect.services.recall.recall import checked_limit

LISTING = "context-calls"

router = APIRouter(prefix="/api/agents/{agent}", tags=["working memory"])


@router.post("/context")
def build_context(memory: CurrentAgent, body: Prompting) -> ContextBody:
    """Everything a model should see before it answers the message, as chat messages that fit the budget."""
    results = body.tool_results
    made = memory.context(
        body.session_id,
        body.message,
        system_prompt=body.system_prompt,
        budget=body.budget,
        layout=body.layout,
        tool_results=None
        if results is None
        else [each if isinstance(each, str) else {"content": each.content, "name": each.name} for each in results],
    )
    return ContextBody.of(made)


@router.get("/context-calls")
def list_context_calls(memory: CurrentAgent, wanted: Annotated[CallFilter, Query()]) -> CallPage:
    """What the agent was shown at its latest calls, newest first, by ids and digests."""
    before = cursor.decode(LISTING, wanted.cursor) if wanted.cursor else ""
    page = read_page(
        lambda before, limit: memory.context_calls(session_id=wanted.session_id, before=before, limit=limit),
        attrgetter("id"),
        before,
        limit=checked_limit(wanted.limit, most=MAX_CALLS),
        at_once=READ_LARGE_AT_ONCE,
    )
    return CallPage(items=[CallBody.of(each) for each in page.items], next_cursor=cursor.encode_next(LISTING, page.end))


@router.get("/context-calls/{id}")
def get_context_call(
    memory: CurrentAgent, id: Annotated[str, Path(description="The call's id, as the context said it.")]
) -> SeenCallBody:
    """What the agent saw at one call, what was left out and why; texts as they read now."""
    return SeenCallBody.of(memory.context_call(id))
