"""Records of erasure: whom or what it is about, where it was found, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from recollect.model.records import AuditHead

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
