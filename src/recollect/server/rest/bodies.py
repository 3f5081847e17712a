"""What requests look like.

Types are checked here and rules in the library, which explains a refusal best. The limits and choices shown in the
OpenAPI document come from the library's own tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from recollect.api.agent import ANY_STATE, MAX_PAGE, PAGE
from recollect.model import KeyScope, Kind, Origin, Role, Scope, Source, State
from recollect.policy.agents import MAX_CHARS, MAX_TOOLS
from recollect.policy.keys import MAX_AGENTS
from recollect.policy.memories.kinds import MAX_TAGS, RULES
from recollect.policy.prompt.relevance import Mode
from recollect.policy.recall.purposes import PURPOSES
from recollect.services.recall.recall import MAX_LIMIT

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
KeyScopeName = Annotated[str, _one_of(KeyScope)]
PurposeName = Annotated[str, _one_of(PURPOSES)]
ModeName = Annotated[str, _one_of(Mode)]


class Given(BaseModel):
    """What a client sends. A field nobody knows is refused, so that a typing mistake is never ignored."""

    model_config = ConfigDict(extra="forbid")
    is_query: ClassVar[bool] = False
    other_names: ClassVar[Mapping[str, str]] = {}  # by which fields are understood too

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        for also, name in cls.other_names.items():
            if also in given and name not in given:
                given = {name if key == also else key: value for key, value in given.items()}
        for name in given:
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
    """What to change on an agent; what is left out stays. `is_active` may be called `active`."""

    other_names: ClassVar[Mapping[str, str]] = {"active": "is_active"}
    name: Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_CHARS["name"]})] = ""
    system_prompt: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["system_prompt"]})] = ""
    model: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["model"]})] = ""
    tools: Annotated[
        list[str],
        Field(
            description="By name or by set; empty: all there are.",
            json_schema_extra={"maxItems": MAX_TOOLS},
        ),
    ] = []
    knowledge_categories: Annotated[
        list[str], Field(description="Of documents it may search; empty: all.", json_schema_extra={"maxItems": 100})
    ] = []
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
    supersedes: Annotated[str | None, Field(description="The id of the memory this one corrects.")] = None
    valid_from: Annotated[Moment | None, Field(description="Since when it is true; null: since it was written.")] = None


class MemoryPatch(Patch):
    """What to change on a memory; what is left out stays, and what it said before is kept as history."""

    text: MemoryText = ""
    tags: Tags = []
    importance: Importance = 0.0
    version: Annotated[
        int,
        Strict(),
        Field(description="The version that is to be changed; 409 if there is a newer one.", examples=[1]),
    ] = 0


class Question(Given):
    """What to recall."""

    query: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["which indentation?"])]
    limit: Annotated[int, Strict(), Field(json_schema_extra={"minimum": 1, "maximum": MAX_LIMIT})] = 5
    kinds: Annotated[list[str] | None, Field(description=f"Only these of {', '.join(Kind)}; null: all.")] = None
    sources: Annotated[
        list[str] | None,
        Field(description=f"Only these of {', '.join(Source)}; null: all, or memory if there are kinds."),
    ] = None
    purpose: Annotated[
        PurposeName | None, Field(description="What it is for: each purpose has its own filter and weights.")
    ] = None
    as_of: Annotated[Moment | None, Field(description="What would have been recalled then; null: now.")] = None


class Doubt(Question):
    """What is to be explained: a question, and the id of what was recalled or was not."""

    id: Annotated[str, Field(description="Of a memory, an audit event, a step or a passage.", examples=["m-7"])]


class Prompted(Given):
    """What the next prompt is about."""

    message: Annotated[str, Field(description="The user's last message.", examples=["which indentation?"])]
    mode: Annotated[ModeName | None, Field(description="How notes are chosen; null: as the settings say.")] = None


class Allowance(Given):
    """What only looks like a secret."""

    text: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["AKIAIOSFODNN7EXAMPLE"])]


class NewKey(Given):
    """A key to be made."""

    scope: Annotated[KeyScopeName, Field(description="What it allows; each allows what those before it do.")]
    name: Annotated[str, Field(description="Whose it is, for people.", json_schema_extra={"maxLength": 100})] = ""
    expires_at: Annotated[Moment | None, Field(description="null: never")] = None
    agents: Annotated[
        list[str] | None,
        Field(
            description="The agents it is for; left out or null: all of the tenant.",
            json_schema_extra={"minItems": 1, "maxItems": MAX_AGENTS},
        ),
    ] = None
    trust: Annotated[OriginName | None, Field(description="The most trusted origin it may claim; null: any")] = None


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
    as_of: Annotated[Moment | None, Field(description="What was true then, each in the state it was in.")] = None


class EventFilter(Paging):
    """Which audit events to list."""

    q: Annotated[str, Field(description="Only events whose message holds this, ignoring case.")] = ""
