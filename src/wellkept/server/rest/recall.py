"""Recall, working memory, and the log of earlier prompts: `/api/agents/{agent}/recall` to `/context-calls`."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Self, TypeAlias

from fastapi import Path, Query
from pydantic import BaseModel

from wellkept import model
from wellkept.api.views import CALLS_PAGE, MAX_CALLS
from wellkept.language.values import MAX_LIMIT, MAX_TOKENS, check_limit
from wellkept.model import Hit, Kind, Source
from wellkept.prompt.rules_relevance import InjectMode
from wellkept.prompt.rules_window import Layout
from wellkept.recall.rules_ranking import PURPOSES
from wellkept.server.http.auth import CurrentAgent, CurrentWellkept
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import READ_LARGE_AT_ONCE, PagedList, decode_cursor
from wellkept.server.rest import shapes
from wellkept.server.rest.knowledge import DocumentBody
from wellkept.server.rest.memories import MemoryBody
from wellkept.server.rest.shapes import RecordBody, RequestBody, describes, field


class RecallBody(shapes.FilterFields):
    """A question to recall for."""

    query: str = field(minLength=1, example="which indentation?")
    limit: int = field(5, strict=True, minimum=1, maximum=MAX_LIMIT)
    kinds: list[str] | None = field(None, f"Only these of {', '.join(Kind)}; null: all.")
    sources: list[str] | None = field(
        None, f"Only these of {', '.join(Source)}; null: all, or memory if kinds are given."
    )
    purpose: Annotated[str, field(enum=[*PURPOSES])] | None = field(
        None, "The purpose, which selects a filter and weights."
    )
    as_of: shapes.Moment | None = field(None, "Recall as of this time; null: now.")
    min_relevance: shapes.MinRelevance = None
    where: shapes.Where = None
    user: shapes.UserName | None = None
    records: bool = field(False, "Also return the memory or the document of each hit.")
    block: bool = field(False, "Also return a block for a prompt, by query, purpose and limit.")


class ExplainBody(RecallBody):
    """A question, and the id of the item to explain."""

    id: str | None = field(None, "Id of a memory, an audit event, a step or a passage; null: all.", example="m-7")


class InjectBody(RequestBody):
    """The message to choose notes for."""

    message: str = field(description="The user's last message.", example="which indentation?")
    mode: Annotated[str, field(enum=[*InjectMode])] | None = field(
        None, "How to choose notes; null: from the settings."
    )


@describes(Hit, without=("weights", "memory", "document"))
class HitBody(RecordBody):
    """A recalled item."""

    relevance: float = field(description="Chance, 0 to 1, that it helps with the question.")
    weak: bool = field(description="It is only the nearest there is, and probably no answer.")
    explain: str = field(description="The score as a sum, with the weights.")
    title: str = field(description="Title of a passage's document; otherwise empty.")
    heading: str = field(description="Headings above a passage, without the title.")
    page: int | None = field(description="Page of a PDF on which a passage begins.")

    @classmethod
    def at(cls, hit: Hit, now: datetime | None = None) -> HitBody:
        """Return the body of a hit; with its record, as of `now`, if that is given."""
        if now is None:
            return cls.of(hit)
        return WholeHit.of(hit, memory=None if hit.memory is None else MemoryBody.at(hit.memory, now))


class WholeHit(HitBody):
    """A recalled item with its record, for requests with `records`."""

    weights: dict[str, float] = field(description="The weight of each part.")
    memory: MemoryBody | None
    document: DocumentBody | None


AnyHit: TypeAlias = WholeHit | HitBody


@describes(model.Unanswered)
class MissingBody(RecordBody):
    """A source that did not contribute to an answer."""


class RecallAnswer(BaseModel):
    """Recalled items, best first."""

    hits: list[AnyHit]
    missing: list[MissingBody] = field(description="Sources that did not answer in time; usually empty.")
    heading: str = field(description="Heading for the hits, if there is a purpose.")

    @classmethod
    def at(cls, recalled: model.Recalled, now: datetime | None, **more: Any) -> Self:
        missing = [MissingBody.of(each) for each in recalled.unanswered]
        hits = [HitBody.at(hit, now) for hit in recalled]
        # All of it was made here: it needs no validation.
        return cls.model_construct(hits=hits, missing=missing, heading=recalled.heading, **more)


class RenderedRecall(RecallAnswer):
    """Recalled items and the block of them, for requests with `block`."""

    block: str | None = field(description="The block for the next prompt; null: it is empty.")


@describes(model.Appearance)
class AppearanceBody(RecordBody):
    """The item in one prompt."""


@describes(model.Explanation, without=("hits", "items"))
class ExplainedItem(RecordBody):
    """Reason an item was recalled or not."""

    hit: AnyHit | None = field(description="Its score, if it was scored.")
    rival: AnyHit | None = field(description="The last item shown instead, or its duplicate.")

    @classmethod
    def at(cls, explanation: model.Explanation, now: datetime | None, **more: Any) -> Self:
        hit, rival = explanation.hit, explanation.rival
        shown = {"hit": hit and HitBody.at(hit, now), "rival": rival and HitBody.at(rival, now)}
        return cls.of(explanation, missing=explanation.unanswered, **shown, **more)


class ExplainAnswer(ExplainedItem):
    """Explanation of a recall."""

    items: list[ExplainedItem] = field([], "Without an `id`: each hit, then the best of what was left out.")

    @classmethod
    def at(cls, explanation: model.Explanation, now: datetime | None, **more: Any) -> Self:
        return super().at(explanation, now, items=[ExplainedItem.at(each, now) for each in explanation.items], **more)


class WholeExplanation(ExplainAnswer):
    """Explanation of a recall with everything that it recalls, for requests with `records`."""

    hits: list[AnyHit]


class PrivateMemory(BaseModel):
    """The block to append to the agent's system prompt."""

    text: str | None = field(description="null: it is empty")


