"""Conversations: `/api/chat/sessions`. A session's id is known in its whole tenant: no route names the agent."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query

from recollect.api.recollect import AgentMemory, TenantMemory
from recollect.ports import place_of
from recollect.server.auth import CurrentTenant, readable_agent
from recollect.server.paging import READ_LARGE_AT_ONCE, read_page
from recollect.server.rest import cursor
from recollect.server.rest.bodies import Paging
from recollect.server.rest.transcript_shapes import (
    ConversationBody,
    MessageBody,
    MessagePage,
    NewSession,
    NewTurn,
    SessionBody,
    SessionFilter,
    SessionPage,
)

SESSIONS, MESSAGES = "sessions", "messages"

router = APIRouter(prefix="/api/chat/sessions", tags=["conversations"])
SessionId = Annotated[str, Path(description="The session's id.", examples=["s-7"])]


@router.get("")
def list_sessions(tenant: CurrentTenant, wanted: Annotated[SessionFilter, Query()]) -> SessionPage:
    """Conversations, the one used last first."""
    listed = (readable_agent(tenant, wanted.agent) if wanted.agent else tenant).sessions
    page = read_page(
        lambda before, limit: listed(before=before, limit=limit),
        place_of,
        cursor.decode_place(SESSIONS, wanted.cursor) if wanted.cursor else None,
        limit=wanted.limit,
    )
    items = [SessionBody.of(each) for each in page.items]
    return SessionPage(items=items, next_cursor=cursor.encode_next(SESSIONS, page.end))


@router.post("", status_code=201)
def create_session(tenant: CurrentTenant, body: NewSession) -> SessionBody:
    """Begin a conversation. It is also begun by its first turn. 409 if the id is taken."""
    return SessionBody.of(tenant.agent(body.agent_id).add_session(body.id))


@router.get("/{id}")
def get_session(tenant: CurrentTenant, id: SessionId) -> SessionBody:
    """One conversation, with its running summary and how many messages that covers."""
    return SessionBody.of(tenant.session(id))


@router.delete("/{id}", status_code=204)
def delete_session(tenant: CurrentTenant, id: SessionId) -> None:
    """Delete a conversation and its messages for good. What was remembered of it stays."""
    _owner(tenant, id).delete_session(id)


@router.get("/{id}/messages")
def list_messages(tenant: CurrentTenant, id: SessionId, paging: Annotated[Paging, Query()]) -> MessagePage:
    """What was said, in order."""
    agent = _owner(tenant, id)
    page = read_page(
        lambda after, limit: agent.messages(id, after=after, limit=limit),
        attrgetter("position"),
        cursor.decode_number(MESSAGES, paging.cursor) if paging.cursor else 0,
        limit=paging.limit,
        at_once=READ_LARGE_AT_ONCE,
    )
    items = [MessageBody.of(each) for each in page.items]
    return MessagePage(items=items, next_cursor=cursor.encode_next(MESSAGES, page.end))


@router.post("/{id}/messages", status_code=201)
def log_turn(tenant: CurrentTenant, id: SessionId, body: NewTurn) -> MessagePage:
    """Keep one turn: a user's prompt and the final answer to it. When this answers, both are on disk. A secret in them
    is replaced by a mark."""
    agent = tenant.agent(body.agent_id) if body.agent_id is not None else _owner(tenant, id)
    logged = agent.log_turn(id, user=body.user, assistant=body.assistant, remember=body.remember)
    return MessagePage(items=[MessageBody.of(each) for each in logged])


@router.post("/{id}/conversation")
def get_conversation(tenant: CurrentTenant, id: SessionId) -> ConversationBody:
    """What the next model call needs of a conversation: its summary and what followed, ready to be sent. If the
    settings want it, and it has become too long, one model call first folds its oldest turns into the summary."""
    return ConversationBody.of(_owner(tenant, id).conversation(id))


def _owner(tenant: TenantMemory, id: str) -> AgentMemory:
    """The agent whose conversation it is.

    Raises: NotFound.
    """
    return tenant.agent(tenant.session(id).owner.agent)
