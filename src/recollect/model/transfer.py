"""What leaves a tenant as a file, and what comes in from one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


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
