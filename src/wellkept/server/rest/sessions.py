"""Conversations: `/api/chat/sessions`. Session ids are unique in a tenant, so no route names the agent.

`summarizedCount` is the one name in camel case.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import BaseModel, Field

from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.errors import Invalid
from wellkept.language.names import MAX_SESSION_CHARS
from wellkept.model import Conversation, Message, Role, Session
from wellkept.model.stored import Place, place_of
from wellkept.prompt.transcripts import MAX_MESSAGE_CHARS
from wellkept.server.http.auth import CurrentTenant, readable_agent
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import READ_LARGE_AT_ONCE, PagedList, decode_number, decode_place
from wellkept.server.rest import shapes
from wellkept.server.rest.shapes import Flag, RecordBody, RequestBody, describes, field

Said = Annotated[str, field(minLength=1, maxLength=MAX_MESSAGE_CHARS)]


class SessionFilter(shapes.Paging):
    """Filter for conversations."""

    agent: str = field("", "Only conversations of this agent; empty: all.", example="atlas")
    where: shapes.WhereText = ""
    user: shapes.UserName | None = None


class SessionOwner(shapes.Query):
    """The agent of a conversation."""

    agent: str = field("", "Only a conversation of this agent; empty: of any.")


class ConversationParameters(SessionOwner):
    """Options of a conversation."""

    records: bool = field(False, "Also return the messages as they are stored.")
    limit: Annotated[int, Field(ge=1)] | None = field(
        None, "Only the newest messages after the summary, at most this many."
    )


class NewSession(RequestBody):
    """A new conversation."""

    agent_id: str = field(description="Its agent, which is created if necessary.", example="atlas")
    id: str | None = field(
        None, "Printable characters without a slash; null: a generated id.", minLength=1, maxLength=MAX_SESSION_CHARS
    )
    metadata: shapes.Metadata | None = None
    user: shapes.UserName | None = None


class NewTurn(RequestBody):
    """A user's prompt and the final answer to it."""

    user: Said
    assistant: Said
    remember: Flag | None = field(None, "Also store both as episodes; null: from the settings.")
    category: str | None = field(None, "Category of the episodes; null: by their texts.")
    expires_at: shapes.Moment | None = field(None, "End of the episodes; null: by their category.")
    agent_id: str | None = field(None, "Starts the session for this agent if it does not exist; null: 404.")
    user_id: shapes.UserName | None = field(None, "The end user a session that is started belongs to.")


@describes(Session)
class SessionBody(RecordBody):
    """A conversation."""

    agent_id: str


class SessionPage(shapes.Page[SessionBody]):
    """Conversations, most recently used first."""


@describes(Message)
class MessageBody(RecordBody):
    """A message."""

    role: Literal[Role.USER, Role.ASSISTANT]


class MessagePage(shapes.Page[MessageBody]):
    """Messages, in order."""


class PromptMessage(BaseModel):
    """A message for a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@describes(Conversation, without=("turns",))
class ConversationBody(RecordBody):
    """The part of a conversation for the next model call."""

    messages: list[PromptMessage] = field(
        description="A system message with the summary, if any, and the messages after it."
    )


class WholeConversation(ConversationBody):
    """A conversation with its messages as they are stored, for requests with `records`."""

    turns: list[MessageBody]


SESSIONS = PagedList[Place | None]("sessions", decode_place, place_of, None, direction="before")
MESSAGES = PagedList("messages", decode_number, attrgetter("position"), 0, READ_LARGE_AT_ONCE)

router = Router(prefix="/api/chat/sessions", tags=["conversations"])
SessionId = Annotated[str, Path(description="The session's id.", examples=["s-7"])]
SessionOf = Annotated[SessionOwner, Query()]


@router.get("", scope=READ)
def list_sessions(tenant: CurrentTenant, filters: Annotated[SessionFilter, Query()]) -> SessionPage:
    """List conversations, most recently used first."""
    if filters.user is not None and not filters.agent:
        raise Invalid("The conversations of a user are those with one agent; name the agent.")
    listed = tenant.sessions.list
    if filters.agent:
        agent = readable_agent(tenant, filters.agent)
        listed = (agent if filters.user is None else agent.for_user(filters.user)).sessions.list
    found, cursor = SESSIONS.read(partial(listed, where=filters.where), filters)
    return SessionPage(items=[_body(each) for each in found], next_cursor=cursor)


def _body(session: Session) -> SessionBody:
    return SessionBody.of(session, agent_id=session.owner.agent)


@router.post("", scope=WRITE, status_code=201)
def create_session(tenant: CurrentTenant, body: NewSession) -> SessionBody:
    """Start a conversation. Its first turn starts it, too. 409 if the id exists."""
    return _body(tenant.agent(body.agent_id).sessions.start(body.id, user=body.user, metadata=body.metadata))


@router.get("/{id}", scope=READ)
def get_session(tenant: CurrentTenant, id: SessionId, of: SessionOf) -> SessionBody:
    """Return a conversation, with its running summary and the number of messages that covers."""
    return _body((readable_agent(tenant, of.agent) if of.agent else tenant).sessions.get(id))


@router.delete("/{id}", scope=WRITE, status_code=204)
def delete_session(tenant: CurrentTenant, id: SessionId, of: SessionOf) -> None:
    """Delete a conversation and its messages permanently. Memories of it stay."""
    _owner(tenant, id, of.agent).sessions.delete(id)


@router.get("/{id}/messages", scope=READ)
def list_messages(tenant: CurrentTenant, id: SessionId, paging: Annotated[SessionFilter, Query()]) -> MessagePage:
    """List messages, in order."""
    owner = _owner(tenant, id, paging.agent)
    found, cursor = MESSAGES.read(partial(owner.sessions.messages, id), paging)
    return MessagePage(items=[MessageBody.of(each) for each in found], next_cursor=cursor)


@router.post("/{id}/messages", scope=WRITE, status_code=201)
def log_turn(tenant: CurrentTenant, id: SessionId, body: NewTurn) -> MessagePage:
    """Store a turn: a user's prompt and the final answer to it. When this route answers, both are on disk. Secrets in
    them are replaced by a mark."""
    agent = tenant.agent(body.agent_id) if body.agent_id is not None else _owner(tenant, id)
    logged = agent.log_turn(id, **body.model_dump(exclude={"agent_id"}))
    return MessagePage(items=[MessageBody.of(each) for each in logged])


@router.post("/{id}/conversation", scope=WRITE)
def get_conversation(
    tenant: CurrentTenant, id: SessionId, options: Annotated[ConversationParameters, Query()]
) -> WholeConversation | ConversationBody:
    """Return the summary of a conversation and the messages after it, ready for the next model call. If the settings
    say so and it has become too long, a model call first folds its oldest turns into the summary. With `agent`, an
    unknown conversation is empty."""
    conversation = _owner(tenant, id, options.agent).sessions.conversation(id, limit=options.limit)
    return (WholeConversation if options.records else ConversationBody).of(conversation)


def _owner(tenant: TenantMemory, id: str, agent: str = "") -> AgentMemory:
    """Return the agent of a conversation, if no other is named. Raises: NotFound."""
    return readable_agent(tenant, agent) if agent else tenant.agent(tenant.sessions.get(id).owner.agent)
