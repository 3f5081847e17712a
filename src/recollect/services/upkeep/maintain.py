"""Maintenance: archive episodes that have expired, are no longer retrieved, or exceed the quota.

The work is done in small batches, each in a short transaction, so that writers never wait long. One process runs at a
time, under a lease that it renews with every batch. If it dies, another process takes over when the lease expires and
continues with the remaining episodes.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.errors import Conflict, ModelError, StoreError
from recollect.model import AuditEvent, Owner
from recollect.policy.memories.lifetime import EPISODE_QUOTA, Fate, decide_fate, quota_rank
from recollect.ports import Aging, Clock, Store
from recollect.services.access.idempotency import prune_answers
from recollect.services.background.embedding import Embedding
from recollect.services.walk import Progress, iter_owners

LEASE = "maintain"
LEASE_TIME = timedelta(minutes=2)
READ_BATCH = 1000
SWEEP_GRACE = timedelta(hours=1)
"""Age below which a text without a detail is kept, because its detail may be about to be added."""

WRITE_BATCH = 200
"""Rows archived in one transaction, which takes a few milliseconds."""


@dataclass(slots=True, kw_only=True)
class MaintenanceReport:
    """Counts of one maintenance run."""

    agents: int = 0
    examined: int = 0
    expired: int = 0
    faded: int = 0
    over_quota: int = 0
    swept: int = 0  # texts of deleted details, and remains of writers that died
    embedded: int = 0
    embedding_problem: str = ""

    @property
    def archived(self) -> int:
        """Number of archived episodes."""
        return self.expired + self.faded + self.over_quota


class _Lease:
    """Exclusive right to run maintenance, as long as it is renewed."""

    def __init__(self, store: Store, now: Clock, name: str) -> None:
        self._store = store
        self._now = now
        self._name = name
        self._holder = uuid.uuid4().hex

    def renew(self) -> None:
        """Take or extend the lease.

        Raises: Conflict.
        """
        now = self._now()
        if not self._store.take_lease(self._name, self._holder, now=now, until=now + LEASE_TIME):
            raise Conflict("Another process is running maintenance; try again later.")

    def end(self) -> None:
        """Give the lease back."""
        self._store.end_lease(self._name, self._holder)


class Maintain:
    """Service that maintains the agents of every tenant, or of one."""

    def __init__(self, store: Store, embedding: Embedding, now: Clock, *, quota: int = EPISODE_QUOTA) -> None:
        self._store = store
        self._embedding = embedding
        self._now = now
        self._quota = quota

    def __call__(self, tenant: str | None = None, *, progress: Progress | None = None) -> MaintenanceReport:
        """Run maintenance. A run over one tenant has a separate lease and does not block runs over others.

        `progress` is called after each agent.

        Raises: Conflict while another process runs maintenance.
        """
        lease = _Lease(self._store, self._now, LEASE if tenant is None else f"{LEASE} {tenant}")
        report = MaintenanceReport()
        lease.renew()
        try:
            tenants = [tenant] if tenant else self._store.list_tenants()
            total = sum(1 for each in tenants for _ in iter_owners(self._store, each)) if progress is not None else 0
            for each in tenants:
                archived, swept = report.archived, report.swept
                try:
                    for owner in iter_owners(self._store, each):
                        self._maintain_agent(owner, lease, report)
                        if progress is not None:
                            progress(report.agents, total)
                    lease.renew()
                    report.swept += self._store.sweep_contents(each, stored_before=self._now() - SWEEP_GRACE)
                    prune_answers(self._store, each, self._now())
                # Record also a run that was interrupted: its finished batches are committed.
                finally:
                    self._record(each, report.archived - archived, report.swept - swept)
        finally:
            lease.end()
        try:
            report.embedded = self._embedding.catch_up(tenant)
        # Everything else is done; the waiting texts are embedded later.
        except (ModelError, StoreError) as error:
            report.embedding_problem = str(error)
        return report

    def _maintain_agent(self, owner: Owner, lease: _Lease, report: MaintenanceReport) -> None:
        report.agents += 1
        now, kept = self._now(), []
        for batch in self._batches(owner, lease):
            report.examined += len(batch)
            fates = [
                (
                    episode,
                    decide_fate(
                        episode.importance, episode.created_at, episode.last_retrieved_at, episode.expires_at, now=now
                    ),
                )
                for episode in batch
            ]
            for part in self._archive(owner, lease, [e.seq for e, f in fates if f is Fate.EXPIRED], now):
                report.expired += part
            for part in self._archive(owner, lease, [e.seq for e, f in fates if f is Fate.FADED], now):
                report.faded += part
            kept += [
                (quota_rank(e.importance, e.created_at, e.last_retrieved_at, now=now), e.seq)
                for e, f in fates
                # Corrected episodes are no longer live and do not count towards the quota.
                if f is Fate.KEPT and not (e.valid_to is not None and e.valid_to <= now)
            ]
        excess = heapq.nsmallest(max(0, len(kept) - self._quota), kept)
        for part in self._archive(owner, lease, [seq for _, seq in excess], now):
            report.over_quota += part

    def _batches(self, owner: Owner, lease: _Lease) -> Iterator[Sequence[Aging]]:
        after = 0
        while batch := self._store.list_aging(owner, after=after, limit=READ_BATCH):
            lease.renew()
            yield batch
            after = batch[-1].seq

    def _archive(self, owner: Owner, lease: _Lease, seqs: Sequence[int], now: datetime) -> Iterator[int]:
        """Archive memories in batches; yield the number archived by each."""
        for start in range(0, len(seqs), WRITE_BATCH):
            lease.renew()
            yield self._store.archive_memories(owner, seqs[start : start + WRITE_BATCH], now=now)

    def _record(self, tenant: str, archived: int, swept: int) -> None:
        message = f"Maintenance archived {archived:,} episode{'' if archived == 1 else 's'}."
        if swept:
            message = f"{message[:-1]} and removed {swept:,} text{'' if swept == 1 else 's'} no detail has."
        meta = {"archived": archived, **({"swept": swept} if swept else {})}
        self._store.add_event(
            AuditEvent(tenant=tenant, at=self._now(), action="maintenance.run", message=message, meta=meta)
        )
