"""Reports of background work, checks, changes, facts, erasure and transfer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from wellkept.model.activity import AuditHead
from wellkept.model.records import INSIDE, Kind, Memory, Owner, State, described


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundStatus:
    """One background thread and its queue, over all tenants."""

    name: str
    is_running: bool  # also True before the first job
    waiting: int  # owners, keys or texts in the queue
    oldest_seconds: float  # age of the oldest entry that is due
    set_aside: int  # waiting entries that failed and are retried after the others
    failures: int  # since the start
    given_up: int  # since the start: entries the store refuses for good
    last_error: str  # empty after a success
    idle_seconds: float | None  # time since the last success; None before the first


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceRun:
    """Last maintenance of the whole store."""

    at: datetime  # its end
    counts: Mapping[str, int]
    error: str = ""  # reason why it ended early, or why texts have no vector


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceStatus:
    """Last and next maintenance of the whole store."""

    last: MaintenanceRun | None = None  # None: none so far
    next_at: datetime | None = None  # None: this process does not run it by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """Size and contents of a whole store."""

    bytes: int
    waiting: int  # texts without a vector
    memories: Mapping[tuple[Kind, State], int]  # as the last maintenance counted them; empty before the first
    last: MaintenanceRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A worker of a Citus cluster."""

    name: str
    problem: str = ""  # why it does not answer; empty if it does
    bytes: int = 0
    damage: tuple[str, ...] = ()
    shards: tuple[int, ...] = ()  # numbers of the shards of agents that it holds


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedText:
    """A memory or passage that the embedder refuses. Recall finds it by words only."""

    tenant: str
    agent: str  # empty for a passage of a document
    id: str
    tries: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """Result of one check."""

    name: str
    is_ok: bool
    says: str
    advice: str = ""  # how to fix it


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """Schema and durability of a database."""

    engine: str  # sqlite or postgres
    schema: int  # number of its newest migration
    durability: str  # mechanism by which a committed write survives a power cut
    is_durable: bool
    lost: Sequence[str] = ()  # missing tables and columns
    unmade: Mapping[str, str] = field(default_factory=dict)  # missing indexes and views, with their SQL
    faster: Sequence[str] = ()  # SQL of missing indexes that searches do without


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexGaps:
    """Differences between a tenant's search index and its texts."""

    missing: int  # texts without an entry
    surplus: int  # entries without a text, or of an older text


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongWords:
    """An index entry whose words differ from its text."""

    shelf: str  # memory, knowledge or workflow
    agent: str  # owner of the memory; empty for shared shelves
    seq: int
    name: str  # as shown to people: atlas/m-7, d-0f34/2, refund-run/3


class ChangeState(StrEnum):
    """State of a change."""

    PROPOSED = "proposed"
    APPLIED = "applied"
    REJECTED = "rejected"
    UNDONE = "undone"


class ChangeCause(StrEnum):
    """Reason for which a change was made or proposed."""

    ADD = "add"  # facts read out of a conversation
    TURN = "turn"  # what a logged turn said ended facts
    CONSOLIDATION = "consolidation"  # maintenance merged or ended memories
    EDIT = "edit"  # somebody changed several memories at once


