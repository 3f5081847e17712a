"""What requests and answers look like.

Types are checked here and rules in the library, which explains a refusal best. The limits and choices shown in the
OpenAPI document come from the library's own tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from recollect.agent_memory import ANY_STATE, MAX_PAGE, PAGE
from recollect.model import Agent, Hit, Kind, Memory, MemoryVersion, Origin, Role, Scope, Source, State
from recollect.policy.agents import MAX_CHARS, MAX_TOOLS
from recollect.policy.kinds import MAX_TAGS, RULES
from recollect.services.recall import MAX_LIMIT

NOTE_CHARS, MEMORY_CHARS = RULES[Kind.NOTE].max_chars, RULES[Kind.EPISODE].max_chars


def _one_of(values: Iterable[str]) -> Any:
    """Shows the choices; it is the library that refuses others, in its own words."""
    return Field(json_schema_extra={"enum": [*values]})


def _iso_text(value: object) -> object:
    if not isinstance(value, str) or "T" not in value.upper():
        raise ValueError("must be a time such as 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[datetime, BeforeValidator(_iso_text)]
Number = Annotated[float, Strict()]
Tags = Annotated[list[str], Field(json_schema_extra={"maxItems": MAX_TAGS}, examples=[["preference"]])]
MemoryText = Annotated[
    str,
    Field(
        description=f"At most {NOTE_CHARS:,} characters in a note, {MEMORY_CHARS:,} in other kinds.",
        json_schema_extra={"minLength": 1, "maxLength": MEMORY_CHARS},
        examples=["Prefers tabs over spaces"],
    ),
]
Importance = Annotated[Number, Field(json_schema_extra={"minimum": 0, "maximum": 1}, examples=[0.5])]
KindName = Annotated[str, _one_of(Kind)]
ScopeName = Annotated[str, _one_of(Scope)]
RoleName = Annotated[str, _one_of(Role)]
OriginName = Annotated[str, _one_of(Origin)]
StateName = Annotated[str, _one_of([*State, ANY_STATE])]


class Given(BaseModel):
    """What a client sends. A field nobody knows is refused, so that a typing mistake is never ignored."""

    model_config = ConfigDict(extra="forbid")
    is_query: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, given: Any) -> Any:
        for name in given if isinstance(given, dict) else ():
            if name not in cls.model_fields:
                raise PydanticCustomError(
                    "unknown_field",
                    "There is no {what} {name}; there are: {known}.",
                    {
                        "what": "parameter" if cls.is_query else "field",
                        "name": repr(name[:40]),
                        "known": ", ".join(cls.model_fields),
                    },
                )
        return given


def _without_defaults(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        field.pop("default", None)


class Patch(Given):
    """What to change. The defaults below are never used: what is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)


class AgentPatch(Patch):
    """What to change on an agent; what is left out stays."""

    name: Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_CHARS["name"]})] = ""
    system_prompt: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["system_prompt"]})] = ""
    model: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["model"]})] = ""
    tools: Annotated[list[str], Field(json_schema_extra={"maxItems": MAX_TOOLS})] = []
    colour: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["colour"]})] = ""
    icon: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["icon"]})] = ""
    is_active: Annotated[bool, Strict()] = True


class NewAgent(AgentPatch):
    """An agent to be made; without a name it is called by its id."""

    id: Annotated[
        str,
        Field(
            description="Letters, digits and . _ - @ : +; begins with a letter, digit or _.",
            json_schema_extra={"minLength": 1, "maxLength": 128},
            examples=["atlas"],
        ),
    ]


class NewMemory(Given):
    """A memory to be kept. What is left out (or null) is filled in by the rules of its kind."""

    text: MemoryText
    kind: KindName = Kind.NOTE.value
    tags: Tags = []
    scope: ScopeName | None = None
    role: RoleName | None = None
    session_id: str | None = None
    importance: Importance | None = None
    category: str | None = None
    origin: OriginName | None = None
    created_at: Moment | None = None
    expires_at: Moment | None = None


class MemoryPatch(Patch):
    """What to change on a memory; what is left out stays, and what it said before is kept as history."""

    text: MemoryText = ""
    tags: Tags = []
    importance: Importance = 0.0


class Question(Given):
    """What to recall."""

    query: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["which indentation?"])]
    limit: Annotated[int, Strict(), Field(json_schema_extra={"minimum": 1, "maximum": MAX_LIMIT})] = 5
    kinds: Annotated[list[str] | None, Field(description=f"Only these of {', '.join(Kind)}; null: all.")] = None


