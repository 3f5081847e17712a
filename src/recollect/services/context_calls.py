"""Keeping what an agent was shown, without making the call wait.

Calls gather here and a thread writes them down in batches; after a crash the last second's are missing. What belongs to
an agent nobody has written to yet waits until somebody has: the first prompt of a conversation is put together before
its first turn is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.model import BackgroundStatus, ContextCall, Owner
from recollect.ports import ContextStore
from recollect.services.later import Later

MAX_WAITING = 1_000
"""Calls that may wait for their agent to be made, or for the store to work again; beyond, the oldest are given up."""


class ContextCalls:
    """The calls that wait to be written, and those that were."""

    def __init__(self, store: ContextStore, *, keep: int) -> None:
        self._store = store
        self._keep = keep
        self._later = Later[Owner, Sequence[ContextCall]](
            lambda owner, calls: store.add_context_calls(owner, calls, keep=keep),
            merge=lambda older, newer: [*older, *newer][-keep:],
            name="context-calls",
            failed="What agents were shown could not be written down",
            size=len,
            max_size=MAX_WAITING,
        )

    def add(self, call: ContextCall) -> None:
        """Have this call kept; returns at once."""
        if self._keep:
            self._later.add(call.owner, [call])

    def get(self, owner: Owner, id: str) -> ContextCall:
        """Raises: NotFound."""
        found = [call for call in self._unwritten(owner) if call.id == id]
        return found[0] if found else self._store.get_context_call(owner, id)

    def latest(self, owner: Owner, *, session_id: str, before: str, limit: int) -> Sequence[ContextCall]:
        """Newest first."""
        unwritten = [
            call
            for call in reversed(self._unwritten(owner))
            if session_id in ("", call.session_id) and (not before or call.id < before)
        ]
        stored = self._store.list_context_calls(owner, session_id=session_id, before=before, limit=limit)
        return [*unwritten, *stored][:limit] if unwritten else stored

    def flush(self, tenant: str) -> None:
        """Write down what has gathered of one tenant; what cannot be written goes on waiting."""
        self._later.flush(lambda owner: owner.tenant == tenant)

    def forget(self, tenant: str) -> None:
        """Give up the calls of a tenant's agents that wait to be written."""
        self._later.forget(lambda owner: owner.tenant == tenant)

    def status(self) -> BackgroundStatus:
        return self._later.status()

    def close(self) -> None:
        """Stop, with everything written.

        Raises: StoreError.
        """
        self._later.close()

    def _unwritten(self, owner: Owner) -> Sequence[ContextCall]:
        """Write down an agent's calls; return those the store does not take at the moment."""
        error = self._later.flush(lambda each: each == owner)
        return () if error is None else self._later.peek(owner) or ()
