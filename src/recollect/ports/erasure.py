"""Erasing: finding every row that says something, removing rows, and the bytes they leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from recollect.model import Erased, Key, Trace


class ErasureStore(Protocol):
    """What is needed to leave no trace."""

    def list_traces(
        self,
        tenant: str,
        table: str,
        *,
        agent: str = "",
        session_id: str = "",
        after: Key = (),
        limit: int = 500,
    ) -> Sequence[Trace]:
        """The rows of a table with all their texts, by key, beginning behind `after`. A table of agents' rows is read
        for one agent; `session_id` leaves out what belongs to no session or to another."""

    def list_hanging(self, tenant: str, parents: Sequence[Trace]) -> Sequence[Trace]:
        """Return the messages, passages and steps of the sessions, documents and workflows among `parents`, without
        their texts."""

    def plan_sealing(self, tenant: str, cleared: Sequence[Trace]) -> object:
        """Work out how the audit log is sealed without the texts of these events, for `erase_traces`. It takes long and
        writes nothing: call it before the transaction."""

    def erase_traces(
        self, tenant: str, gone: Sequence[Trace], cleared: Sequence[Trace], *, sealing: object = None
    ) -> Erased:
        """Remove rows with all that hangs on them, and put a mark in place of the texts of others; what is not there
        any more is left alone. The audit log stays a chain, unless somebody had broken it before."""

    def forget_cached(self, tenant: str) -> None:
        """Let go of what is held in memory of a tenant's rows; it is read again when it is needed."""

    def scrub(self, *, compact: bool | None = None) -> Sequence[str]:
        """Free the bytes of removed rows; return where some may be left, and until when. `compact` writes the files
        anew, which keeps writers waiting; None does what lets them in between."""
