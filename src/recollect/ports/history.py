"""What was done, and what a tenant has allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from recollect.model import AuditEvent, AuditReport, Match


class AuditStore(Protocol):
    """What was done, in order, with a hash chain over it."""

    def add_event(self, event: AuditEvent) -> AuditEvent:
        """The event with its number and its hash."""

    def list_events(
        self, tenant: str, *, needle: str = "", before: int | None = None, limit: int = 20
    ) -> Sequence[AuditEvent]:
        """Newest first; `needle` matches anywhere in the message, ignoring case. What was damaged is marked."""

    def find_events(self, tenant: str, ids: Sequence[int]) -> Mapping[int, AuditEvent]:
        """Those that exist, by number."""

    def search_events(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        """Of the newest events (`policy.history.MAX_SEARCHED`) those that share words with `query`, best first; the
        score is how much of the question a message holds, 0 to 1, rare words counting more."""

    def verify_events(self, tenant: str) -> AuditReport:
        """Walk the chain from its first event to its last."""


class AllowanceStore(Protocol):
    """What a tenant has said is no secret, by hash."""

    def add_allowance(self, tenant: str, hash: str, *, now: datetime) -> None: ...

    def list_allowances(self, tenant: str) -> Collection[str]: ...

    def delete_allowance(self, tenant: str, hash: str) -> None: ...
