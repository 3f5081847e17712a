"""Requests that carry an idempotency key, so that a retry does not write twice."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


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
"""The claim of the request at work. The store takes the key in the transaction of the first write it does for it."""


class IdempotencyStore(Protocol):
    """A tenant's idempotency keys, by their hash."""

    def find_answer(self, claim: Claim) -> KeptAnswer | None:
        """Return what is recorded under the claim's key, unless it has expired."""

    def keep_answer(self, claim: Claim, answer: KeptAnswer) -> None:
        """Record the answer, and the key too if the request wrote nothing, unless another request has the key."""

    def renew_key(self, claim: Claim, *, at: datetime, expires_at: datetime) -> None:
        """Record that the request is still at work, unless its answer is there or erased."""

    def prune_answers(self, tenant: str, *, created_until: datetime, max_bytes: int) -> int:
        """Delete keys as old as that, and the oldest ones beyond `max_bytes`. Return how many."""

    def erase_answers(self, tenant: str, *, with_keys: bool = False) -> int:
        """Delete the content of every answer, also of those still being worked out, apart from the one to the request
        that erases. Return how many those were. `with_keys` deletes the keys too."""
