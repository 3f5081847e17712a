"""Keeping what an agent was shown, without making the call wait.

Calls gather here and a thread writes them down in batches. Nothing is lost on an orderly close; after a crash the last
second's calls are missing. What belongs to an agent nobody has written to yet waits until somebody has: the first
prompt of a conversation is put together before its first turn is stored.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from recollect.errors import RecollectError
from recollect.model import ContextCall, Owner
from recollect.ports import ContextStore

PAUSE = 1.0
"""Seconds between batches."""

MAX_WAITING = 1_000
"""Calls that may wait for their agent to be made, or for the store to work again; beyond, the oldest are given up."""

log = logging.getLogger("recollect")


class ContextCalls:
    """The calls that wait to be written, and those that were."""

    def __init__(self, store: ContextStore, *, keep: int) -> None:
        self._store = store
        self._keep = keep
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[Owner, list[ContextCall]] = {}
        self._is_new = False  # whether something waits that nobody has tried to write yet
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, call: ContextCall) -> None:
        """Have this call kept; returns at once."""
        if not self._keep:
            return
        with self._lock:
            self._waiting.setdefault(call.owner, []).append(call)
            self._is_new = True
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._serve, name="recollect-context-calls", daemon=True)
                self._thread.start()

    def get(self, owner: Owner, id: str) -> ContextCall:
        """Raises: NotFound."""
        self.flush()
        return self._store.get_context_call(owner, id)

    def latest(self, owner: Owner, *, session_id: str, before: str, limit: int) -> Sequence[ContextCall]:
        """Newest first."""
        self.flush()
        return self._store.list_context_calls(owner, session_id=session_id, before=before, limit=limit)

    def flush(self) -> None:
        """Write down what has gathered.

        Raises: StoreError.
        """
        with self._writing:  # so that who asks sees also what another thread is about to write
            with self._lock:
                batch, self._waiting, self._is_new = self._waiting, {}, False
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
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def _wait_on(self, unwritten: dict[Owner, list[ContextCall]]) -> None:
        with self._lock:
            for owner, calls in self._waiting.items():
                unwritten.setdefault(owner, []).extend(calls)
            self._waiting = {owner: calls[-self._keep :] for owner, calls in unwritten.items()}
            while sum(map(len, self._waiting.values())) > MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]

    def _serve(self) -> None:
        while not self._closed.wait(PAUSE):
            try:
                if self._is_new:
                    self.flush()
            except RecollectError as error:
                log.warning("What agents were shown could not be written down: %s", error)
