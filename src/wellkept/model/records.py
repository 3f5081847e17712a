"""Memories, agents, details, documents, events and keys.

An agent has one list of short records (`Memory`) and four shelves: transcripts, details, knowledge and history. The
`kind` of a memory selects its rules, never its schema. Records are values: nothing here reads a clock, a file or a
database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

HEADING_SEPARATOR = " > "
"""Separator of the headings in the first line of a passage."""


INSIDE: Mapping[str, Any] = {"exclude": True}
"""Metadata of a field that stays inside the library. The metadata of others describe them for the API: `description`,
`examples`, and as `alias` their name in JSON where it differs."""


class Kind(StrEnum):
    """Kind of a memory, which decides how long it is kept and where a prompt shows it."""

    CORE = "core"
    JOURNAL = "journal"
    NOTE = "note"
    EPISODE = "episode"
    ITEM = "item"


class Scope(StrEnum):
    """Subject of a note."""

    USER = "user"
    WORKSPACE = "workspace"
    SESSION = "session"


class Role(StrEnum):
    """Speaker of an episode."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL_RESULT = "tool_result"


class Origin(StrEnum):
    """Origin of a memory, which decides how far it is trusted."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    IMPORT = "import"
    MODEL = "model"


class State(StrEnum):
    """State of a memory; only live memories are recalled."""

    LIVE = "live"
    EXPIRED = "expired"
    ARCHIVED = "archived"
    HELD = "held"


class EndedAs(StrEnum):
    """Reason for which a memory ended."""

    SUPERSEDED = "superseded"  # it was true, and there is a new value
    WRONG = "wrong"  # it never was true
    OVER = "over"  # it was true: cancelled, died, stopped


class Source(StrEnum):
    """Source of a hit."""

    MEMORY = "memory"
    AUDIT = "audit"
    WORKFLOW = "workflow"
    KNOWLEDGE = "knowledge"


KindName = Kind | Literal["core", "journal", "note", "episode", "item"]
ScopeName = Scope | Literal["user", "workspace", "session"]
RoleName = Role | Literal["user", "assistant", "system", "tool_result"]
OriginName = Origin | Literal["user", "agent", "tool", "import", "model"]
StateName = State | Literal["live", "expired", "archived", "held", "all"]
SourceName = Source | Literal["memory", "audit", "workflow", "knowledge"]
"""Types of the arguments that name them; a test compares them with the enums."""


NO_USER = ""
"""User of an `Owner` that has only the records of no user."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of memories, one agent inside one tenant; with a `user`, narrowed to the records of one end user.

    A record names its agent as owner and its user in a field of its own.
    """

    tenant: str
    agent: str
    user: str | None = None  # None: all records of the agent; `NO_USER`: those of no user
    with_shared: bool = True  # a user also reads the records of no user

    @property
    def whole(self) -> Owner:
        """The agent with all its users."""
        return self if self.user is None else Owner(self.tenant, self.agent)

    def of(self, user: str | None) -> Owner:
        """Return the owner of exactly one user's records, or of those of no user."""
        return Owner(self.tenant, self.agent, user or NO_USER, with_shared=False)

    @property
    def parts(self) -> tuple[Owner, ...]:
        """The owners that together have what this one reads, each of one user at most."""
        return (self.of(self.user), self.of(None)) if self.user and self.with_shared else (self,)

    def has(self, user: str | None) -> bool:
        """Return True if it reads the records of `user`."""
        return self.user is None or (user or NO_USER) == self.user or (user is None and self.with_shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent and its settings."""

    owner: Owner = field(metadata=INSIDE)
    name: str
    system_prompt: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    knowledge_categories: tuple[str, ...] = field(
        default=(), metadata={"description": "Categories of documents it may search; empty: all."}
    )
    colour: str = ""
    icon: str = ""
    is_active: bool = True
    created_at: datetime
    updated_at: datetime

    @property
    def id(self) -> str:
        return self.owner.agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Parts of a sentence that a user said, as far as they are known."""

    subject: str  # "user", a name, or a relation such as "sister"
    attribute: str | None = None  # "lives_in"
    value: str | None = None
    is_remark: bool = False  # only recalled: it is about nobody in particular


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One short record of an agent."""

    id: str = field(default="", metadata={"examples": ["m-7"]})  # "m-7"; set by the store
    owner: Owner = field(metadata=INSIDE)
    kind: Kind
    text: str
    tags: tuple[str, ...] = ()
    scope: Scope = Scope.WORKSPACE
    role: Role = Role.USER
    session_id: str | None = None
    importance: float = 0.5  # 0 to 1
    category: str | None = None
    origin: Origin = Origin.USER
    created_at: datetime
    updated_at: datetime | None = field(default=None, metadata={"description": "null: never edited"})
    expires_at: datetime | None = field(default=None, metadata={"description": "null: never"})
    last_retrieved_at: datetime | None = None
    archived_at: datetime | None = None
    version: int = field(default=1, metadata={"description": "Increases with every edit."})
    supersedes: str | None = field(default=None, metadata={"description": "The memory this one corrects."})
    valid_from: datetime | None = field(default=None, metadata={"description": "null: when it was written"})
    valid_to: datetime | None = field(
        default=None, metadata={"description": "Time from which another memory replaces it."}
    )
    held_at: datetime | None = field(default=None, metadata={"description": "Not used until it is approved."})
    flag: str | None = field(default=None, metadata={"description": "Reason for a review."})
    user: str | None = field(
        default=None, metadata={"description": "The end user it belongs to; null: nobody in particular."}
    )
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of the caller; the value of an item
    namespace: str | None = field(
        default=None, metadata={"description": "Path of an item; null: no item.", "examples": ["users/7"]}
    )
    item_key: str | None = field(default=None, metadata={"description": "Key of an item in its namespace."})
    ttl_seconds: float | None = field(default=None, metadata=INSIDE)  # reading the item extends its life by this
    told: Fact | None = field(default=None, metadata={**INSIDE, "alias": "fact"})  # parts of what the user said
    sources: tuple[str, ...] = field(default=(), metadata={"description": "Turns it came from.", "examples": [["m-7"]]})
    ended_by: str | None = field(default=None, metadata={"description": "The memory that ended it."})
    ended_as: EndedAs | None = field(
        default=None, metadata={"description": "How it ended: by a new value, as never true, or as over."}
    )
    forgotten_at: datetime | None = field(
        default=None, metadata={"description": "Hidden since then at a request to forget; restorable for a while."}
    )

    @property
    def fact(self) -> Fact | None:
        """Whom it is about and what it says of them; None if it is no fact out of a conversation."""
        return None if self.told is None or self.told.is_remark else self.told

    @property
    def home(self) -> Owner:
        """Owner of exactly the memories of its user, or of those of no user."""
        return self.owner.of(self.user)

    @property
    def since(self) -> datetime:
        """Start of its validity."""
        return self.valid_from or self.created_at

    @property
    def ends_at(self) -> datetime | None:
        """Time from which it is no longer recalled, because it expired or was corrected."""
        if self.expires_at is None or self.valid_to is None:
            return self.expires_at or self.valid_to
        return min(self.expires_at, self.valid_to)

    @property
    def has_ended(self) -> bool:
        """True if a correction that was already valid ended it, whatever the clock says now."""
        return self.valid_to is not None and self.updated_at is not None and self.valid_to <= self.updated_at

    def is_corrected(self, now: datetime, *, is_past: bool = False) -> bool:
        """Return True if a correction has ended it."""
        return (self.valid_to is not None and self.valid_to <= now) or (self.has_ended and not is_past)

    def state(self, now: datetime, *, is_past: bool = False) -> State:
        """Return the state at `now`, or at a time that `is_past`: then, what ended later was live.

        What has ended stays so if the clock steps back.
        """
        is_forgotten = self.forgotten_at is not None
        if self.archived_at is not None and (not is_past or is_forgotten or self.archived_at <= now):
            return State.ARCHIVED
        if self.held_at is not None:
            return State.HELD
        is_expired = self.expires_at is not None and self.expires_at <= now
        return State.EXPIRED if is_expired or self.is_corrected(now, is_past=is_past) else State.LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVersion:
    """A former version of an edited memory."""

    memory_id: str
    version: int
    text: str
    tags: tuple[str, ...]
    importance: float
    replaced_at: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Description of a long text that prompts refer to by key. The text itself is read in parts."""

    key: str = field(metadata={"alias": "memory_key"})  # "npm-install-x7k2m9qp"
    owner: Owner = field(metadata=INSIDE)
    type: str = "text"  # "command_output", "file_content", "api_response" …
    description: str = ""  # one line, for the reference
    summary: str = ""  # of the text
    session_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)  # source, status, duration …
    content_hash: str = ""  # set by the store, as are the next three
    size: int = field(default=0, metadata={"description": "Bytes as UTF-8."})
    chars: int = 0
    lines: int = 0
    is_active: bool = True  # False: kept, but hidden from search and reading
    created_at: datetime
    user: str | None = field(default=None, metadata={"description": "The end user it belongs to; null: none."})


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailPage:
    """Part of a detail, with its place in the whole."""

    key: str = field(metadata={"alias": "memory_key"})
    content: str
    offset: int = field(metadata={"description": "Start of the part, in characters."})
    total: int = field(metadata={"description": "Characters of the text; with json_path, of the answer."})
    next_offset: int | None = field(metadata={"description": "Offset of the next part; null: there is none."})
    first_line: int | None = field(
        default=None, metadata={"description": "First line of the content, from 1; null: it is no range of lines."}
    )
    last_line: int | None = None
    total_lines: int
    matches: int | None = field(
        default=None, metadata={"description": "With grep and json_path, the number of matches in the content."}
    )
    remaining: str = field(metadata={"description": "What follows, and how to read it."})


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """Text that replaces an output in a prompt: the output itself if short, otherwise a reference."""

    text: str
    memory_key: str | None = None  # key of the stored output; None if `text` is the whole output

    @property
    def is_captured(self) -> bool:
        return self.memory_key is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a tenant."""

    id: str = field(metadata={"examples": ["d-0f343b0931126a20"]})
    tenant: str = field(metadata=INSIDE)
    title: str
    category: str = ""
    source: str = field(default="", metadata={"description": "Path or file name; empty: it was sent as text."})
    content_hash: str
    is_published: bool = True
    created_at: datetime
    updated_at: datetime
    flag: str | None = field(default=None, metadata={"description": "Reason for a review."})
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of the caller


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSize:
    """A document with the size of its passages."""

    document: Document
    passages: int
    chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One passage of a document, small enough to enter a prompt."""

    id: int = field(default=0, metadata=INSIDE)  # set by the store
    tenant: str = field(metadata=INSIDE)
    document_id: str = field(metadata=INSIDE)
    position: int = field(metadata={"description": "0 is the first."})
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Instructions from a SKILL.md file, used verbatim."""

    name: str
    description: str
    body: str = field(metadata={"description": "The whole text: a skill is never cut."})
    agents: tuple[str, ...] = field(default=(), metadata={"description": "Its agents; empty: all."})
    path: str = field(metadata=INSIDE)  # the file it comes from
    meta: Mapping[str, Any] = field(
        default_factory=dict, metadata={"description": "Further fields of the front matter."}
    )


@dataclass(frozen=True, slots=True)
class Match:
    """One search result inside the store: a record's number and its score (higher is better)."""

    seq: int
    score: float


Json = dict[str, Any]
"""A JSON object."""