class ChangeAction(StrEnum):
    """Action of a change on one memory."""

    ADD = "add"
    EDIT = "edit"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedMemory:
    """One memory that a change adds, edits or ends."""

    action: ChangeAction
    id: str = described("", "Empty until the memory is stored.", examples=["m-7"])
    version: int | None = described(None, "The version it is changed from; null: the change adds it.")
    new_version: int | None = described(None, "Its version afterwards; null: not applied, or it was there before.")
    before: Mapping[str, Any] = field(
        default_factory=dict, hash=False, metadata={"description": "Former times and marks that the change replaces."}
    )
    after: Mapping[str, Any] = field(
        default_factory=dict, hash=False, metadata={"description": "What replaces them, or the fields of a new memory."}
    )
    text: str = described("", "What the memory says; empty if it was deleted.")
    former_text: str | None = described(None, "What it said before; null: the same.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of several memories that can be shown, applied and undone as a whole."""

    id: str = field(default="", metadata={"examples": ["c-1"]})  # "c-3"; set by the store
    owner: Owner = field(metadata=INSIDE)
    state: ChangeState
    cause: ChangeCause
    reason: str
    text: str = described("", "The memory that a proposed change would add.")
    memories: tuple[ChangedMemory, ...]
    actor: str = described("", "Who made or decided it; empty: unnamed.")
    created_at: datetime
    decided_at: datetime | None = None
    user: str | None = described(None, "The end user whose memories it changes; null: of none.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Answer to a request to forget what a few words mean."""

    forgotten: tuple[Memory, ...] = ()  # hidden, and restorable until maintenance deletes them
    candidates: tuple[Memory, ...] = ()  # what may be meant, or cannot be hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Current facts of a user, newest first, and the block that a prompt shows of them."""

    facts: tuple[Memory, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFact:
    """A memory that `add` stored, edited or ended."""

    memory: Memory  # in a dry run as it would be stored, without an id if it is new
    turn: int  # position of the message it comes from, counted from 0
    replaces: str | None = None  # id of the memory it supersedes

    @property
    def id(self) -> str:
        return self.memory.id

    @property
    def text(self) -> str:
        return self.memory.text


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedFact:
    """A statement or an operation of a model that `add` left out, without any secret it holds."""

    text: str
    turn: int | None  # None if a model named no turn of the conversation
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFacts:
    """Result of `add`."""

    added: tuple[FoundFact, ...] = ()
    updated: tuple[FoundFact, ...] = ()
    superseded: tuple[FoundFact, ...] = ()  # new memories with `replaces`; without it, memories the user took back
    dropped: tuple[DroppedFact, ...] = ()
    source: Literal["rules", "model"] = "rules"
    problem: str = described("", "Why the configured model was not used; empty if it was.")
    is_dry_run: bool = field(default=False, metadata={"alias": "dry_run"})
    change: str | None = described(None, "The change that undoes all of this; null: nothing was stored.")
    revert: Callable[[str], object] = field(default=lambda change: None, repr=False, compare=False, metadata=INSIDE)

    def undo(self) -> None:
        """Undo every change in one transaction. Raises: Conflict when one of the memories was changed since."""
        if self.change is not None:
            self.revert(self.change)


Key = tuple[str | int, ...]


class SubjectKind(StrEnum):
    """Kind of subject to erase."""

    TENANT = "tenant"
    AGENT = "agent"
    SESSION = "session"
    USER = "user"
    MEMORY = "memory"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Subject of an erasure."""

    kind: SubjectKind
    agent: str = ""  # the agent, or the owner of the memory
    id: str = ""  # of the session, the user or the memory
    text: str = ""  # text to look for

    @property
    def name(self) -> str:
        """Subject as a caller writes it; a text is never repeated."""
        if self.kind is SubjectKind.MEMORY:
            return f"memory:{self.agent}/{self.id}"
        named = {SubjectKind.AGENT: self.agent, SubjectKind.SESSION: self.id, SubjectKind.USER: self.id}.get(self.kind)
        return self.kind.value if named is None else f"{self.kind.value}:{named}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One row of a tenant, with every text in it."""

    table: str
    key: Key  # without tenant and agent
    agent: str = ""  # owner; empty for rows of the tenant
    belongs_to: str = ""  # session; for events the action, for passages the document and position
    texts: tuple[str, ...] = ()
    size: int = 0  # approximate characters of the row, also when `texts` is empty
    mark: str = ""  # recognises the row in an import, see `upkeep.rules_erasure.mark_row`
    has_ids: bool = False  # ids in other columns are cleared as well as the text
    has_action: bool = False  # the action of an event is cleared as well

    @property
    def id(self) -> str:
        """Id of the row as shown to people."""
        mark = {"memories": "m-", "changes": "c-", "memory_versions": "m-", "audit_log": "a-"}.get(self.table, "")
        return mark + "/".join(map(str, self.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureFinding:
    """One row that an erasure would remove or clear."""

    table: str
    agent: str = field(metadata={"description": "Its agent; empty: none."})
    id: str
    is_cleared: bool = field(metadata={"description": "It stays, with a mark instead of its text."})
    excerpt: str  # of its text


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Rows that an erasure removed and cleared, by table."""

    removed: Mapping[str, int] = field(default_factory=dict)
    cleared: Mapping[str, int] = field(default_factory=dict)
    resealed_from: int | None = None  # first audit event with a new hash
    head_before: AuditHead | None = None  # head of the audit log before the erasure


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Receipt of an erasure. It contains nothing of the erased text."""

    tenant: str
    subject: str = field(metadata={"description": "Such as agent:atlas; the words of a text are left out."})
    subject_hash: str  # identifies the subject without naming it
    at: datetime
    is_dry_run: bool
    removed: Mapping[str, int] = field(metadata={"description": "Rows by table."})
    cleared: Mapping[str, int] = field(metadata={"description": "Rows that stay, with a mark instead of their text."})
    found: tuple[ErasureFinding, ...] = described((), "What would be erased, the first 1,000; only for a dry run.")
    remains: tuple[str, ...] = described((), "What stays by design.")
    remnants: tuple[str, ...] = described((), "Where bytes may remain, and until when.")
    events: tuple[int, ...] = described((), "Its events in the audit log.")
    hash: str = described("", "Hash of the receipt, without the findings.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMemory:
    """A memory from another program's file, not checked yet."""

    place: str  # in the file, as shown to people: "line 7", "conversation 3"
    text: str
    agent: str | None = None  # owner; None: the agent given for the import
    kind: str = "note"
    tags: tuple[str, ...] = ()
    scope: str | None = None
    role: str | None = None
    session_id: str | None = None
    importance: float | None = None
    category: str | None = None
    created_at: datetime | None = None  # None: now
    valid_from: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    user: str | None = None  # end user it belongs to


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTurn:
    """One turn of a conversation in another program. Turns of a session arrive in order."""

    place: str
    session_id: str  # stable between imports, so that a second import finds it
    user: str
    assistant: str
    agent: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignValue:
    """A value under a namespace and a key from another program's file, not checked yet."""

    place: str
    namespace: tuple[str, ...]
    key: str
    value: Any = field(hash=False)
    agent: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    sliding_ttl: float | None = None  # seconds after the last reading


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedItem:
    """An item that is not imported, and the reason. The reason never repeats the text."""

    place: str = field(metadata={"examples": ["line 7"]})
    reason: str


ForeignItem = ForeignMemory | ForeignTurn | ForeignValue | RefusedItem


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """Report of an export."""

    tenant: str
    counts: Mapping[str, int]  # by table
    sha256: str  # of everything before the last line, uncompressed
    is_signed: bool = False
    problems: tuple[str, ...] = ()  # damaged texts that are missing from the file


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """Content of a backup."""

    created_at: datetime
    texts: int  # texts of details
    bytes: int  # of everything inside, uncompressed
    problems: tuple[str, ...] = ()  # damage of the store that the backup shares


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """Report of an import or of its dry run."""

    format: str = field(metadata={"examples": ["wellkept"]})
    is_dry_run: bool = field(default=False, metadata={"alias": "dry_run"})
    added: Mapping[str, int] = field(
        default_factory=dict,
        metadata={"description": "Rows by table; for files of other programs, memories and turns."},
    )
    present: Mapping[str, int] = field(
        default_factory=dict, metadata={"description": "Items that existed, which stay unchanged."}
    )
    refused: tuple[RefusedItem, ...] = described((), "About the first hundred.")
    refused_count: int = 0
    flagged: tuple[RefusedItem, ...] = described(
        (), "Imported items that seem to hold a secret, about the first hundred."
    )
    flagged_count: int = 0
    problems: tuple[str, ...] = ()  # other remarks
