"""Queue of the tenants with texts that wait for a vector, shared by all processes on one store.

A process embeds the texts of a tenant under a lease, so that no other asks the embedder for the same. If it dies,
another one takes over when the lease ends. A row of the queue is removed by who read it before the texts, so a text
that is stored meanwhile stays in the queue.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from wellkept.extension import Clock
from wellkept.upkeep.refusals import Refusals

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

LEASE, LEASE_TIME = "embed", timedelta(minutes=1)
"""Right to embed the texts of a tenant, which each batch renews."""

SHARED_RETRY = 2.0
"""Seconds after which texts are looked for again that another process was about to embed."""

EVER = datetime.max.replace(tzinfo=UTC)


class VectorQueue:
    """Queue of one store, as one process sees it."""

    def __init__(self, store: SqlStore, refusals: Refusals, now: Clock) -> None:
        self._store = store
        self._refusals = refusals
        self._now = now
        self._holder = uuid.uuid4().hex
        # Tenant whose lease this process has.
        self._held = ""
        # True if another process was embedding texts of a tenant in the last pass.
        self._is_shared = False

    def begin_pass(self, *, is_eager: bool) -> Sequence[str]:
        """Begin a pass of the background thread; return the tenants to embed the texts of."""
        # Not in `list_tenants`: somebody who only counts must not make the thread forget to look again.
        self._is_shared = False
        return self.list_tenants(is_eager=is_eager)

    def list_tenants(self, *, is_eager: bool = True) -> Sequence[str]:
        """List the tenants with waiting texts; unless `is_eager`, only those with some that are due."""
        waiting = self._store.list_waiting_tenants(EVER if is_eager else self._now())
        if not len(self._refusals):
            return waiting
        # Texts of tenants that have left the queue were deleted.
        self._refusals.keep_tenants(waiting if is_eager else self._store.list_waiting_tenants(EVER))
        return sorted({*waiting, *self._refusals.list_due_tenants()})

    def seconds_to_next(self) -> float | None:
        """Return the seconds until texts are looked for again; None: when some are stored."""
        return SHARED_RETRY if self._is_shared else self._refusals.seconds_to_next()

    def count(self, tenant: str | None = None) -> int:
        """Return the number of texts without a vector, of one tenant or of all."""
        return sum(map(self._store.count_unembedded, [tenant] if tenant else self.list_tenants()))

    @contextmanager
    def hold(self, tenant: str, *, is_eager: bool) -> Iterator[bool]:
        """Take a tenant's texts off the queue after the block, if it embeds them without an error.

        Yields False while another process embeds them; with `is_eager` this one does so, too.
        """
        if not is_eager and not self.renew(tenant):
            self._is_shared = True
            yield False
            return
        self._held = "" if is_eager else tenant
        try:
            queued = self._store.list_queue(tenant)
            yield True
            due_at = self._now() + timedelta(seconds=self._refusals.seconds_to_next() or 0.0)
            self._store.settle_queue(tenant, queued, due_at=due_at)
        finally:
            self.release()

    def release(self) -> None:
        """End the lease, if this process has one; otherwise others would wait for its end."""
        held, self._held = self._held, ""
        if held:
            self._store.end_lease(f"{LEASE} {held}", self._holder)

    def renew(self, tenant: str) -> bool:
        """Take or renew the lease; return False while another process has it."""
        now = self._now()
        return self._store.take_lease(f"{LEASE} {tenant}", self._holder, now=now, until=now + LEASE_TIME)
