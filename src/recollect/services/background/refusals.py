"""Texts the embedder refuses though it works: skipped, and tried again after a rest that doubles each time."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from recollect.model import RefusedText
from recollect.policy.names import memory_id
from recollect.ports import Unembedded

FIRST_REST = 60.0
LONGEST_REST = 3600.0

MAX_KNOWN = 10_000
"""Beyond, the one that was refused first is forgotten, and found out again."""

Key = tuple[str, str, int, int]
"""Tenant, agent, number and version: an edited text is another one."""


@dataclass(slots=True)
class _Refusal:
    tries: int
    due_at: float
    problem: str


class Refusals:
    """The refused texts of one process, by id; no text is kept here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Key, _Refusal] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, text: Unembedded, problem: str) -> int:
        """Count a refusal; return how many that makes."""
        with self._lock:
            before = self._known.pop(key_of(text), None)
            tries = 1 if before is None else before.tries + 1
            rest = min(FIRST_REST * 2 ** min(tries - 1, 10), LONGEST_REST)
            self._known[key_of(text)] = _Refusal(tries, time.monotonic() + rest, problem)
            if len(self._known) > MAX_KNOWN:
                del self._known[next(iter(self._known))]
            return tries

    def remove(self, keys: Iterable[Key]) -> None:
        """Forget texts that were embedded, edited or deleted."""
        with self._lock:
            for key in keys:
                self._known.pop(key, None)

    def keep_tenants(self, tenants: Collection[str]) -> None:
        """Forget those of other tenants: they were erased."""
        with self._lock:
            self._known = {key: each for key, each in self._known.items() if key[0] in tenants}

    def keys(self, tenant: str) -> set[Key]:
        """Return what the refused texts of a tenant are known by."""
        with self._lock:
            return {key for key in self._known if key[0] == tenant}

    def is_resting(self, text: Unembedded) -> bool:
        known = self._known.get(key_of(text))
        return known is not None and time.monotonic() < known.due_at

    def seconds_to_next(self) -> float | None:
        """Return how long until the next one is due; None if there is none."""
        with self._lock:
            due = min((each.due_at for each in self._known.values()), default=None)
        return None if due is None else max(0.0, due - time.monotonic())

    def list(self, tenant: str | None = None) -> Sequence[RefusedText]:
        """Return the refused texts of a tenant, or of all."""
        with self._lock:
            known = [(key, each) for key, each in self._known.items() if tenant in (None, key[0])]
        return [
            RefusedText(
                tenant=of,
                agent=agent,
                id=memory_id(seq) if agent else f"passage {seq}",
                tries=each.tries,
                problem=each.problem,
            )
            for (of, agent, seq, _), each in known
        ]


def key_of(text: Unembedded) -> Key:
    """Return what a text is known by."""
    return (text.owner.tenant, text.owner.agent, text.seq, text.version)
