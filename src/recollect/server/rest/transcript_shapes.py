"""What requests and answers about conversations look like. `summarizedCount` is the one name in camel case."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, Strict

from recollect.model import Conversation, Message, Role, Session
from recollect.policy.names import MAX_SESSION_CHARS
from recollect.server.rest.bodies import Given, Paging
from recollect.services.prompt.transcripts import MAX_MESSAGE_CHARS

SummarizedCount = Annotated[
    int,
    Field(serialization_alias="summarizedCount", description="How many of its first messages the summary covers."),
]
Said = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_MESSAGE_CHARS})]


class SessionFilter(Paging):
    """Which conversations to list."""

    agent: Annotated[str, Field(description="Only this agent's; empty: everybody's.", examples=["atlas"])] = ""


class NewSession(Given):
    """A conversation to be begun."""

    agent_id: Annotated[str, Field(description="Whose it is; the agent is made if need be.", examples=["atlas"])]
    id: Annotated[
        str | None,
        Field(
            description="An id of your own: printable characters without a slash; null: a new one.",
            json_schema_extra={"minLength": 1, "maxLength": MAX_SESSION_CHARS},
        ),
    ] = None


class NewTurn(Given):
    """A user's prompt and the final answer to it."""

    user: Said
    assistant: Said
    remember: Annotated[
        Annotated[bool, Strict()] | None,
        Field(description="Whether both are also remembered as episodes; null: as the settings say."),
    ] = None
    agent_id: Annotated[
        str | None, Field(description="Begins the session for this agent if there is none yet; null: then 404.")
    ] = None


class SessionBody(BaseModel):
    """A conversation."""

    id: str
    agent_id: str
    summary: Annotated[str, Field(description="Of its first messages; empty: there is none.")]
    summarized_count: SummarizedCount
    message_count: int
    created_at: datetime
    updated_at: Annotated[datetime, Field(description="When the last turn was logged.")]

    @classmethod
    def of(cls, session: Session) -> Self:
        return cls(
            id=session.id,
            agent_id=session.owner.agent,
            summary=session.summary,
            summarized_count=session.summarized_count,
            message_count=session.message_count,
            created_at=session.created_at,
            updated_at=session.updated_at,
        )


class SessionPage(BaseModel):
    """Conversations, the one used last first."""

    items: list[SessionBody]
    next_cursor: str | None


class MessageBody(BaseModel):
    """One thing that was said."""

    session_id: str
    position: Annotated[int, Field(description="1 is the first of its session.")]
    role: Literal[Role.USER, Role.ASSISTANT]
    content: str
    created_at: datetime

    @classmethod
    def of(cls, message: Message) -> Self:
        return cls(
            session_id=message.session_id,
            position=message.position,
            role=Role.USER if message.role is Role.USER else Role.ASSISTANT,
            content=message.content,
            created_at=message.created_at,
        )


class MessagePage(BaseModel):
    """What was said, in order."""

    items: list[MessageBody]
    next_cursor: str | None = None


class PromptMessage(BaseModel):
    """One message for a model."""

    role: Literal["system", "user", "assistant"]
    content: str


class ConversationBody(BaseModel):
    """What the next model call needs of a conversation."""

    session_id: str
    summary: str
    summarized_count: SummarizedCount
    messages: Annotated[
        list[PromptMessage],
        Field(description="A system message with the summary, if any; then what followed."),
    ]

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        return cls(
            session_id=conversation.session_id,
            summary=conversation.summary,
            summarized_count=conversation.summarized_count,
            messages=[PromptMessage(**each) for each in conversation.messages],
        )
