"""Recall and the blocks for a prompt: `/api/agents/{agent}/recall`, `/explain`, `/inject` and `/private-memory`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, Field, Strict

import wellkept.model
from wellkept.language.values import MAX_LIMIT
from wellkept.model import Appearance, Explanation, Hit, Kind, Source, Unanswered
from wellkept.server.http.auth import CurrentAgent, CurrentWellkept
from wellkept.server.http.routing import READ, Router
from wellkept.server.rest.knowledge import DocumentBody
from wellkept.server.rest.memories import MemoryBody
from wellkept.server.rest.shapes import (
    FilterFields,
    MinRelevance,
    ModeName,
    Moment,
    PurposeName,
    RecordBody,
    RequestBody,
    UserName,
    Where,
    describes,
)


class RecallBody(FilterFields):
    """A question to recall for."""

    query: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["which indentation?"])]
    limit: Annotated[int, Strict(), Field(json_schema_extra={"minimum": 1, "maximum": MAX_LIMIT})] = 5
    kinds: Annotated[list[str] | None, Field(description=f"Only these of {', '.join(Kind)}; null: all.")] = None
    sources: Annotated[
        list[str] | None,
        Field(description=f"Only these of {', '.join(Source)}; null: all, or memory if kinds are given."),
    ] = None
    purpose: Annotated[PurposeName | None, Field(description="The purpose, which selects a filter and weights.")] = None
    as_of: Annotated[Moment | None, Field(description="Recall as of this time; null: now.")] = None
    min_relevance: MinRelevance = None
    where: Where = None
    user: UserName | None = None
    records: Annotated[bool, Field(description="Also return the memory or the document of each hit.")] = False
    block: Annotated[bool, Field(description="Also return a block for a prompt, by query, purpose and limit.")] = False


class ExplainBody(RecallBody):
    """A question, and the id of the item to explain."""

    id: Annotated[
        str | None,
        Field(description="Id of a memory, an audit event, a step or a passage; null: all.", examples=["m-7"]),
    ] = None


class InjectBody(RequestBody):
    """The message to choose notes for."""

    message: Annotated[str, Field(description="The user's last message.", examples=["which indentation?"])]
    mode: Annotated[ModeName | None, Field(description="How to choose notes; null: from the settings.")] = None


@describes(Hit, without=("weights", "memory", "document"))
class HitBody(RecordBody):
    """A recalled item."""

    relevance: Annotated[float, Field(description="Chance, 0 to 1, that it helps with the question.")]
    weak: Annotated[bool, Field(description="It is only the nearest there is, and probably no answer.")]
    explain: Annotated[str, Field(description="The score as a sum, with the weights.")]
    title: Annotated[str, Field(description="Title of a passage's document; otherwise empty.")]
    heading: Annotated[str, Field(description="Headings above a passage, without the title.")]
    page: Annotated[int | None, Field(description="Page of a PDF on which a passage begins.")]

    @classmethod
    def at(cls, hit: Hit, now: datetime | None = None) -> HitBody:
        """Return the body of a hit; with its record, as of `now`, if that is given."""
        if now is None:
            return cls.of(hit)
        return WholeHit.of(hit, memory=None if hit.memory is None else MemoryBody.at(hit.memory, now))


class WholeHit(HitBody):
    """A recalled item with its record, for requests with `records`."""

    weights: Annotated[dict[str, float], Field(description="The weight of each part.")]
    memory: MemoryBody | None
    document: DocumentBody | None


AnyHit: TypeAlias = WholeHit | HitBody


@describes(Unanswered)
class MissingBody(RecordBody):
    """A source that did not contribute to an answer."""


class RecallAnswer(BaseModel):
    """Recalled items, best first."""

    hits: list[AnyHit]
    missing: Annotated[list[MissingBody], Field(description="Sources that did not answer in time; usually empty.")]
    heading: Annotated[str, Field(description="Heading for the hits, if there is a purpose.")]

    @classmethod
    def at(cls, recalled: wellkept.model.Recalled, now: datetime | None, **more: Any) -> Self:
        missing = [MissingBody.of(each) for each in recalled.unanswered]
        hits = [HitBody.at(hit, now) for hit in recalled]
        # All of it was made here: it needs no validation.
        return cls.model_construct(hits=hits, missing=missing, heading=recalled.heading, **more)


class RenderedRecall(RecallAnswer):
    """Recalled items and the block of them, for requests with `block`."""

    block: Annotated[str | None, Field(description="The block for the next prompt; null: it is empty.")]


@describes(Appearance)
class AppearanceBody(RecordBody):
    """The item in one prompt."""


@describes(Explanation, without=("hits", "items"))
class ExplainedItem(RecordBody):
    """Reason an item was recalled or not."""

    hit: Annotated[AnyHit | None, Field(description="Its score, if it was scored.")]
    rival: Annotated[AnyHit | None, Field(description="The last item shown instead, or its duplicate.")]

    @classmethod
    def at(cls, explanation: Explanation, now: datetime | None, **more: Any) -> Self:
        hit, rival = explanation.hit, explanation.rival
        shown = {"hit": hit and HitBody.at(hit, now), "rival": rival and HitBody.at(rival, now)}
        return cls.of(explanation, missing=explanation.unanswered, **shown, **more)


class ExplainAnswer(ExplainedItem):
    """Explanation of a recall."""

    items: Annotated[
        list[ExplainedItem], Field(description="Without an `id`: each hit, then the best of what was left out.")
    ] = []

    @classmethod
    def at(cls, explanation: Explanation, now: datetime | None, **more: Any) -> Self:
        return super().at(explanation, now, items=[ExplainedItem.at(each, now) for each in explanation.items], **more)


class WholeExplanation(ExplainAnswer):
    """Explanation of a recall with everything that it recalls, for requests with `records`."""

    hits: list[AnyHit]


class PrivateMemory(BaseModel):
    """The block to append to the agent's system prompt."""

    text: Annotated[str | None, Field(description="null: it is empty")]


class InjectAnswer(BaseModel):
    """The block of notes for the next prompt."""

    text: Annotated[str | None, Field(description="null: it is empty")]


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
