"""Reports of background work, checks, consolidation, erasure and transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from recollect.model.records import AuditHead, Kind, Origin, Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundStatus:
    """One background thread and its queue, over all tenants."""

    name: str
    is_running: bool  # True also while there has been nothing to do yet
    waiting: int  # owners, keys or texts in the queue
    oldest_seconds: float  # since the first of them that is due was put there
    set_aside: int  # of those waiting, the ones that failed and let the others pass
    failures: int  # since the start
    given_up: int  # since the start: what the store would never take
    last_error: str  # empty after a success
    idle_seconds: float | None  # since the last success; None before the first


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedText:
    """A memory or passage the embedder refuses, found by its words until it does not."""

    tenant: str
    agent: str  # empty: a passage of a document
    id: str
    tries: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    is_ok: bool
    says: str
    advice: str = ""  # what to do about it


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """What a database says about itself."""

    schema: int  # the number of its newest step
    durability: str  # by what an answered write survives a power cut
    is_durable: bool
    lost: Sequence[str] = ()  # tables and columns it should have
    unmade: Mapping[str, str] = field(default_factory=dict)  # indexes and views it should have: what makes each


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexGaps:
    """Where a tenant's search index and what it is an index of disagree."""

    missing: int  # texts that should be found and are not in it
    surplus: int  # entries of texts that should not be found, or that say something else by now


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongWords:
    """An entry of the search index that holds other words than its text."""

    shelf: str  # memory, knowledge or workflow
    agent: str  # whose memory it is; empty on the shelves of a tenant
    seq: int
    name: str  # as a finding names it: atlas/m-7, d-0f34/2, refund-run/3


class ProposalState(StrEnum):
    """What has become of a proposal."""

    OPEN = "open"
    APPLIED = "applied"
    REJECTED = "rejected"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One memory a proposal takes in, as it was when the proposal was made and as applying left it."""

    id: str
    version: int
    ended_version: int | None = None  # None: not applied
    valid_to: datetime | None = None  # what it had before


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One memory that could stand for several."""

    id: str = ""  # "p-3"; the store gives it
    owner: Owner
    kind: Kind
    text: str
    tags: tuple[str, ...] = ()
    folds: tuple[Fold, ...]
    reason: str
    origin: Origin  # how far the new memory can be trusted
    state: ProposalState = ProposalState.OPEN
    memory_id: str | None = None  # what applying it made, or found there already
    is_new: bool = True  # False: found there already, so undoing leaves it
    created_at: datetime
    decided_at: datetime | None = None


Key = tuple[str | int, ...]


class SubjectKind(StrEnum):
    """What is to be erased."""

    TENANT = "tenant"
    AGENT = "agent"
    SESSION = "session"
    MEMORY = "memory"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whom or what an erasure is about."""

    kind: SubjectKind
    agent: str = ""  # the agent, or the one whose memory it is
    id: str = ""  # of the session or the memory
    text: str = ""  # what is mentioned

    @property
    def name(self) -> str:
        """The subject as a caller writes it; a text is never told again."""
        if self.kind is SubjectKind.MEMORY:
            return f"memory:{self.agent}/{self.id}"
        named = {SubjectKind.AGENT: self.agent, SubjectKind.SESSION: self.id}.get(self.kind)
        return self.kind.value if named is None else f"{self.kind.value}:{named}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One row of a tenant, with every text in it."""

    table: str
    key: Key  # without tenant and agent
    agent: str = ""  # whose it is; empty: nobody's
    belongs_to: str = ""  # its session; of an event its action, of a passage its document and place
    texts: tuple[str, ...] = ()
    size: int = 0  # about how many characters the row holds, also where `texts` are left out

    @property
    def id(self) -> str:
        """How people name the row."""
        mark = {"memories": "m-", "proposals": "p-", "memory_versions": "m-", "audit_log": "a-"}.get(self.table, "")
        return mark + "/".join(map(str, self.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing an erasure would remove, or take the words out of."""

    table: str
    agent: str
    id: str
    is_cleared: bool  # it stays, with a mark in place of its text
    excerpt: str  # of what it says


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """How many rows of each table an erasure removed, and in how many it replaced the text."""

    removed: Mapping[str, int] = field(default_factory=dict)
    cleared: Mapping[str, int] = field(default_factory=dict)
    resealed_from: int | None = None  # the first event of the audit log that got another hash
    head_before: AuditHead | None = None  # the log's last event, as it was until then


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an erasure did. It holds nothing of what was erased."""

    tenant: str
    subject: str  # such as "agent:atlas"; of a text only that it was one
    subject_hash: str  # tells later whether somebody was meant, without naming them
    at: datetime
    is_dry_run: bool
    removed: Mapping[str, int]  # rows by table
    cleared: Mapping[str, int]  # rows that stay, with a mark in place of their text
    found: tuple[Finding, ...] = ()  # only of a dry run
    remains: tuple[str, ...] = ()  # what is kept by design
    remnants: tuple[str, ...] = ()  # where bytes may be left, and until when
    events: tuple[int, ...] = ()  # of the audit log, which tell of it
    hash: str = ""  # of all this


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMemory:
    """Something another program remembered, as its file tells it: unchecked."""

    place: str  # where in the file, for whoever is told about it: "line 7", "conversation 3"
    text: str
    agent: str | None = None  # whose it is; None: the agent that was named for the import
    kind: str = "note"
    tags: tuple[str, ...] = ()
    scope: str | None = None
    role: str | None = None
    session_id: str | None = None
    importance: float | None = None
    category: str | None = None
    created_at: datetime | None = None  # None: now
    valid_from: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTurn:
    """One turn of a conversation held elsewhere. Turns of one session come in their order, one behind the other."""

    place: str
    session_id: str  # the same each time the file is read, so that a second import finds it
    user: str
    assistant: str
    agent: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Something in a file that does not come in, and why. The reason never repeats the text."""

    place: str
    reason: str


ForeignItem = ForeignMemory | ForeignTurn | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What a file that was just written holds."""

    tenant: str
    counts: Mapping[str, int]  # by table
    sha256: str  # of everything before the last line, uncompressed
    problems: tuple[str, ...] = ()  # texts that were damaged in the store, and so are not in the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of a file; of a dry run, what would."""

    format: str
    is_dry_run: bool = False
    added: Mapping[str, int] = field(default_factory=dict)  # by table
    present: Mapping[str, int] = field(default_factory=dict)  # were there already, and stay as they are
    refused: tuple[Refused, ...] = ()  # the first of them
    refused_count: int = 0
    problems: tuple[str, ...] = ()  # what somebody should know besides
