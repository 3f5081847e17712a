"""The state of the work that goes on behind the calls."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BackgroundStatus", "RefusedText"]


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
