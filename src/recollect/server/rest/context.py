"""Working memory: `/api/agents/{agent}/context`, and what was shown at earlier calls."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from recollect.server.auth import CurrentAgent
from recollect.server.rest import cursor
from recollect.server.rest.context_shapes import CallBody, CallFilter, CallPage, ContextBody, Prompting, SeenCallBody

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
    found = memory.context_calls(session_id=wanted.session_id, before=before, limit=wanted.limit)
    has_more = len(found) == wanted.limit and bool(
        memory.context_calls(session_id=wanted.session_id, before=found[-1].id, limit=1)
    )
    next_cursor = cursor.encode(LISTING, found[-1].id) if has_more else None
    return CallPage(items=[CallBody.of(each) for each in found], next_cursor=next_cursor)


@router.get("/context-calls/{id}")
def get_context_call(
    memory: CurrentAgent, id: Annotated[str, Path(description="The call's id, as the context said it.")]
) -> SeenCallBody:
    """What the agent saw at one call, what was left out and why; texts as they read now."""
    return SeenCallBody.of(memory.context_call(id))