class Paging(Given):
    """How much of a listing to answer with, and where to go on."""

    is_query: ClassVar[bool] = True
    limit: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_PAGE})] = PAGE
    cursor: Annotated[str, Field(description="The `next_cursor` of the page before.")] = ""


class MemoryFilter(Paging):
    """Which memories to list."""

    kind: Annotated[KindName | None, Field(description="Only memories of this kind.")] = None
    tag: Annotated[str, Field(description="Only memories with this tag, ignoring case.")] = ""
    q: Annotated[str, Field(description="Only memories whose text holds this, ignoring case.")] = ""
    state: StateName = State.LIVE.value


class ErrorBody(BaseModel):
    """Why a request was refused or failed."""

    ok: Literal[False] = False
    error: Annotated[str, Field(description="A sentence for whoever can act on it.")]
    code: Annotated[str, Field(description="A stable word for programs.", examples=["not_found"])]


class MemoriesCount(BaseModel):
    """How many memories of each kind an agent has, archived ones not counted."""

    core: int
    journal: int
    note: int
    episode: int


class AgentBody(BaseModel):
    """An agent."""

    id: str
    name: str
    system_prompt: str
    model: str
    tools: list[str]
    colour: str
    icon: str
    is_active: bool
    created_at: datetime
    updated_at: datetime
    memories_count: MemoriesCount

    @classmethod
    def of(cls, agent: Agent, count: MemoriesCount) -> Self:
        return cls(
            id=agent.id,
            name=agent.name,
            system_prompt=agent.system_prompt,
            model=agent.model,
            tools=list(agent.tools),
            colour=agent.colour,
            icon=agent.icon,
            is_active=agent.is_active,
            created_at=agent.created_at,
            updated_at=agent.updated_at,
            memories_count=count,
        )


class MemoryBody(BaseModel):
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

    @classmethod
    def of(cls, memory: Memory, now: datetime) -> Self:
        return cls(
            id=memory.id,
            kind=memory.kind,
            text=memory.text,
            tags=list(memory.tags),
            scope=memory.scope,
            role=memory.role,
            session_id=memory.session_id,
            importance=memory.importance,
            category=memory.category,
            origin=memory.origin,
            created_at=memory.created_at,
            updated_at=memory.updated_at,
            expires_at=memory.expires_at,
            last_retrieved_at=memory.last_retrieved_at,
            archived_at=memory.archived_at,
            state=memory.state(now),
            version=memory.version,
        )


class VersionBody(BaseModel):
    """What a memory said before an edit."""

    memory_id: str
    version: int
    text: str
    tags: list[str]
    importance: float
    replaced_at: datetime

    @classmethod
    def of(cls, version: MemoryVersion) -> Self:
        return cls(
            memory_id=version.memory_id,
            version=version.version,
            text=version.text,
            tags=list(version.tags),
            importance=version.importance,
            replaced_at=version.replaced_at,
        )


class HitBody(BaseModel):
    """One recalled thing."""

    source: Source
    id: str
    text: str
    score: Annotated[float, Field(description="The sum of each part times its weight.")]
    parts: Annotated[dict[str, float], Field(description="similarity, recency, importance, source: each 0 to 1")]
    created_at: datetime
    explain: Annotated[str, Field(description="The score as a sum, with the weights.")]

    @classmethod
    def of(cls, hit: Hit) -> Self:
        return cls(
            source=hit.source,
            id=hit.id,
            text=hit.text,
            score=hit.score,
            parts=dict(hit.parts),
            created_at=hit.created_at,
            explain=hit.explain,
        )


class AgentPage(BaseModel):
    """Agents by id."""

    items: list[AgentBody]
    next_cursor: str | None


class MemoryPage(BaseModel):
    """Memories, newest first."""

    items: list[MemoryBody]
    next_cursor: str | None


class VersionPage(BaseModel):
    """What a memory said before its edits, newest first."""

    items: list[VersionBody]
    next_cursor: str | None = None


class Recalled(BaseModel):
    """What fits a question best, best first."""

    hits: list[HitBody]


class PrivateMemory(BaseModel):
    """The block that belongs behind the agent's system prompt."""

    text: Annotated[str | None, Field(description="null: there is nothing to say")]


class Health(BaseModel):
    """Whether everything works."""

    status: Literal["ok", "degraded"]
    version: str
    engine: Literal["sqlite", "postgres"]
    embedder: str
    problems: Annotated[list[str], Field(description="What is wrong, in sentences.")]
