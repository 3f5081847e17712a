"""What answers look like: each a record of the library, field by field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, create_model

import recollect.model
from recollect.model import (
    Agent,
    ApiKey,
    Appearance,
    AuditEvent,
    Explanation,
    Hit,
    KeyScope,
    Kind,
    Memory,
    MemoryVersion,
    Origin,
    Outcome,
    Role,
    Scope,
    Source,
    State,
)


class _Told(BaseModel):
    """An answer whose fields are a record's, by the same names."""

    @classmethod
    def _of(cls, record: object, **computed: Any) -> Self:
        names, read = _fields(cls, *computed)
        return cls(**dict(zip(names, read(record), strict=True)), **computed)


@cache
def _fields(told: type[BaseModel], *computed: str) -> tuple[Sequence[str], Callable[[object], Sequence[Any]]]:
    """The names that are taken from a record, several at least, and what takes them."""
    names = tuple(name for name in told.model_fields if name not in computed)
    return names, attrgetter(*names)


class ErrorBody(BaseModel):
    """Why a request was refused or failed."""

    ok: Literal[False] = False
    error: Annotated[str, Field(description="A sentence for whoever can act on it.")]
    code: Annotated[str, Field(description="A stable word for programs.", examples=["not_found"])]


# One field for each kind, so that a new kind needs no change here.
_KINDS: dict[str, Any] = {kind.value: int for kind in Kind}
MemoriesCount: type[BaseModel] = create_model(
    "MemoriesCount", __doc__="How many memories of each kind an agent has, archived ones not counted.", **_KINDS
)


class AgentBody(_Told):
    """An agent."""

    id: str
    name: str
    system_prompt: str
    model: str
    tools: list[str]
    knowledge_categories: Annotated[list[str], Field(description="Of documents it may search; empty: all.")]
    colour: str
    icon: str
    is_active: bool
    active: Annotated[bool, Field(description="The same as is_active.")]
    created_at: datetime
    updated_at: datetime
    memories_count: MemoriesCount  # type: ignore[valid-type]

    @classmethod
    def of(cls, agent: Agent, count: BaseModel) -> Self:
        return cls._of(agent, memories_count=count, active=agent.is_active)


class MemoryBody(_Told):
    """A memory, with all of its fields."""

    id: Annotated[str, Field(examples=["m-7"])]
    kind: Kind
    text: str
    tags: list[str]
    scope: Scope
    role: Role
    session_id: str | None
    importance: float
    category: str | None
    origin: Origin
    created_at: datetime
    updated_at: Annotated[datetime | None, Field(description="null: never edited")]
    expires_at: Annotated[datetime | None, Field(description="null: never")]
    last_retrieved_at: datetime | None
    archived_at: datetime | None
    state: State
    version: Annotated[int, Field(description="Goes up with every edit.")]
    supersedes: Annotated[str | None, Field(description="The memory this one corrects.")]
    valid_from: Annotated[datetime | None, Field(description="null: since it was written")]
    valid_to: Annotated[datetime | None, Field(description="Since when something else is true instead.")]
    held_at: Annotated[datetime | None, Field(description="Kept apart until somebody approves it.")]
    flag: Annotated[str | None, Field(description="Why somebody should look at it.")]

    @classmethod
    def of(cls, memory: Memory, now: datetime, **more: Any) -> Self:
        return cls._of(memory, state=memory.state(now), **more)


class SimilarBody(BaseModel):
    """A memory that says nearly the same."""

    id: str
    text: str


class KeptMemory(MemoryBody):
    """A memory that was kept, and those it may double."""

    similar: Annotated[list[SimilarBody], Field(description="What says nearly the same; only of notes and core.")]


class VersionBody(_Told):
    """What a memory said before an edit."""

    memory_id: str
    version: int
    text: str
    tags: list[str]
    importance: float
    replaced_at: datetime

    @classmethod
    def of(cls, version: MemoryVersion) -> Self:
        return cls._of(version)


class HitBody(_Told):
    """One recalled thing."""

    source: Source
    id: str
    text: str
    score: Annotated[float, Field(description="The sum of each part times its weight.")]
    parts: Annotated[dict[str, float], Field(description="similarity, recency, importance, source: each 0 to 1")]
    created_at: datetime
    agent_id: Annotated[str | None, Field(description="Whose it is, or who did it; null: nobody's.")]
    explain: Annotated[str, Field(description="The score as a sum, with the weights.")]

    @classmethod
    def of(cls, hit: Hit) -> Self:
        return cls._of(hit)


class AgentPage(BaseModel):
    """Agents by id."""

    items: list[AgentBody]
    next_cursor: str | None


class MemoryPage(BaseModel):
    """Memories, in the order the route says."""

    items: list[MemoryBody]
    next_cursor: str | None = None


class VersionPage(BaseModel):
    """What a memory said before its edits, newest first."""

    items: list[VersionBody]
    next_cursor: str | None = None


class MissingBody(_Told):
    """A source that has no say in an answer."""

    source: Annotated[str, Field(description=f"{', '.join(Source)}, or the embedder")]
    reason: str


