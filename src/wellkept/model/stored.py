"""Values that the store and the services exchange: cursors, summaries, claims, and texts without a vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from wellkept.model import NO_USER, Memory, Owner, Session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"
"""Embedding of one text, a unit vector."""

Vectors: TypeAlias = "Sequence[Vector | None]"
"""Vectors of several texts; None where one is computed later. Empty: all are."""

EmbedTexts: TypeAlias = "Callable[[Sequence[str]], Sequence[Vector | None]]"
"""Function that returns a vector for each text; None where it is computed later."""

Place: TypeAlias = tuple[datetime, str]
"""Cursor of a listing by time: continue after this time and id, even if that record has been deleted."""


ToolResult: TypeAlias = str | Mapping[str, str]
"""Result of a tool for a prompt: its text, or `{"content": …, "name": …}`."""


def place_of(session: Session) -> Place:
    """Return the cursor of a session."""
    return session.updated_at, session.id


class MemorySummary(NamedTuple):
    """Fields of a memory that ranking needs. Whole records are built only for the few that are returned."""

    seq: int
    text: str
    importance: float
    created_at: datetime
    since: datetime  # when it became true
    whole: Callable[[], Memory]
    has_ended: bool = False  # by a correction, whatever the clock says


class EncodedMemory(NamedTuple):
    """Values of the columns of a new memory and of its index entry; the number is missing."""

    row: dict[str, Any]
    entry: Mapping[str, Any]


Encoded: TypeAlias = "EncodedMemory | Vector | None"
"""Memory that was encoded, or only its vector."""


@dataclass(frozen=True, slots=True)
class Aging:
    """Fields that decide how long an episode lives."""

    seq: int
    importance: float
    created_at: datetime
    last_retrieved_at: datetime | None
    expires_at: datetime | None
    valid_to: datetime | None = None
    category: str | None = None
    user: str = NO_USER
    has_ended: bool = False  # by a correction, whatever the clock says


class StoreTotals(NamedTuple):
    """Values about the whole store."""

    bytes: int
    waiting: int  # texts that were queued without a vector; those deleted since count until the queue is settled
    records: Mapping[str, tuple[str, datetime]]


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A memory or chunk without a vector."""

    owner: Owner  # of a chunk: the tenant, with no agent
    seq: int
    version: int
    text: str


SOON = datetime(2000, 1, 1, tzinfo=UTC)
"""Due date of what is done with the next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleLogin:
    """A login to the console, or a link that makes one, by the hash of its secret."""

    tenant: str
    hash: str
    key_id: str
    expires_at: datetime
    is_link: bool = False


@dataclass(slots=True, kw_only=True)
class Claim:
    """One request's claim to an idempotency key, committed with the first write of the request."""

    tenant: str
    key_hash: str
    holder: str  # tells this request from others with the same key
    at: datetime
    expires_at: datetime
    is_written: bool = False  # the row is in the database
    is_lost: bool = False  # another request with the same key wrote first
    is_over: bool = False  # the request has ended; a thread that inherited the claim must not use it


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """The answer to a request that carried an idempotency key."""

    at: datetime
    request_hash: str = ""
    status: int | None = None  # None: not answered yet, or the server stopped before it could answer
    content_type: str = ""
    body: bytes | None = None  # None: not kept


CLAIM: ContextVar[Claim | None] = ContextVar("CLAIM", default=None)
"""Claim of the current request. The store takes the key in the transaction of the request's first write."""