class InjectAnswer(BaseModel):
    """The block of notes for the next prompt."""

    text: str | None = field(description="null: it is empty")


router = Router(prefix="/api/agents/{agent}", tags=["memories"])


@router.get("/private-memory", scope=READ)
def get_private_memory(memory: CurrentAgent) -> PrivateMemory:
    """Return the core memories and recent journal entries as a block to append to the system prompt."""
    return PrivateMemory(text=memory.private_memory())


@router.post("/inject", scope=READ)
def inject(memory: CurrentAgent, body: InjectBody) -> InjectAnswer:
    """Return the notes that match the user's last message as a block for the next prompt."""
    return InjectAnswer(text=memory.prompts.inject(body.message, mode=body.mode))


@router.post("/recall", scope=READ)
def recall(wellkept: CurrentWellkept, memory: CurrentAgent, body: RecallBody) -> RenderedRecall | RecallAnswer:
    """Recall what matches a question best, by meaning and by words, with the parts of each score: from the agent's
    memories and the tenant's audit log, workflow steps and knowledge."""
    found = memory.recall(body.query, **_recall_options(body))
    now = wellkept.now() if body.records else None
    if body.block:
        # Not of `found`: without a user, a block shows only what belongs to no user.
        block = memory.prompts.recall_block(body.query, purpose=body.purpose, limit=body.limit)
        return RenderedRecall.at(found, now, block=block)
    return RecallAnswer.at(found, now)


@router.post("/explain", scope=READ)
def explain(wellkept: CurrentWellkept, memory: CurrentAgent, body: ExplainBody) -> WholeExplanation | ExplainAnswer:
    """Explain why a question finds an item or not. Takes the fields of recall, and the `id` of the item; without it,
    each hit and the best of what was left out are explained."""
    explained = memory.explain(body.query, body.id, **_recall_options(body))
    if not body.records:
        return ExplainAnswer.at(explained, None)
    now = wellkept.now()
    return WholeExplanation.at(explained, now, hits=[HitBody.at(each, now) for each in explained.hits])


def _recall_options(body: RecallBody) -> dict[str, Any]:
    return body.model_dump(include=set(RecallBody.model_fields) - {"query", "records", "block"})


