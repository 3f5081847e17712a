"""Marks that a transaction leaves for work that is done later: texts to embed, and tenants to maintain.

They are written by the last statements of the transaction, so they are committed with it or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from random import getrandbits
from typing import TYPE_CHECKING, Any

from recollect.ports.memories import SOON

if TYPE_CHECKING:
    from recollect.store.engine import Unit

ID_BITS = 62
"""Size of the random id of a queued row."""

MARK_SECONDS = 10.0
"""Seconds for which a process relies on a mark that it has set."""

MAX_MARKED = 10_000
"""Maximum number of tenants whose marks are remembered."""

WAITING, CHANGED = "texts without a vector", "changed"
"""Keys in `Unit.memo`."""


def note_entries(unit: Unit, entries: Iterable[Mapping[str, Any]]) -> None:
    """Note new entries of the search index: those without a vector are queued at the end of the transaction."""
    unit.memo[CHANGED] = True
    if count := sum(entry["embedder_id"] is None for entry in entries):
        unit.memo[WAITING] = unit.memo.get(WAITING, 0) + count


def note_change(unit: Unit) -> None:
    """Note a change after which maintenance has to visit the tenant."""
    unit.memo[CHANGED] = True


def queue_texts(unit: Unit, count: int, *, due_at: datetime = SOON) -> None:
    """Queue texts of the tenant, which are embedded after `due_at`."""
    unit.put("queue_texts", tenant=unit.tenant, id=getrandbits(ID_BITS), texts=count, due_at=due_at)


class DueMarks:
    """Tenants that this process has marked lately, so that not each of its writes sets the mark again.

    Maintenance may take a mark just before a write relies on it. It therefore visits a tenant that changed once more.
    """

    def __init__(self) -> None:
        self._marked: dict[str, float] = {}

    def finish(self, unit: Unit) -> Sequence[Callable[[], None]]:
        """Write what the transaction noted; return what to call when it is durable."""
        if count := unit.memo.get(WAITING, 0):
            queue_texts(unit, count)
        now, tenant = time.monotonic(), unit.tenant
        if CHANGED not in unit.memo or now - self._marked.get(tenant, -MARK_SECONDS) < MARK_SECONDS:
            return ()
        unit.put("mark_due", tenant=tenant, soon=SOON)
        return (partial(self._keep, tenant, now),)

    def forget(self, tenant: str) -> None:
        """Set the mark again with the next change, because maintenance takes it now."""
        self._marked.pop(tenant, None)

    def _keep(self, tenant: str, at: float) -> None:
        if len(self._marked) >= MAX_MARKED:
            self._marked.clear()
        self._marked[tenant] = at
