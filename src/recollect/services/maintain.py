"""Letting memories fade: archive what has expired, what nobody asks for any more, and what exceeds the quota.

The work is done in small batches, each its own short transaction, so that writers never wait long. One process at a
time does it, by a lease it renews with every batch; if it dies, another takes over when the lease runs out, and since
every batch is finished work, it simply goes on from what is left.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.errors import Conflict, ModelError
from recollect.model import AuditEvent, Owner
from recollect.policy.lifetime import EPISODE_QUOTA, Fate, fate, quota_rank
from recollect.ports import Aging, Clock, Store
from recollect.services.embedding import Embedding
from recollect.services.walk import owners

LEASE = "maintain"
LEASE_TIME = timedelta(minutes=2)
READ_BATCH = 1000
WRITE_BATCH = 200
"""Rows archived in one transaction: a few milliseconds of the writer's time."""


@dataclass(slots=True, kw_only=True)
class MaintenanceReport:
    """What one run did."""

    agents: int = 0
    examined: int = 0
    expired: int = 0
    faded: int = 0
    over_quota: int = 0
    embedded: int = 0
    embedding_problem: str = ""

    @property
    def archived(self) -> int:
        return self.expired + self.faded + self.over_quota


class Maintain:
    """One run over every tenant and agent."""

    def __init__(self, store: Store, embedding: Embedding, now: Clock, *, quota: int = EPISODE_QUOTA) -> None:
        self._store = store
        self._embedding = embedding
        self._now = now
        self._quota = quota

    def __call__(self) -> MaintenanceReport:
        """Raises: Conflict while another process is at it."""
        holder = uuid.uuid4().hex
        report = MaintenanceReport()
        self._renew(holder)
        try:
            for tenant in self._store.list_tenants():
                before = report.archived
                try:
                    for owner in owners(self._store, tenant):
                        self._maintain(owner, holder, report)
                finally:  # also when it ends in the middle: what was archived until then is archived
                    self._record(tenant, report.archived - before)
        finally:
            self._store.end_lease(LEASE, holder)
        try:
            report.embedded = self._embedding.embed_waiting()
        except ModelError as error:  # the rest is done; what waits goes on waiting
            report.embedding_problem = str(error)
        return report

    def _maintain(self, owner: Owner, holder: str, report: MaintenanceReport) -> None:
        report.agents += 1
        now, kept = self._now(), []
        for batch in self._batches(owner, holder):
            report.examined += len(batch)
            fates = [
                (
                    episode,
                    fate(
                        episode.importance, episode.created_at, episode.last_retrieved_at, episode.expires_at, now=now
                    ),
                )
                for episode in batch
            ]
            for part in self._archived(owner, holder, [e.seq for e, f in fates if f is Fate.EXPIRED], now):
                report.expired += part
            for part in self._archived(owner, holder, [e.seq for e, f in fates if f is Fate.FADED], now):
                report.faded += part
            kept += [
                (quota_rank(e.importance, e.created_at, e.last_retrieved_at, now=now), e.seq)
                for e, f in fates
                if f is Fate.KEPT and not (e.valid_to is not None and e.valid_to <= now)  # corrected: live no more
            ]
        excess = heapq.nsmallest(max(0, len(kept) - self._quota), kept)
        for part in self._archived(owner, holder, [seq for _, seq in excess], now):
            report.over_quota += part

    def _batches(self, owner: Owner, holder: str) -> Iterator[Sequence[Aging]]:
        after = 0
        while batch := self._store.list_aging(owner, after=after, limit=READ_BATCH):
            self._renew(holder)
            yield batch
            after = batch[-1].seq

    def _archived(self, owner: Owner, holder: str, seqs: Sequence[int], now: datetime) -> Iterator[int]:
        """Archive these, part by part; how many each part was."""
        for start in range(0, len(seqs), WRITE_BATCH):
            self._renew(holder)
            yield self._store.archive_memories(owner, seqs[start : start + WRITE_BATCH], now=now)

    def _renew(self, holder: str) -> None:
        now = self._now()
        if not self._store.take_lease(LEASE, holder, now=now, until=now + LEASE_TIME):
            raise Conflict("Another process is doing maintenance right now; it will be done soon.")

    def _record(self, tenant: str, archived: int) -> None:
        message = f"Maintenance archived {archived:,} episode{'' if archived == 1 else 's'}."
        meta = {"archived": archived}
        self._store.add_event(
            AuditEvent(tenant=tenant, at=self._now(), action="maintenance.run", message=message, meta=meta)
        )
