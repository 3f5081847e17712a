"""Keeping what an agent was shown, without making the call wait.

Calls gather here and a thread writes them down in batches; after a crash the last second's are missing. What belongs to
an agent nobody has written to yet waits until somebody has: the first prompt of a conversation is put together before
its first turn is stored.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from recollect.model import ContextCall, Owner
from recollect.ports import ContextStore
from recollect.services.later import Later

MAX_WAITING = 1_000
"""Calls that may wait for their agent to be made, or for the store to work again; beyond, the oldest are given up."""


class ContextCalls:
    """The calls that wait to be written, and those that were."""

    def __init__(self, store: ContextStore, *, keep: int) -> None:
        self._store = store
        self._keep = keep
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[Owner, list[ContextCall]] = {}
        failed = "What agents were shown could not be written down"
        self._later = Later(self.flush, name="recollect-context-calls", failed=failed)

    def add(self, call: ContextCall) -> None:
        """Have this call kept; returns at once."""
        if not self._keep:
            return
        with self._lock:
            self._waiting.setdefault(call.owner, []).append(call)
        self._later.wake()

    def get(self, owner: Owner, id: str) -> ContextCall:
        """Raises: NotFound."""
        self._later.write()
        return self._store.get_context_call(owner, id)

    def latest(self, owner: Owner, *, session_id: str, before: str, limit: int) -> Sequence[ContextCall]:
        """Newest first."""
        self._later.write()
        return self._store.list_context_calls(owner, session_id=session_id, before=before, limit=limit)

    def flush(self) -> None:
        """Write down what has gathered.

        Raises: StoreError.
        """
        with self._writing:  # so that who asks sees also what another thread is about to write
            with self._lock:
                batch, self._waiting = self._waiting, {}
            try:
                for owner in list(batch):
                    if self._store.add_context_calls(owner, batch[owner], keep=self._keep):
                        del batch[owner]
            finally:
                self._wait_on(batch)

    def forget(self, tenant: str) -> None:
        """Give up the calls of a tenant's agents that wait to be written."""
        with self._lock:
            for owner in [owner for owner in self._waiting if owner.tenant == tenant]:
                del self._waiting[owner]

    def close(self) -> None:
        """Stop, with everything written.

        Raises: StoreError.
        """
        self._later.close()

    def _wait_on(self, unwritten: dict[Owner, list[ContextCall]]) -> None:
        with self._lock:
            for owner, calls in self._waiting.items():
                unwritten.setdefault(owner, []).extend(calls)
            self._waiting = {owner: calls[-self._keep :] for owner, calls in unwritten.items()}
            while sum(map(len, self._waiting.values())) > MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]
