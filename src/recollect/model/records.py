"""The records: what an agent's memory is made of.

One list of short records (`Memory`) and four shelves: transcripts, details, knowledge and history. A memory's `kind`
picks the rules it lives by, never its schema. Records are values: nothing here reads a clock, a file or a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What a memory is for; `policy.memories.kinds` holds the rules of each."""

    CORE = "core"
    JOURNAL = "journal"
    NOTE = "note"
    EPISODE = "episode"


class Scope(StrEnum):
    """Whom a note is about."""

    USER = "user"
    WORKSPACE = "workspace"
    SESSION = "session"


class Role(StrEnum):
    """Who said what an episode holds."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL_RESULT = "tool_result"


class Origin(StrEnum):
    """Where a memory came from, which is how far it can be trusted."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    IMPORT = "import"
    MODEL = "model"


class State(StrEnum):
    """Whether a memory can still be recalled."""

    LIVE = "live"
    EXPIRED = "expired"
    ARCHIVED = "archived"
    HELD = "held"


class Source(StrEnum):
    """Where a hit was found."""

    MEMORY = "memory"
    AUDIT = "audit"
    WORKFLOW = "workflow"
    KNOWLEDGE = "knowledge"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memories are meant: one agent inside one tenant."""

    tenant: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent and how it presents itself."""

    owner: Owner
    name: str
    system_prompt: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    knowledge_categories: tuple[str, ...] = ()  # of documents it may search; none named: all
    colour: str = ""
    icon: str = ""
    is_active: bool = True
    created_at: datetime
    updated_at: datetime

    @property
    def id(self) -> str:
        return self.owner.agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One short thing worth remembering."""

    id: str = ""  # "m-7"; the store gives it
    owner: Owner
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
    updated_at: datetime | None = None  # None: never edited
    expires_at: datetime | None = None  # None: never
    last_retrieved_at: datetime | None = None
    archived_at: datetime | None = None
    version: int = 1  # goes up with every edit
    supersedes: str | None = None  # the memory this one corrects
    valid_from: datetime | None = None  # since when it is true; None: since it was written
    valid_to: datetime | None = None  # since when something else is true instead
    held_at: datetime | None = None  # kept apart until somebody has looked at it
    flag: str | None = None  # why somebody should

    @property
    def ends_at(self) -> datetime | None:
        """When it stops being recalled, be it by age or by correction."""
        if self.expires_at is None or self.valid_to is None:
            return self.expires_at or self.valid_to
        return min(self.expires_at, self.valid_to)

    def state(self, now: datetime) -> State:
        """Whether this memory can still be recalled at `now`; what was archived later could."""
        if self.archived_at is not None and self.archived_at <= now:
            return State.ARCHIVED
        if self.held_at is not None:
            return State.HELD
        if self.ends_at is not None and self.ends_at <= now:
            return State.EXPIRED
        return State.LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVersion:
    """What a memory said before it was edited."""

    memory_id: str
    version: int
    text: str
    tags: tuple[str, ...]
    importance: float
    replaced_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What is known about a big text that prompts only refer to. The text itself is read in parts."""

    key: str  # "npm-install-x7k2m9qp"
    owner: Owner
    type: str = "text"  # "command_output", "file_content", "api_response" …
    description: str = ""  # one line, for the reference
    summary: str = ""  # what the text holds, made from it
    session_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)  # source, status, duration …
    content_hash: str = ""  # the store gives it, and the next three
    size: int = 0  # bytes as UTF-8
    chars: int = 0
    lines: int = 0
    is_active: bool = True  # False: kept, but neither found nor read
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailPage:
    """Part of a detail, and what remains of it."""

    key: str
    content: str
    offset: int  # where in the text it begins, in characters
    total: int  # characters of the whole text
    next_offset: int | None  # where to go on; None: nothing follows
    first_line: int | None = None  # of the content, counted from 1; None: it is not one run of lines
    last_line: int | None = None
    total_lines: int
    matches: int | None = None  # lines or values found, when something was looked for
    remaining: str  # a sentence: what there is besides, and how to ask for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What goes into a prompt for an output: the output itself, or what stands for it."""

    text: str
    memory_key: str | None = None  # where the output is stored; None: it is short, and the text is all of it

    @property
    def is_captured(self) -> bool:
        return self.memory_key is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a tenant's knowledge."""

    id: str
    tenant: str
    title: str
    category: str = ""
    source: str = ""  # a path or an address, as the user gave it
    content_hash: str
    is_published: bool = True
    created_at: datetime
    updated_at: datetime
    flag: str | None = None  # why somebody should look at it


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One passage of a document, small enough to enter a prompt."""

    id: int = 0  # the store gives it
    tenant: str
    document_id: str
    position: int  # 0 is the document's first passage
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Something agents are taught by a file, word for word."""

    name: str
    description: str
    body: str
    agents: tuple[str, ...] = ()  # who gets it; none named: everybody
    path: str  # the file it comes from
    meta: Mapping[str, Any] = field(default_factory=dict)  # what else the file's front matter says


