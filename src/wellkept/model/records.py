"""Records of an agent and of its tenant, the hits of a recall, and prompts.

An agent has one list of short records (`Memory`) and four shelves: transcripts, details, knowledge and history. The
`kind` of a memory selects its rules, never its schema. Records are values: nothing here reads a clock, a file or a
database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple, TypeVar

T = TypeVar("T")

HEADING_SEPARATOR = " > "
"""Separator of the headings in the first line of a passage."""


INSIDE: Mapping[str, Any] = {"exclude": True}
"""Metadata of a field that stays inside the library. The metadata of others describe them for the API: `description`,
`examples`, and as `alias` their name in JSON where it differs."""


def described(default: T, description: str, **more: Any) -> T:
    """Define a field with a default and a description for the API."""
    return field(default=default, metadata={"description": description, **more})


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
    knowledge_categories: tuple[str, ...] = described((), "Categories of documents it may search; empty: all.")
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
    updated_at: datetime | None = described(None, "null: never edited")
    expires_at: datetime | None = described(None, "null: never")
    last_retrieved_at: datetime | None = None
    archived_at: datetime | None = None
    version: int = described(1, "Increases with every edit.")
    supersedes: str | None = described(None, "The memory this one corrects.")
    valid_from: datetime | None = described(None, "null: when it was written")
    valid_to: datetime | None = described(None, "Time from which another memory replaces it.")
    held_at: datetime | None = described(None, "Not used until it is approved.")
    flag: str | None = described(None, "Reason for a review.")
    user: str | None = described(None, "The end user it belongs to; null: nobody in particular.")
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of the caller; the value of an item
    namespace: str | None = described(None, "Path of an item; null: no item.", examples=["users/7"])
    item_key: str | None = described(None, "Key of an item in its namespace.")
    ttl_seconds: float | None = field(default=None, metadata=INSIDE)  # reading the item extends its life by this
    told: Fact | None = field(default=None, metadata={**INSIDE, "alias": "fact"})  # parts of what the user said
    sources: tuple[str, ...] = described((), "Turns it came from.", examples=[["m-7"]])
    ended_by: str | None = described(None, "The memory that ended it.")
    ended_as: EndedAs | None = described(None, "How it ended: by a new value, as never true, or as over.")
    forgotten_at: datetime | None = described(None, "Hidden since then at a request to forget; restorable for a while.")

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
    size: int = described(0, "Bytes as UTF-8.")
    chars: int = 0
    lines: int = 0
    is_active: bool = True  # False: kept, but hidden from search and reading
    created_at: datetime
    user: str | None = described(None, "The end user it belongs to; null: none.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailPage:
    """Part of a detail, with its place in the whole."""

    key: str = field(metadata={"alias": "memory_key"})
    content: str
    offset: int = field(metadata={"description": "Start of the part, in characters."})
    total: int = field(metadata={"description": "Characters of the text; with json_path, of the answer."})
    next_offset: int | None = field(metadata={"description": "Offset of the next part; null: there is none."})
    first_line: int | None = described(None, "First line of the content, from 1; null: it is no range of lines.")
    last_line: int | None = None
    total_lines: int
    matches: int | None = described(None, "With grep and json_path, the number of matches in the content.")
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
    source: str = described("", "Path or file name; empty: it was sent as text.")
    content_hash: str
    is_published: bool = True
    created_at: datetime
    updated_at: datetime
    flag: str | None = described(None, "Reason for a review.")
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
    agents: tuple[str, ...] = described((), "Its agents; empty: all.")
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


_PAGES = re.compile(r" \(pages? ([0-9]{1,9})(?:–[0-9]{1,9})?\)$")

WEAK = 0.2
"""Relevance below which a hit is weak: it is the nearest there is, and probably no answer."""


NOTHING_FITS = "Nothing fits well; these are the nearest."
"""Sentence for an answer that has only weak hits."""


class HeldWord(NamedTuple):
    """Rare word of a question that a hit holds: an identifier, a number or a name."""

    word: str
    holders: int  # records of the source that hold it


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One recalled item with its score and the parts of the score."""

    source: Source
    id: str
    text: str
    score: float = field(metadata={"description": "The sum of each part times its weight."})
    parts: Mapping[str, float] = field(metadata={"description": "similarity, recency, importance, source: each 0 to 1"})
    weights: Mapping[str, float]
    created_at: datetime
    memory: Memory | None = None  # set when the source is memory
    agent_id: str | None = described(None, "Its agent; null: none.")
    document: Document | None = None  # set when the source is knowledge
    held: tuple[HeldWord, ...] = field(default=(), metadata=INSIDE)  # rare words that put it first, whatever its score

    @property
    def relevance(self) -> float:
        """Chance, from 0 to 1, that a person would call it relevant."""
        return self.parts["similarity"]

    @property
    def weak(self) -> bool:
        """True if it is only the nearest there is, and probably no answer."""
        return self.relevance < WEAK

    @property
    def title(self) -> str:
        """Title of a passage's document; empty for other sources."""
        return "" if self.document is None else self.document.title

    @property
    def heading(self) -> str:
        """Headings above a passage, from the highest, without the title: "Fees > EU". Empty for other sources."""
        return self._heading_line[0]

    @property
    def page(self) -> int | None:
        """Page on which a passage of a PDF begins."""
        return self._heading_line[1]

    @property
    def _heading_line(self) -> tuple[str, int | None]:
        if self.document is None:
            return "", None
        # A passage begins with its line of headings, written by `knowledge.rules_chunking`.
        line = self.text.partition("\n\n")[0]
        pages = _PAGES.search(line)
        line = line if pages is None else line[: pages.start()]
        title = " ".join(self.document.title.split())
        below = line.removeprefix(title) if line.startswith(title) else "".join(line.partition(HEADING_SEPARATOR)[1:])
        return below.removeprefix(HEADING_SEPARATOR), None if pages is None else int(pages[1])

    @property
    def explain(self) -> str:
        """Score written as a sum of its weighted parts, and why the hit comes first if that is not its score."""
        terms = (f"{self.weights[name]:g}×{value:.3f} {name}" for name, value in self.parts.items())
        reasons = (
            f"; first, because {'it alone holds' if each.holders == 1 else f'only {each.holders} hold'} “{each.word}”"
            for each in self.held
        )
        return f"{self.score:.3f} = " + " + ".join(terms) + "".join(reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A source that failed or exceeded the deadline."""

    source: str = field(metadata={"description": f"{', '.join(Source)}, or the embedder"})
    reason: str


class Recalled(list[Hit]):
    """Hits of a recall, best first.

    `unanswered` lists the sources that failed or timed out. `heading` describes the hits when a purpose was given.
    """

    __slots__ = ("heading", "unanswered")

    def __init__(self, hits: Iterable[Hit] = (), unanswered: Iterable[Unanswered] = (), heading: str = "") -> None:
        super().__init__(hits)
        self.unanswered = tuple(unanswered)
        self.heading = heading


class Outcome(StrEnum):
    """Result of one item in one recall."""

    RECALLED = "recalled"
    OUT_RANKED = "out_ranked"
    BELOW_THRESHOLD = "below_threshold"  # `min_relevance`
    MISSING = "missing"  # or owned by another agent
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    HELD = "held"
    LATER = "later"  # stored after the time given by `as_of`
    FILTERED = "filtered"
    DOUBLE = "double"
    NOT_EMBEDDED = "not_embedded"
    NO_MATCH = "no_match"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """Result of one item in one prompt."""

    call_id: str
    session_id: str
    at: datetime
    block: str
    left_out: str = described(
        "", "Reason it was not shown: budget, moved, below_threshold, or its other place; empty: it was."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Reason an item was or was not recalled; with an empty id, the same for a whole answer."""

    id: str
    outcome: Outcome
    sentence: str
    rank: int | None = described(None, "1 is the first; null: none.")
    hit: Hit | None = None  # with its score
    words: tuple[str, ...] = described((), "Words of the question that it contains.")
    rival: Hit | None = None  # the lowest hit that was returned, or the hit it duplicates
    unanswered: tuple[Unanswered, ...] = field(default=(), metadata={"alias": "missing"})
    hits: tuple[Hit, ...] = ()  # every hit the question recalls
    prompts: tuple[Appearance, ...] = described((), "Those of the agent's latest 20 prompts that had it.")
    text: str = described("", "Its text, if it is at hand.")
    items: tuple[Explanation, ...] = ()  # of a whole answer: each hit, then the best of what was left out


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockItem:
    """One item of a prompt block, shown or left out. Its text is not stored, so that it can be erased."""

    id: str  # unique in its block: "m-7", "turn 3", "tool 1"
    source: str = ""  # memory, audit, workflow, knowledge, turn, skill …
    score: float | None = None
    digest: str = described("", "Digest of the text.")
    left_out: str = described("", "Reason it is not shown: budget, folded, moved, below_threshold, or its place.")
    text: str | None = described(None, "The current text; null: it is deleted, or was never stored.")
    since: str = described("", "Change since that call: changed, gone, or empty.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a prompt: its tokens and items."""

    name: str
    tokens: int
    items: tuple[BlockItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """One step taken to fit a prompt into its budget."""

    step: str = field(metadata={"examples": ["fold", "drop", "reference"]})  # fold, drop or reference
    block: str
    tokens_removed: int
    sources: tuple[str, ...] = field(metadata={"description": "Items it affected."})
    message: str
    references: tuple[str, ...] = described((), "Keys of the texts that were moved.")
    dropped_references: tuple[str, ...] = described((), "Keys the prompt no longer mentions.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemory:
    """A prompt for one model call."""

    id: str  # "c-…"; look it up with `context_call`
    messages: tuple[Json, ...]
    tokens: int
    budget: int
    layout: str
    blocks: tuple[Block, ...]
    truncations: tuple[Truncation, ...]
    stable_messages: int = described(0, "Number of first messages that the next prompt shares.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCall:
    """Record of one prompt, by ids and digests."""

    id: str
    owner: Owner = field(metadata=INSIDE)
    session_id: str = field(metadata={"description": "The conversation that it continued; empty: none."})
    at: datetime
    layout: str
    budget: int
    tokens: int
    blocks: tuple[Block, ...]
    truncations: tuple[Truncation, ...]
    user: str | None = described(None, "The end user it was for; null: none.")