class ToolResultBody(RequestBody):
    """The result of a tool."""

    content: str
    name: str = field("", "The tool, or the command.", example="npm install")


class ContextRequest(RequestBody):
    """The prompt to build."""

    message: str = field(description="The user's new message; empty: none.")
    session_id: str | None = field(None, "The conversation that the message continues; null: none.", example="s-1")
    system_prompt: str | None = field(None, "null: the agent's own. A blank one becomes: You are <name>.")
    budget: int | None = field(
        None,
        "Tokens of all messages together; null: from the settings.",
        strict=True,
        minimum=1,
        maximum=MAX_TOKENS,
    )
    layout: Annotated[str, field(enum=[*Layout])] | None = field(None, "null: from the settings.")
    tool_results: list[str | ToolResultBody] | None = field(
        None, "Results of tools in this session; null: the stored messages with that role."
    )
    min_relevance: shapes.MinRelevance = None
    where: shapes.Where = None
    user: shapes.UserName | None = field(None, "The reader of the prompt; null: the user of the session.")
    participants: list[str] | None = field(
        None, "Names of those in a group conversation; null: it is none.", example=["Lena", "Otto"]
    )


class CallFilter(shapes.Query):
    """Filter for calls."""

    session_id: str = field("", "Only calls of this session.")
    limit: int = field(CALLS_PAGE, minimum=1, maximum=MAX_CALLS)
    cursor: str = field("", "The `next_cursor` of the previous page.")
    item: str | None = field(None, "List only this id in the blocks; empty: no items.")


@describes(model.BlockItem, without=("text", "since"))
class ItemBody(RecordBody):
    """An item that a block shows, or left out."""


@describes(model.BlockItem)
class SeenItemBody(ItemBody):
    """An item of an earlier prompt, with its current text."""


@describes(model.Block)
class BlockBody(RecordBody):
    """A part of a prompt."""


class SeenBlockBody(RecordBody):
    """A part of an earlier prompt, with current texts."""

    name: str
    tokens: int
    items: list[SeenItemBody]


@describes(model.Truncation)
class TruncationBody(RecordBody):
    """A step that made a prompt fit its budget."""


@describes(model.WorkingMemory)
class ContextBody(RecordBody):
    """A prompt for a model."""

    layout: Layout


@describes(model.ContextCall, without=("blocks",))
class _Call(RecordBody):
    layout: Layout


class CallBody(_Call):
    """An earlier prompt, by ids and digests."""

    blocks: list[BlockBody]


class SeenCallBody(_Call):
    """An earlier prompt, with current texts."""

    blocks: list[SeenBlockBody]


class CallPage(shapes.Page[CallBody]):
    """Calls, newest first."""


CALLS = PagedList("context-calls", decode_cursor, attrgetter("id"), "", READ_LARGE_AT_ONCE, "before")

prompts = Router(prefix="/api/agents/{agent}", tags=["working memory"])


# Not READ: texts that do not fit are stored.
@prompts.post("/context", scope=WRITE)
def build_context(memory: CurrentAgent, body: ContextRequest) -> ContextBody:
    """Build the prompt for a message: chat messages that fit the budget."""
    asked = body.model_dump()
    return ContextBody.of(memory.context(asked.pop("message"), session=asked.pop("session_id"), **asked))


@prompts.get("/context-calls", scope=READ)
def list_context_calls(memory: CurrentAgent, filters: Annotated[CallFilter, Query()]) -> CallPage:
    """List the latest prompts of the agent, newest first, by ids and digests."""
    check_limit(filters.limit, most=MAX_CALLS)
    listed = partial(memory.prompts.list, session_id=filters.session_id, item=filters.item)
    found, cursor = CALLS.read(listed, filters)
    return CallPage(items=[CallBody.of(each) for each in found], next_cursor=cursor)


@prompts.get("/context-calls/{id}", scope=READ)
def get_context_call(
    memory: CurrentAgent, id: Annotated[str, Path(description="The id that the context returned.")]
) -> SeenCallBody:
    """Return an earlier prompt, with what was left out and why; texts are current."""
    return SeenCallBody.of(memory.prompts.get(id))
