"""Facts: `/api/agents/{agent}/add`, `/profile`, and `/forget` by what a few words mean."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from fastapi import Query
from pydantic import BaseModel, Field, Strict

from wellkept.facts.requests import MAX_MESSAGES
from wellkept.model import AddedFacts, DroppedFact, FoundFact, Kind, Origin
from wellkept.server.http.auth import CurrentAgent, CurrentWellkept
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.rest.memories import MemoryBody
from wellkept.server.rest.shapes import RecordBody, RequestBody, UserName, describes

router = Router(prefix="/api/agents/{agent}", tags=["memories"])


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
        return cls.of(result, **facts, dry_run=result.is_dry_run)


@router.post("/add", scope=WRITE)
def add_facts(wellkept: CurrentWellkept, memory: CurrentAgent, body: NewFacts) -> FactsAnswer:
    """Store the lasting facts of a conversation. When this route answers, they are on disk. A configured model reads
    the messages; without one, or when it fails, rules do."""
    added = memory.add(**body.model_dump(exclude={"records"}))
    return FactsAnswer.at(added, wellkept.now() if body.records else None)


class ProfileQuery(RequestBody):
    """Subject of a profile."""

    is_query: ClassVar[bool] = True

    subject: Annotated[
        str | None,
        Field(
            description="Whom or what it is about: user, a name, or a relation; all if not given.", examples=["sister"]
        ),
    ] = None
    user: UserName | None = None


class ProfileAnswer(BaseModel):
    """Current facts, newest first, and the block of a prompt that shows them."""

    facts: list[MemoryBody]
    text: Annotated[str, Field(description="Empty if nothing is known.")]


class WhatToForget(RequestBody):
    """Words for what to forget."""

    about: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["my old address"])]
    user: UserName | None = None


class ForgottenAnswer(BaseModel):
    """Memories that are hidden now, and those that are not."""

    forgotten: Annotated[list[MemoryBody], Field(description="They can be restored for 30 days.")]
    candidates: Annotated[list[MemoryBody], Field(description="What may be meant, or cannot be hidden.")]


@router.get("/profile", scope=READ)
def get_profile(
    wellkept: CurrentWellkept, memory: CurrentAgent, query: Annotated[ProfileQuery, Query()]
) -> ProfileAnswer:
    """Return what is true now of a user and of those the user spoke about, each fact as a memory."""
    profile, now = memory.profile(subject=query.subject, user=query.user), wellkept.now()
    return ProfileAnswer(facts=[MemoryBody.at(each, now) for each in profile.facts], text=profile.text)


@router.post("/forget", scope=WRITE)
def forget_about(wellkept: CurrentWellkept, memory: CurrentAgent, body: WhatToForget) -> ForgottenAnswer:
    """Forget what a few words mean, with the turns it came from. If it is not clear which memories are meant, nothing
    is forgotten, and the answer has the candidates, best first."""
    done, now = memory.forget(about=body.about, user=body.user), wellkept.now()
    return ForgottenAnswer(
        forgotten=[MemoryBody.at(each, now) for each in done.forgotten],
        candidates=[MemoryBody.at(each, now) for each in done.candidates],
    )
