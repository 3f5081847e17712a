"""Texts that a working embedder refuses: skipped, and retried with exponential backoff."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from wellkept.language.names import memory_id
from wellkept.model import RefusedText
from wellkept.model.stored import Unembedded

FIRST_REST = 60.0
LONGEST_REST = 3600.0
"""Seconds until the first retry of a refused text, and the longest delay between retries."""

MAX_KNOWN = 10_000
"""Maximum number of remembered refusals; the oldest is dropped first and will be refused again."""

Key = tuple[str, str, int, int]
"""Tenant, agent, sequence number and version; an edited text has another key."""


@dataclass(slots=True)
class _Refusal:
    tries: int
    due_at: float
    problem: str


class Refusals:
    """Refused texts of this process, by id. The texts themselves are not kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Key, _Refusal] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, text: Unembedded, problem: str) -> int:
        """Record a refusal and return the number of refusals of this text."""
        with self._lock:
            before = self._known.pop(text_key(text), None)
            tries = 1 if before is None else before.tries + 1
            # The delay doubles with each refusal; the cap on the exponent avoids huge numbers after many tries.
            rest = min(FIRST_REST * 2 ** min(tries - 1, 10), LONGEST_REST)
            self._known[text_key(text)] = _Refusal(tries, time.monotonic() + rest, problem)
            if len(self._known) > MAX_KNOWN:
                del self._known[next(iter(self._known))]
            return tries

    def remove(self, keys: Iterable[Key]) -> None:
        """Forget texts that were embedded, edited or deleted."""
        with self._lock:
            for key in keys:
                self._known.pop(key, None)

    def list_due_tenants(self) -> set[str]:
        """Return the tenants with texts that are due for a retry."""
        now = time.monotonic()
        with self._lock:
            return {key[0] for key, each in self._known.items() if each.due_at <= now}

    def keep_tenants(self, tenants: Collection[str]) -> None:
        """Drop the refusals of all other tenants, which were erased."""
        with self._lock:
            self._known = {key: each for key, each in self._known.items() if key[0] in tenants}

    def keys(self, tenant: str) -> set[Key]:
        """Return the keys of a tenant's refused texts."""
        with self._lock:
            return {key for key in self._known if key[0] == tenant}

    def is_resting(self, text: Unembedded) -> bool:
        """Return True if the text is not yet due for a retry."""
        known = self._known.get(text_key(text))
        return known is not None and time.monotonic() < known.due_at

    def seconds_to_next(self) -> float | None:
        """Return the seconds until the next retry is due; None if there is none."""
        with self._lock:
            due = min((each.due_at for each in self._known.values()), default=None)
        return None if due is None else max(0.0, due - time.monotonic())

    def list(self, tenant: str | None = None) -> Sequence[RefusedText]:
        """Return the refused texts of a tenant, or of all tenants."""
        with self._lock:
            known = [(key, each) for key, each in self._known.items() if tenant in (None, key[0])]
        return [
            RefusedText(
                tenant=tenant_id,
                agent=agent,
                id=memory_id(seq) if agent else f"passage {seq}",
                tries=each.tries,
                problem=each.problem,
            )
            for (tenant_id, agent, seq, _), each in known
        ]


def text_key(text: Unembedded) -> Key:
    """Return the key of a text."""
    return (text.owner.tenant, text.owner.agent, text.seq, text.version)
