"""Measurements of recalls, prompts, secrets and search indexes, for whoever listens.

The server sets its meter for every request; threads and tasks inherit it. Without one, measuring does nothing. A meter
gets numbers and names of this program's own parts, never a text, a tenant, an agent or a user.
"""

from __future__ import annotations

from contextvars import ContextVar


class Meter:
    """Receiver of measurements that ignores them. A subclass must be safe to call from many threads."""

    def count_recall(self, verb: str, *, is_empty: bool) -> None:
        """Count a recall by its verb, "recall" or "context"."""

    def time_source(self, source: str, seconds: float, *, has_answered: bool) -> None:
        """Record the time that a recall spent on a source, or on the embedder."""

    def count_prompt(self, tokens: int, removed: int) -> None:
        """Count a prompt with the tokens it has and those that were removed to fit the budget."""

    def count_truncation(self, step: str) -> None:
        """Count a step that shortened a prompt: "fold", "drop" or "reference"."""

    def count_secret(self, action: str) -> None:
        """Count a text that seemed to hold a secret by what was done: "reject", "redact" or "flag"."""

    def count_index(self, outcome: str) -> None:
        """Count the use of an index: in memory, "hit", "extended", "compared", "loaded" or "evicted"; or "database"."""


METER: ContextVar[Meter] = ContextVar("wellkept_meter", default=Meter())  # noqa: B039  it has no state
"""Meter of the current thread or task."""
