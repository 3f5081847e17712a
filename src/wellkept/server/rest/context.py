"""Working memory: `/api/agents/{agent}/context`, and the log of earlier prompts."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated, ClassVar

from fastapi import Path, Query
from pydantic import Field, Strict

from wellkept.api.agent import CALLS_PAGE, MAX_CALLS
from wellkept.language.values import MAX_TOKENS, check_limit
from wellkept.model import Block, BlockItem, ContextCall, Truncation, WorkingMemory
from wellkept.prompt.rules_window import Layout
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import READ_LARGE_AT_ONCE, PagedList, decode_cursor
from wellkept.server.rest.shapes import MinRelevance, Page, RecordBody, RequestBody, UserName, Where, describes

LayoutName = Annotated[str, Field(json_schema_extra={"enum": [*Layout]})]


class ToolResultBody(RequestBody):
    """The result of a tool."""

    content: str
    name: Annotated[str, Field(description="The tool, or the command.", examples=["npm install"])] = ""


class ContextRequest(RequestBody):
    """The prompt to build."""

    message: Annotated[str, Field(description="The user's new message; empty: none.")]
    session_id: Annotated[
        str | None, Field(description="The conversation that the message continues; null: none.", examples=["s-1"])
    ] = None
    system_prompt: Annotated[
        str | None, Field(description="null: the agent's own. A blank one becomes: You are <name>.")
    ] = None
    budget: Annotated[
        int | None,
        Strict(),
        Field(
            description="Tokens of all messages together; null: from the settings.",
            json_schema_extra={"minimum": 1, "maximum": MAX_TOKENS},
        ),
    ] = None
    layout: Annotated[LayoutName | None, Field(description="null: from the settings.")] = None
    tool_results: Annotated[
        list[str | ToolResultBody] | None,
        Field(description="Results of tools in this session; null: the stored messages with that role."),
    ] = None
    min_relevance: MinRelevance = None
    where: Where = None
    user: Annotated[UserName | None, Field(description="The reader of the prompt; null: the user of the session.")] = (
        None
    )
    participants: Annotated[
        list[str] | None,
        Field(description="Names of those in a group conversation; null: it is none.", examples=[["Lena", "Otto"]]),
    ] = None


class CallFilter(RequestBody):
    """Filter for calls."""

    is_query: ClassVar[bool] = True
    session_id: Annotated[str, Field(description="Only calls of this session.")] = ""
    limit: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_CALLS})] = CALLS_PAGE
    cursor: Annotated[str, Field(description="The `next_cursor` of the previous page.")] = ""
    item: Annotated[str | None, Field(description="List only this id in the blocks; empty: no items.")] = None


@describes(BlockItem, without=("text", "since"))
class ItemBody(RecordBody):
    """An item that a block shows, or left out."""


@describes(BlockItem)
class SeenItemBody(ItemBody):
    """An item of an earlier prompt, with its current text."""


@describes(Block)
class BlockBody(RecordBody):
    """A part of a prompt."""


class SeenBlockBody(RecordBody):
    """A part of an earlier prompt, with current texts."""

    name: str
    tokens: int
    items: list[SeenItemBody]


@describes(Truncation)
class TruncationBody(RecordBody):
    """A step that made a prompt fit its budget."""


@describes(WorkingMemory)
class ContextBody(RecordBody):
    """A prompt for a model."""

    layout: Layout


@describes(ContextCall, without=("blocks",))
class _Call(RecordBody):
    layout: Layout


class CallBody(_Call):
    """An earlier prompt, by ids and digests."""

    blocks: list[BlockBody]


class SeenCallBody(_Call):
    """An earlier prompt, with current texts."""

    blocks: list[SeenBlockBody]


class CallPage(Page[CallBody]):
    """Calls, newest first."""


LISTING = PagedList("context-calls", decode_cursor, attrgetter("id"), "", READ_LARGE_AT_ONCE, "before")

router = Router(prefix="/api/agents/{agent}", tags=["working memory"])


# Not READ: texts that do not fit are stored.
@router.post("/context", scope=WRITE)
def build_context(memory: CurrentAgent, body: ContextRequest) -> ContextBody:
    """Build the prompt for a message: chat messages that fit the budget."""
    asked = body.model_dump()
    return ContextBody.of(memory.context(asked.pop("message"), session=asked.pop("session_id"), **asked))


@router.get("/context-calls", scope=READ)
def list_context_calls(memory: CurrentAgent, filters: Annotated[CallFilter, Query()]) -> CallPage:
    """List the latest prompts of the agent, newest first, by ids and digests."""
    check_limit(filters.limit, most=MAX_CALLS)
    listed = partial(memory.prompts.list, session_id=filters.session_id, item=filters.item)
    found, cursor = LISTING.read(listed, filters)
    return CallPage(items=[CallBody.of(each) for each in found], next_cursor=cursor)


@router.get("/context-calls/{id}", scope=READ)
def get_context_call(
    memory: CurrentAgent, id: Annotated[str, Path(description="The id that the context returned.")]
) -> SeenCallBody:
    """Return an earlier prompt, with what was left out and why; texts are current."""
    return SeenCallBody.of(memory.prompts.get(id))
