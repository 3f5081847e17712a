"""Facts out of conversations: `/api/agents/{agent}/add`, and undoing it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, Field, Strict

from wellkept.memory.fact_requests import MAX_MESSAGES
from wellkept.model import AddedFacts, DroppedFact, FactStep, FoundFact, Kind, Origin
from wellkept.server.http.auth import CurrentAgent, CurrentWellkept
from wellkept.server.http.routing import WRITE, Router
from wellkept.server.rest.memories import MemoryBody
from wellkept.server.rest.shapes import RecordBody, RequestBody, UserName, describes

router = Router(prefix="/api/agents/{agent}", tags=["memories"])


@describes(FactStep)
class FactStepBody(RecordBody):
    """A change that `add` made."""


class NewFacts(RequestBody):
    """A conversation to read facts out of."""

    messages: Annotated[
        list[dict[str, Any]],
        Field(
            description="Mappings with `role` and `content`, as chat models take them.",
            json_schema_extra={"maxItems": MAX_MESSAGES},
            examples=[[{"role": "user", "content": "I'm allergic to penicillin."}]],
        ),
    ]
    session_id: Annotated[str | None, Field(description="The conversation that the facts come from.")] = None
    user: UserName | None = None
    metadata: Annotated[
        dict[str, Any] | None, Field(description="Metadata of each new memory.", examples=[{"topic": "health"}])
    ] = None
    dry_run: Annotated[bool, Strict(), Field(description="Store nothing, only show what would be stored.")] = False
    records: Annotated[bool, Strict(), Field(description="Also return each memory with all of its fields.")] = False


class UndoFacts(RequestBody):
    """The changes to undo."""

    undo: Annotated[
        list[dict[str, Any]],
        Field(
            description="The `undo` of an answer of `add`.", examples=[[{"change": "added", "id": "m-7", "version": 1}]]
        ),
    ]


class FactBody(RecordBody):
    """A memory that was stored, edited or ended."""

    id: Annotated[str, Field(description="Empty in a dry run, if it is new.", examples=["m-7"])]
    text: str
    turn: Annotated[int, Field(description="Position of the message it comes from, counted from 0.")]
    kind: Kind
    category: str | None
    origin: Origin
    version: int
    replaces: Annotated[str | None, Field(description="The memory it supersedes.")]


class WholeFact(FactBody):
    """A memory that was stored, edited or ended, for requests with `records`."""

    memory: MemoryBody


AnyFact: TypeAlias = WholeFact | FactBody


@describes(DroppedFact)
class DroppedBody(RecordBody):
    """A statement that was not stored. Secrets in it are replaced by a mark."""


@describes(AddedFacts)
class FactsAnswer(RecordBody):
    """Changes to the memories, and what was left out."""

    added: list[AnyFact]
    updated: list[AnyFact]
    superseded: Annotated[
        list[AnyFact],
        Field(description="New memories with the one each `replaces`; without it, memories the user took back."),
    ]

    @classmethod
    def at(cls, result: AddedFacts, now: datetime | None) -> Self:
        def body(fact: FoundFact) -> FactBody:
            change = {"turn": fact.turn, "replaces": fact.replaces}
            if now is None:
                return FactBody.of(fact.memory, **change)
            return WholeFact.of(fact.memory, **change, memory=MemoryBody.at(fact.memory, now))

        facts = {name: [body(each) for each in getattr(result, name)] for name in ("added", "updated", "superseded")}
        return cls.of(result, **facts, dry_run=result.is_dry_run, undo=result.steps)


class UndoneFacts(BaseModel):
    """Result of an undo."""

    undone: Annotated[int, Field(description="Number of memories that were deleted or restored.")]


@router.post("/add", scope=WRITE)
def add_facts(wellkept: CurrentWellkept, memory: CurrentAgent, body: NewFacts) -> FactsAnswer:
    """Store the lasting facts of a conversation. When this route answers, they are on disk. A configured model reads
    the messages; without one, or when it fails, rules do."""
    added = memory.add(**body.model_dump(exclude={"records"}))
    return FactsAnswer.at(added, wellkept.now() if body.records else None)


@router.post("/add/undo", scope=WRITE)
def undo_facts(memory: CurrentAgent, body: UndoFacts) -> UndoneFacts:
    """Undo an `add`: delete what it added and restore what it changed. 409 if one of the memories was changed since."""
    return UndoneFacts(undone=memory.undo_add(body.undo))
