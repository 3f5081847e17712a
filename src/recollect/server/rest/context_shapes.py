"""What requests and answers about working memory look like."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, Strict

from recollect.api.agent import CALLS_PAGE, MAX_CALLS
from recollect.policy.numbers import MAX_TOKENS
from recollect.policy.prompt.window import Layout
from recollect.server.rest.bodies import Given

LayoutName = Annotated[str, Field(json_schema_extra={"enum": [*Layout]})]


class ToolResultBody(Given):
    """What a tool said."""

    content: str
    name: Annotated[str, Field(description="The tool, or the command.", examples=["npm install"])] = ""


class Prompting(Given):
    """What the next prompt is for."""

    session_id: Annotated[str, Field(examples=["s-1"])]
    message: Annotated[str, Field(description="The user's new message; empty: there is none.")] = ""
    system_prompt: Annotated[str | None, Field(description="null: the agent's own.")] = None
    budget: Annotated[
        int | None,
        Strict(),
        Field(
            description="Tokens, all messages together; null: as the settings say.",
            json_schema_extra={"minimum": 1, "maximum": MAX_TOKENS},
        ),
    ] = None
    layout: Annotated[LayoutName | None, Field(description="null: as the settings say.")] = None
    tool_results: Annotated[
        list[str | ToolResultBody] | None,
        Field(description="What tools said in this session; null: what is stored of it with that role."),
    ] = None


class CallFilter(Given):
    """Which calls to list."""

    is_query: ClassVar[bool] = True
    session_id: Annotated[str, Field(description="Only calls of this session.")] = ""
    limit: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_CALLS})] = CALLS_PAGE
    cursor: Annotated[str, Field(description="The `next_cursor` of the page before.")] = ""


class _Record(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, record: Any) -> Self:
        return cls.model_validate(record)


class ItemBody(_Record):
    """One thing a block shows, or would have shown."""

    id: str
    source: str
    score: float | None
    digest: Annotated[str, Field(description="Of its text: the same text has the same digest.")]
    left_out: Annotated[str, Field(description="Why it is not shown: budget, folded, moved, or where else it is.")]


class SeenItemBody(ItemBody):
    """The same, looked at later."""

    text: Annotated[str | None, Field(description="As it reads now; null: it is gone, or nothing that is kept.")]
    since: Annotated[str, Field(description="What happened to it since that call: changed, gone, or nothing.")]


class BlockBody(_Record):
    """One part of a prompt."""

    name: str
    tokens: int
    items: list[ItemBody]


class SeenBlockBody(_Record):
    """The same, looked at later."""

    name: str
    tokens: int
    items: list[SeenItemBody]


class TruncationBody(_Record):
    """One step that was taken to make a prompt fit."""

    step: Annotated[str, Field(examples=["fold", "drop", "reference"])]
    block: str
    tokens_removed: int
    sources: Annotated[list[str], Field(description="What it touched.")]
    message: str
    references: Annotated[list[str], Field(description="Keys under which to read what was moved.")]
    dropped_references: Annotated[list[str], Field(description="Keys the prompt no longer mentions.")]


class ContextBody(_Record):
    """What a model is to be shown."""

    id: str
    messages: list[dict[str, Any]]
    tokens: int
    budget: int
    layout: Layout
    stable_messages: Annotated[int, Field(description="How many of the first will begin the next prompt, too.")]
    blocks: list[BlockBody]
    truncations: list[TruncationBody]


class _Call(_Record):
    id: str
    session_id: str
    at: datetime
    layout: Layout
    budget: int
    tokens: int
    truncations: list[TruncationBody]


class CallBody(_Call):
    """What an agent was shown at one call, by ids and digests."""

    blocks: list[BlockBody]


class SeenCallBody(_Call):
    """What an agent was shown at one call, with the texts as they read now."""

    blocks: list[SeenBlockBody]


class CallPage(BaseModel):
    """Calls, newest first."""

    items: list[CallBody]
    next_cursor: str | None
