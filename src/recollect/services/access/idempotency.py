"""Idempotency keys: a request that is sent again is answered again, and not carried out again.

While a request runs under `claiming`, the store records its key in the same transaction as its first write (see
`store.units`). So there are three cases for a retry: no record means that nothing was written and the request can run;
a record with an answer is replayed; a record without one means that the request wrote and is still at work, or that
the server stopped before it could record the answer.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import sha256

from recollect.errors import RequestInProgress
from recollect.ports import Clock, Store
from recollect.ports.history import CLAIM, Claim, KeptAnswer

KEPT_FOR = timedelta(hours=24)
DEAD_AFTER = timedelta(minutes=1)
"""A request that wrote and for this time has neither recorded its answer nor said that it is still at work is taken
for one that never will."""

MAX_TENANT_BYTES = 256 * 1024 * 1024
"""What one tenant's keys and answers may take up; beyond it the oldest are dropped before their time."""

PRUNE_SHARE = 1 / 256
"""How many of the answers that are kept are followed by pruning. By chance, so that nobody can choose which."""

PRUNE_EVERY = timedelta(minutes=5)
"""The time after which the next answer that is kept is followed by pruning anyway."""

MAX_TENANTS = 10_000
"""Tenants of which the time of the latest pruning is remembered."""


class Idempotency:
    """The idempotency keys of every tenant."""

    def __init__(self, store: Store, now: Clock) -> None:
        self._store = store
        self._now = now
        self._pruned: dict[str, datetime] = {}  # two threads that both find a tenant due prune twice, no more

    def claim(self, tenant: str, key: str) -> Claim:
        """Return a claim to `key`; it is recorded when something is written under it."""
        now = self._now()
        return Claim(
            tenant=tenant,
            key_hash=sha256(key.encode()).hexdigest(),
            holder=uuid.uuid4().hex,
            at=now,
            expires_at=now + KEPT_FOR,
        )

    def find(self, claim: Claim) -> KeptAnswer | None:
        """Return what became of an earlier request with the same key; None if this is the first to write.

        Raises: RequestInProgress.
        """
        kept = self._store.find_answer(claim)
        if kept is not None and kept.status is None and claim.at - kept.at < DEAD_AFTER:
            raise RequestInProgress
        return kept

    @contextmanager
    def claiming(self, claim: Claim) -> Iterator[None]:
        """Let the first write of this task, and of the threads and tasks it starts, record the claim."""
        token = CLAIM.set(claim)
        try:
            yield
        finally:
            claim.is_over = True
            CLAIM.reset(token)

    def renew(self, claim: Claim) -> None:
        """Record that the request is still at work, if it wrote anything. Call it more often than `DEAD_AFTER`."""
        if claim.is_written:
            now = self._now()
            self._store.renew_key(claim, at=now, expires_at=now + KEPT_FOR)

    def keep(self, claim: Claim, answer: KeptAnswer) -> None:
        """Record the answer that retries get, and drop expired ones now and then."""
        self._store.keep_answer(claim, answer)
        pruned = self._pruned.get(claim.tenant)
        if pruned is None or claim.at - pruned >= PRUNE_EVERY or random.random() < PRUNE_SHARE:
            if len(self._pruned) >= MAX_TENANTS:
                self._pruned.clear()
            self._pruned[claim.tenant] = claim.at
            prune_answers(self._store, claim.tenant, claim.at)


def prune_answers(store: Store, tenant: str, now: datetime) -> None:
    """Drop a tenant's expired keys, and the oldest ones if they take up too much."""
    store.prune_answers(tenant, created_until=now - KEPT_FOR, max_bytes=MAX_TENANT_BYTES)