class Recalled(BaseModel):
    """What fits a question best, best first."""

    hits: list[HitBody]
    missing: Annotated[list[MissingBody], Field(description="What did not answer, or not in time; mostly empty.")]
    heading: Annotated[str, Field(description="What the hits are, if there is a purpose.")]

    @classmethod
    def of(cls, recalled: recollect.model.Recalled) -> Self:
        missing = [MissingBody._of(each) for each in recalled.unanswered]
        return cls(hits=[HitBody.of(hit) for hit in recalled], missing=missing, heading=recalled.heading)


class RivalBody(BaseModel):
    """What was shown instead."""

    id: str
    score: float


class AppearanceBody(_Told):
    """What became of it in one prompt."""

    call_id: str
    session_id: str
    at: datetime
    block: str
    left_out: Annotated[str, Field(description="Why it was not shown: budget, moved, or where else; empty: it was.")]

    @classmethod
    def of(cls, appearance: Appearance) -> Self:
        return cls._of(appearance)


class Explained(BaseModel):
    """Why something was recalled, or was not."""

    id: str
    outcome: Outcome
    sentence: str
    rank: Annotated[int | None, Field(description="1 is the first; null: it has none.")]
    hit: Annotated[HitBody | None, Field(description="As it was weighed, if it was.")]
    words: Annotated[list[str], Field(description="Words of the question that it holds.")]
    rival: Annotated[RivalBody | None, Field(description="The last one shown instead, or the one it doubles.")]
    missing: list[MissingBody]
    prompts: Annotated[list[AppearanceBody], Field(description="Those of the agent's latest 20 that had it.")]

    @classmethod
    def of(cls, explanation: Explanation) -> Self:
        hit, rival = explanation.hit, explanation.rival
        return cls(
            id=explanation.id,
            outcome=explanation.outcome,
            sentence=explanation.sentence,
            rank=explanation.rank,
            hit=None if hit is None else HitBody.of(hit),
            words=list(explanation.words),
            rival=None if rival is None else RivalBody(id=rival.id, score=rival.score),
            missing=[MissingBody._of(each) for each in explanation.unanswered],
            prompts=[AppearanceBody.of(each) for each in explanation.prompts],
        )


class PrivateMemory(BaseModel):
    """The block that belongs behind the agent's system prompt."""

    text: Annotated[str | None, Field(description="null: there is nothing to say")]


class Injected(BaseModel):
    """The block of notes for the next prompt."""

    text: Annotated[str | None, Field(description="null: there is nothing to show")]


class ApprovedWorkspace(BaseModel):
    """The notes of a workspace's file that are trusted from now on."""

    approved: Annotated[int, Field(description="How many there were.")]


class EventBody(_Told):
    """One thing that was done, told without the text it was done to."""

    id: int
    at: datetime
    action: Annotated[str, Field(description="A stable word.", examples=["memory.add"])]
    agent_id: str | None
    actor: Annotated[str, Field(description="The id of the key that did it, or a program's name; empty: unknown.")]
    message: str
    meta: dict[str, Any]
    hash: Annotated[str, Field(description="Seals this event and, through it, all before it.")]
    is_damaged: Annotated[bool, Field(description="Somebody changed the row past us; this is what can be read of it.")]

    @classmethod
    def of(cls, event: AuditEvent) -> Self:
        return cls._of(event)


class EventPage(BaseModel):
    """What was done, newest first."""

    items: list[EventBody]
    next_cursor: str | None


class Maintained(BaseModel):
    """What one run of maintenance did."""

    agents: int
    examined: int
    archived: Annotated[int, Field(description="expired, faded and over_quota together")]
    expired: int
    faded: int
    over_quota: int
    swept: Annotated[int, Field(description="Texts of details that no detail has any more; they were removed.")]
    embedded: int
    embedding_problem: Annotated[str, Field(description="Why vectors are still missing, if they are.")]


class SightingBody(BaseModel):
    """A memory that seems to hold a secret. Never the secret."""

    agent: str
    id: str
    rules: Annotated[list[str], Field(description="Which rules say so.")]


class Scanned(BaseModel):
    """Every stored memory that seems to hold a secret."""

    items: list[SightingBody]


class Allowed(BaseModel):
    """What is no longer taken for a secret."""

    allowed: Annotated[int, Field(description="How many pieces of the text looked like one.")]


class KeyBody(_Told):
    """A key, without the key."""

    id: str
    scope: KeyScope
    name: str
    created_at: datetime
    last_used_at: Annotated[datetime | None, Field(description="To within five minutes; null: never")]
    expires_at: Annotated[datetime | None, Field(description="null: never")]
    revoked_at: datetime | None
    agents: Annotated[list[str], Field(description="The agents it is for; empty: all of the tenant.")]
    trust: Annotated[Origin | None, Field(description="The most trusted origin it may claim; null: any")]

    @classmethod
    def of(cls, record: ApiKey, **more: Any) -> Self:
        return cls._of(record, agents=list(record.agents), **more)


class IssuedKeyBody(KeyBody):
    """A key that was just made."""

    key: Annotated[str, Field(description="What to send as Authorization: Bearer …; it is not told again.")]


class KeyPage(BaseModel):
    """Keys, oldest first."""

    items: list[KeyBody]
    next_cursor: str | None = None


class Alive(BaseModel):
    """What anybody may know."""

    status: Literal["ok", "degraded"]


class Health(Alive):
    """Whether everything works."""

    version: str
    engine: Literal["sqlite", "postgres"]
    embedder: str
    problems: Annotated[list[str], Field(description="What is wrong, in sentences.")]
