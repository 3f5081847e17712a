"""Idempotency keys: a repeated request gets the stored answer and is not executed again.

While a request runs under `claiming`, the store records its key in the same transaction as its first write (see
`store.engine`). So there are three cases for a retry: no record means that nothing was written and the request can run;
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
from typing import TYPE_CHECKING

from wellkept.errors import RequestInProgress
from wellkept.extension import Clock
from wellkept.model.stored import CLAIM, Claim, KeptAnswer

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

KEPT_FOR = timedelta(hours=24)
DEAD_AFTER = timedelta(minutes=1)
"""Time after which a request that wrote, but has not recorded its answer, counts as dead for other servers."""

MAX_TENANT_BYTES = 256 * 1024 * 1024
"""Maximum size of one tenant's keys and answers; beyond it, the oldest are dropped early."""

PRUNE_SHARE = 1 / 256
"""Probability of pruning after an answer is stored; random, so that no client can control it."""

PRUNE_EVERY = timedelta(minutes=5)
"""Interval after which the next stored answer always triggers pruning."""

MAX_TENANTS = 10_000
"""Maximum number of tenants with a remembered pruning time."""


class Idempotency:
    """Service for the idempotency keys of every tenant."""

    def __init__(self, store: SqlStore, now: Clock) -> None:
        self._store = store
        self._now = now
        # Time of the last pruning per tenant. Unlocked: a race only prunes twice.
        self._pruned: dict[str, datetime] = {}

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
        """Return the record of an earlier request with the same key; None if it has not written anything.

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

    def keep(self, claim: Claim, answer: KeptAnswer) -> None:
        """Store the answer for retries, and prune expired ones occasionally."""
        self._store.keep_answer(claim, answer)
        pruned = self._pruned.get(claim.tenant)
        if pruned is None or claim.at - pruned >= PRUNE_EVERY or random.random() < PRUNE_SHARE:
            if len(self._pruned) >= MAX_TENANTS:
                self._pruned.clear()
            self._pruned[claim.tenant] = claim.at
            prune_answers(self._store, claim.tenant, claim.at)


def prune_answers(store: SqlStore, tenant: str, now: datetime) -> None:
    """Drop a tenant's expired keys, and the oldest ones if they take up too much."""
    store.prune_answers(tenant, created_until=now - KEPT_FOR, max_bytes=MAX_TENANT_BYTES)