ACTOR = "actor"
"""The name in an event's `meta` that the store alone writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One thing that was done, told without the text it was done to."""

    id: int = 0  # the store gives it
    tenant: str
    at: datetime
    action: str  # a stable word such as "memory.add"
    agent_id: str | None = None
    message: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    previous_hash: str = ""
    hash: str = ""
    is_damaged: bool = False  # somebody changed the row past us, and not all of it can be read

    @property
    def actor(self) -> str:
        """The id of the key, or the name of the program, on whose behalf it was done; empty: nobody named any."""
        actor = self.meta.get(ACTOR, "")
        return actor if isinstance(actor, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditHead:
    """The last event of an audit log: whoever knows it notices when the log is written anew, or cut short."""

    id: int = 0  # 0: there is none yet
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCheck:
    """A head that was recorded earlier, compared with the log."""

    head: AuditHead
    is_ok: bool
    says: str = ""  # what is wrong, or (`is_ok`) which erasure sealed it anew


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """Whether a tenant's audit log is whole."""

    is_intact: bool
    events: int  # that fit, from the first one on
    broken_at: int | None = None  # the first event that does not fit
    problem: str = ""
    broken: tuple[int, ...] = ()  # the first events that do not fit or are missing
    head: AuditHead = AuditHead()
    keyed_from: int | None = None  # the first event whose hash is keyed


class KeyScope(StrEnum):
    """What a key allows: each scope allows what those before it do."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    OPERATOR = "operator"  # what concerns the whole store: maintenance and metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key to one tenant's memories, without the key itself: nobody can tell it a second time."""

    id: str
    tenant: str
    scope: KeyScope
    name: str = ""
    created_at: datetime
    last_used_at: datetime | None = None  # to within a few minutes; None: never
    expires_at: datetime | None = None  # None: never
    revoked_at: datetime | None = None
    agents: tuple[str, ...] = ()  # the agents it is limited to; empty: all
    trust: Origin | None = None  # the most trusted origin it may give a memory; None: any


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedKey:
    """A key that was just made: the only moment at which it can be told."""

    record: ApiKey
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Match:
    """One search result inside the store: a record's number and how well it fits (higher is better)."""

    seq: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One recalled thing, with its score and what the score is made of."""

    source: Source
    id: str
    text: str
    score: float  # the sum of each part times its weight
    parts: Mapping[str, float]  # similarity, recency, importance, source: each 0 to 1
    weights: Mapping[str, float]
    created_at: datetime
    memory: Memory | None = None  # the whole record, when the source is memory
    agent_id: str | None = None  # whose it is, or who did it
    document: Document | None = None  # what the passage is of, when the source is knowledge

    @property
    def explain(self) -> str:
        """The score as a sum a person can check."""
        terms = (f"{self.weights[name]:g}×{value:.3f} {name}" for name, value in self.parts.items())
        return f"{self.score:.3f} = " + " + ".join(terms)


Json = dict[str, Any]
"""A JSON object on its way to or from the outside."""
