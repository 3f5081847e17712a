"""Maintenance: archive what has expired, and episodes that are no longer retrieved or exceed the quota.

Nothing is deleted but items, a week after they were archived, and what users asked to forget, after thirty days, so
that a wrong clock ends nothing for good.

Of decisions, finished tasks, errors and long answers that have expired, the gist stays as a fact.

It runs by itself, as a job in the background: of the whole store at intervals, and of an agent after many writes. The
job starts with a server, with the first write or recall of any other program, or with the request to maintain an agent.
A process runs maintenance only when the last run, by any process, is older than the interval.

The work is done in small batches, each in a short transaction, so that writers never wait long. One process runs at a
time, under a lease that it renews with every batch. If it dies, another process takes over when the lease expires and
continues with the remaining episodes. The store keeps the counts of the last run over all tenants.
"""

from __future__ import annotations

import heapq
import json
import logging
import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from wellkept.access.idempotency import KEPT_FOR, prune_answers
from wellkept.errors import Cancelled, Conflict, ModelError, NotFound, StoreError, WellkeptError
from wellkept.extension import Clock, Progress
from wellkept.memory.rules_lifetime import (
    EPISODE_QUOTA,
    LIFETIMES,
    Fate,
    Lifetimes,
    decide_fate,
    find_fading,
    quota_rank,
    summarise_expired,
)
from wellkept.memory.rules_trust import Judge
from wellkept.model import (
    AuditEvent,
    Kind,
    MaintenancePreview,
    MaintenanceRun,
    MaintenanceStatus,
    Memory,
    Owner,
    State,
    StoreReport,
)
from wellkept.model.stored import Aging
from wellkept.upkeep.background import Job
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


class EpisodeQuota:
    """Live episodes of an agent by user, to find those beyond the quota.

    Each user has a quota of its own, and so have the episodes of no user.
    """

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._evictable: dict[str, list[tuple[tuple[int, float], int]]] = {}
        self.live = Counter[str]()

    def add(self, kept: Iterable[Aging]) -> None:
        # Corrected episodes are no longer live and do not count towards the quota.
        for episode in (each for each in kept if not _is_corrected(each, self._now)):
            self.live[episode.user] += 1
            if (rank := _rank(episode, self._now)) is not None:
                self._evictable.setdefault(episode.user, []).append((rank, episode.seq))

    def find_excess(self, most: int) -> list[int]:
        """Return the numbers of the episodes that are archived first, as many as a user has too many."""
        return [
            seq
            for user, ranked in self._evictable.items()
            for _, seq in heapq.nsmallest(max(0, self.live[user] - most), ranked)
        ]


def decide_episode(episode: Aging, now: datetime) -> Fate:
    """Decide what maintenance does with an episode."""
    # A corrected episode decays like any other, also if it was a fact.
    category = None if _is_corrected(episode, now) else episode.category
    return decide_fate(
        episode.importance,
        episode.created_at,
        episode.last_retrieved_at,
        episode.expires_at,
        now=now,
        category=category,
    )


def find_end(episode: Aging, now: datetime) -> datetime | None:
    """Return when the fate of an episode that is kept will have to be decided again."""
    is_corrected = _is_corrected(episode, now)
    used_at, category = episode.last_retrieved_at or episode.created_at, None if is_corrected else episode.category
    fades_at = find_fading(episode.importance, used_at, category=category)
    ends = (episode.expires_at, fades_at, None if is_corrected else episode.valid_to)
    return min((end for end in ends if end is not None), default=None)


def _rank(episode: Aging, now: datetime) -> tuple[int, float] | None:
    return quota_rank(
        episode.importance, episode.created_at, episode.last_retrieved_at, now=now, category=episode.category
    )


def _is_corrected(episode: Aging, now: datetime) -> bool:
    return episode.has_ended or (episode.valid_to is not None and episode.valid_to <= now)


@dataclass(slots=True, kw_only=True)
class MaintenanceReport:
    """Counts of one maintenance run."""

    agents: int = 0
    examined: int = 0
    expired: int = 0
    faded: int = 0
    over_quota: int = 0
    gisted: int = field(default=0, metadata={"description": "Expired memories of which the gist was kept."})
    merged: int = field(default=0, metadata={"description": "Memories that consolidation merged with others or ended."})
    items: int = field(default=0, metadata={"description": "Expired items that were archived."})
    deleted: int = field(
        default=0, metadata={"description": "Expired items that were archived a week ago, and deleted now."}
    )
    swept: int = field(default=0, metadata={"description": "Unused texts of details that were removed."})
    embedded: int = 0
    embedding_problem: str = field(default="", metadata={"description": "Reason for missing vectors, if any."})

    @property
    def archived(self) -> int:
        """Number of archived episodes."""
        return self.expired + self.faded + self.over_quota

    def changes(self) -> dict[str, int]:
        """Return the counts of what was changed."""
        names = ("archived", "gisted", "merged", "items", "deleted", "swept")
        return {name: getattr(self, name) for name in names}


def describe_changes(changes: Mapping[str, int]) -> str:
    """Return the sentence of the event about a run.

    >>> describe_changes({"archived": 1, "gisted": 2, "merged": 0, "items": 0, "deleted": 0, "swept": 1})
    'Maintenance archived 1 episode, kept the gist of 2 more and removed 1 text no detail has.'
    """
    said = [text.format(changes[name], "" if changes[name] == 1 else "s") for name, text in DONE if changes[name]]
    swept = changes["swept"]
    removed = f" and removed {swept:,} text{'' if swept == 1 else 's'} no detail has" if swept else ""
    archived = f"Maintenance archived {changes['archived']:,} episode{'' if changes['archived'] == 1 else 's'}"
    return f"{', '.join([archived, *said])}{removed}."


DONE = (
    ("gisted", "kept the gist of {:,} more"),
    ("merged", "merged or ended {:,} that others repeat or contradict"),
    ("items", "archived {:,} expired item{}"),
    ("deleted", "deleted {:,} item{} archived before"),
)


def parse_run(found: tuple[str, datetime] | None) -> MaintenanceRun | None:
    """Return the last run from its record: the counts, and when it was."""
    if found is None:
        return None
    counts = json.loads(found[0])
    return MaintenanceRun(at=found[1], error=counts.pop("error", ""), counts=counts)


LEASE = "maintain"
LAST_RUN = "last maintenance"
MEMORY_COUNTS = "memory counts"
RULES = "maintenance rules"
STOPPED = "Maintenance was stopped because the program ends; the next run continues."
LEASE_TIME = timedelta(minutes=2)
RECHECK = timedelta(hours=1)
"""Time after which a tenant that changed is visited again, for writes that were under way at the first visit."""

LONGEST_REST = timedelta(days=7)
"""Time after which a tenant is visited, though nothing seems to be due."""

READ_BATCH = 1000
SWEEP_GRACE = timedelta(hours=1)
"""Age below which a text without a detail is kept, because its detail may be about to be added."""

ITEMS_KEPT = timedelta(days=7)
"""Time for which an expired item can be restored."""

FORGOTTEN_KEPT = timedelta(days=30)
"""Time for which a memory that was forgotten by request can be restored."""

PROPOSED_KEPT = timedelta(days=30)
"""Time for which a proposed change waits for a decision."""

CHANGES_KEPT = timedelta(days=90)
"""Time for which a change that was applied, rejected or undone is kept."""

WRITE_BATCH = 200
"""Rows archived in one transaction, which takes a few milliseconds."""


FIRST_RUN = timedelta(minutes=1)
"""Time after the start at which a store that was never maintained is."""

JITTER = 0.1
"""Share of the interval by which a run may be later, so that servers do not all start at the same moment."""

NUDGE_SECONDS = 5.0
"""Seconds between the first write or recall and the question whether a run is due, so that short programs only do their
own work."""

SETTLE_SECONDS = 0.2
"""Seconds between the request to maintain an agent and the run: the transaction that asked may not be committed."""

RETRY_SECONDS = 60.0
CLOSE_SECONDS = 5.0
"""Seconds that `close` waits for a run to stop."""

log = logging.getLogger("wellkept")

IsStopped: TypeAlias = Callable[[], bool]


class _Run:
    """A run of maintenance: what it has done, and the exclusive right to go on, as long as that is renewed."""

    def __init__(self, store: SqlStore, now: Clock, name: str, is_stopped: IsStopped) -> None:
        self._store = store
        self._now = now
        self._name = name
        self._is_stopped = is_stopped
        self._holder = uuid.uuid4().hex
        self.report = MaintenanceReport()

    def renew(self) -> None:
        """Take or extend the lease. Raises: Conflict; Cancelled when maintenance was stopped."""
        if self._is_stopped():
            raise Cancelled(STOPPED)
        now = self._now()
        if not self._store.take_lease(self._name, self._holder, now=now, until=now + LEASE_TIME):
            raise Conflict("Another process is running maintenance; try again later.")

    def count(self, name: str, more: int) -> None:
        """Add to a count of the report, after each batch: an interrupted run is recorded as well."""
        setattr(self.report, name, getattr(self.report, name) + more)

    def repeat(self, name: str, step: Callable[[], int]) -> None:
        """Take a step, count what it did and renew the lease, until there is nothing left to do."""
        while done := step():
            self.count(name, done)
            self.renew()

    def end(self) -> None:
        """Give the lease back."""
        self._store.end_lease(self._name, self._holder)


class Maintain:
    """Service that maintains the agents of every tenant, or of one."""

    def __init__(
        self,
        store: SqlStore,
        embedding: Embedding,
        now: Clock,
        *,
        quota: int = EPISODE_QUOTA,
        lifetimes: Lifetimes = LIFETIMES,
        keeps_gist: bool = True,
        judge: Judge = lambda memory: memory,
        consolidate: Callable[[Owner], int] = lambda owner: 0,
    ) -> None:
        """Set up the service; `judge` flags a memory as it would be flagged today.

        `consolidate` merges and ends memories of an agent, and returns how many.
        """
        self._consolidate = consolidate
        self._judge = judge
        self._store = store
        self._embedding = embedding
        self._now = now
        self._quota = quota
        self._lifetimes = lifetimes
        self._keeps_gist = keeps_gist

    def __call__(
        self,
        tenant: str | None = None,
        *,
        progress: Progress | None = None,
        is_automatic: bool = False,
        is_stopped: IsStopped = lambda: False,
    ) -> MaintenanceReport:
        """Run maintenance. A run over one tenant has a separate lease and does not block runs over others.

        `progress` is called after each agent. An automatic run visits the tenants that are due, and leaves no event
        about one in which nothing changed.

        Raises: Conflict while another process runs maintenance; Cancelled once `is_stopped` returns True.
        """
        run = _Run(self._store, self._now, LEASE if tenant is None else f"{LEASE} {tenant}", is_stopped)
        report = run.report
        try:
            self._visit_all(tenant, run, progress, is_automatic=is_automatic)
        except (Conflict, Cancelled):
            raise
        except WellkeptError as error:
            with suppress(StoreError):
                self._save_run(tenant, report, str(error))
            raise
        try:
            report.embedded = self._embedding.catch_up(tenant)
        # Everything else is done; the waiting texts are embedded later.
        except (ModelError, StoreError) as error:
            report.embedding_problem = str(error)
        self._save_run(tenant, report, report.embedding_problem)
        return report

    def maintain_agent(self, owner: Owner, *, is_stopped: IsStopped = lambda: False) -> MaintenanceReport:
        """Run maintenance on the memories of one agent or user, under a lease of the agent, if some expired or exceed
        the quota.

        Raises: Conflict while another process does; Cancelled once `is_stopped` returns True.
        """
        run = _Run(self._store, self._now, f"{LEASE} {owner.tenant} {owner.agent}", is_stopped)
        report = run.report
        live, expired = self._store.count_aging(owner, now=self._now())
        if live <= self._quota and not expired:
            return report
        run.renew()
        try:
            self._maintain_agent(owner, run)
        finally:
            run.end()
        if any(report.changes().values()):
            self._record(owner.tenant, report.changes(), agent=owner.agent)
        return report

    def preview(self, tenant: str, *, limit: int) -> MaintenancePreview:
        """Return what a run over one tenant would archive; list the first `limit` memories. Changes nothing."""
        preview, now = MaintenancePreview(), self._now()
        for owner in self._store.iter_owners(tenant):
            quota, reasons = EpisodeQuota(now), dict[int, str]()
            for batch in self._batches(owner):
                preview.examined += len(batch)
                fates = [(episode, decide_episode(episode, now)) for episode in batch]
                reasons |= {episode.seq: fate.name.lower() for episode, fate in fates if fate is not Fate.KEPT}
                quota.add(episode for episode, fate in fates if fate is Fate.KEPT)
            reasons |= dict.fromkeys(quota.find_excess(self._quota), "over_quota")
            preview.counts.update(reasons.values())
            listed = list(reasons)[: limit - len(preview.found)]
            memories = self._store.find_memories(owner, listed) if listed else {}
            preview.found += [(memories[seq], reasons[seq]) for seq in listed if seq in memories]
        return preview

    def find_last(self) -> MaintenanceRun | None:
        """Return the last run over all tenants."""
        return parse_run(self._store.find_record(LAST_RUN))

    def read_totals(self) -> StoreReport:
        """Return the size of the store, and what is in all tenants, as the last run counted it."""
        totals = self._store.read_totals([LAST_RUN, MEMORY_COUNTS])
        counts: Mapping[str, int] = json.loads(totals.records.get(MEMORY_COUNTS, ("{}",))[0])
        pairs = [(kind, state) for kind in Kind for state in State] if counts else []
        return StoreReport(
            bytes=totals.bytes,
            waiting=totals.waiting,
            memories={(kind, state): counts.get(f"{kind.value} {state.value}", 0) for kind, state in pairs},
            last=parse_run(totals.records.get(LAST_RUN)),
        )

    def _count_states(self, owner: Owner) -> Mapping[str, int]:
        counts = self._store.count_states(owner, now=self._now())
        return {f"{kind.value} {state.value}": count for (kind, state), count in counts.items()}

    def _save_run(self, tenant: str | None, report: MaintenanceReport, error: str) -> None:
        if tenant is None:
            counts = {name: count for name, count in asdict(report).items() if isinstance(count, int)}
            value = {"archived": report.archived, **counts, "error": error}
            self._store.put_record(LAST_RUN, json.dumps(value), at=self._now())

    def _visit_all(self, tenant: str | None, run: _Run, progress: Progress | None, *, is_automatic: bool) -> None:
        report = run.report
        run.renew()
        try:
            tenants = [tenant] if tenant else self._choose_tenants(is_automatic)
            total = sum(1 for each in tenants for _ in self._store.iter_owners(each)) if progress is not None else 0
            for each in tenants:
                before = report.changes()
                try:
                    for _ in self._visit(each, run):
                        if progress is not None:
                            progress(report.agents, total)
                # Record also a run that was interrupted: its finished batches are committed.
                finally:
                    changes = {name: count - before[name] for name, count in report.changes().items()}
                    if not is_automatic or any(changes.values()):
                        self._record(each, changes)
            if tenant is None:
                self._store.end_old_leases(before=self._now() - LEASE_TIME)
                if tenants:
                    self._store.put_record(MEMORY_COUNTS, json.dumps(self._store.sum_counts()), at=self._now())
        finally:
            run.end()

    def _choose_tenants(self, is_automatic: bool) -> Sequence[str]:
        # Somebody who asks for a run expects it to be complete; due dates only spare the runs that nobody asked for.
        self._apply_rules()
        return self._store.list_due_tenants(self._now()) if is_automatic else self._store.list_tenants()

    def _apply_rules(self) -> None:
        """Have every tenant visited if the due dates were computed with other settings, or by a clock far ahead."""
        lifetimes = {
            each.value: None if time is None else time.total_seconds() for each, time in self._lifetimes.items()
        }
        rules = json.dumps([self._quota, self._keeps_gist, lifetimes], sort_keys=True)
        known, last = self._store.find_record(RULES), self._store.find_record(LAST_RUN)
        was_ahead = last is not None and last[1] > self._now() + RECHECK
        if known is None or known[0] != rules or was_ahead:
            self._store.mark_all_due()
            self._store.put_record(RULES, rules, at=self._now())

    def _visit(self, tenant: str, run: _Run) -> Iterator[Owner]:
        """Maintain all agents of a tenant, yield each, and compute when something will be due again."""
        has_changed, due_before = self._store.begin_visit(tenant)
        now, states = self._now(), Counter[str]()
        # All tenants that nobody uses would come at once otherwise.
        due_at = now + (RECHECK if has_changed else LONGEST_REST * random.uniform(0.5, 1))
        for owner in self._store.iter_owners(tenant):
            due_at = min(due_at, self._maintain_agent(owner, run) or due_at)
            run.renew()
            run.report.merged += self._consolidate(owner)
            self._store.delete_old_changes(owner, before=now - CHANGES_KEPT, proposed_before=now - PROPOSED_KEPT)
            states.update(self._count_states(owner))
            yield owner
        run.renew()
        run.report.swept += self._store.sweep_contents(tenant, stored_before=now - SWEEP_GRACE)
        prune_answers(self._store, tenant, now)
        if has_changed:
            # A process that died may have left events outside the chain, and an older version texts outside the queue.
            self._store.audit_head(tenant)
            self._store.settle_queue(tenant, self._store.list_queue(tenant))
        item_end, answered_at = self._store.find_first_ends(tenant)
        ends = [item_end, None if answered_at is None else answered_at + KEPT_FOR]
        due_at = min([due_at, *(end for end in ends if end is not None)])
        self._store.end_visit(tenant, due_before, due_at=due_at, counts=states)

    def _maintain_agent(self, owner: Owner, run: _Run) -> datetime | None:
        """Maintain the memories of an agent; return when one of those that are kept will expire or fade."""
        report = run.report
        report.agents += 1
        now, due_at = self._now(), None
        quota = EpisodeQuota(now)
        for batch in self._batches(owner, run):
            report.examined += len(batch)
            fates = [(episode, decide_episode(episode, now)) for episode in batch]
            expired = [episode.seq for episode, fate in fates if fate is Fate.EXPIRED]
            gisted = self._keep_gists(owner, run, expired, now) if self._keeps_gist else set()
            report.gisted += len(gisted)
            self._archive(owner, run, "expired", [seq for seq in expired if seq not in gisted], now)
            self._archive(owner, run, "faded", [e.seq for e, f in fates if f is Fate.FADED], now)
            quota.live.update(episode.user for episode in batch if episode.seq in gisted)
            kept = [episode for episode, fate in fates if fate is Fate.KEPT]
            quota.add(kept)
            ends = [end for episode in kept if (end := find_end(episode, now)) is not None]
            due_at = min([*ends, *([] if due_at is None else [due_at])], default=None)
        self._end_items(owner, run, now)
        self._archive(owner, run, "over_quota", quota.find_excess(self._quota), now)
        return due_at

    def _end_items(self, owner: Owner, run: _Run, now: datetime) -> None:
        """Archive expired items, and delete those, and forgotten memories, that two runs find gone for long enough.

        The last run before this one may have had another clock. The earlier of both counts.
        """
        store = self._store
        run.repeat("items", lambda: store.archive_expired_items(owner, now=now, limit=WRITE_BATCH))
        last = store.find_record(LAST_RUN)
        gone = min(now, now if last is None else last[1])
        run.repeat("deleted", lambda: store.delete_ended_items(owner, before=gone - ITEMS_KEPT, limit=WRITE_BATCH))
        run.repeat("deleted", lambda: store.delete_forgotten(owner, before=gone - FORGOTTEN_KEPT, limit=WRITE_BATCH))

    def _keep_gists(self, owner: Owner, run: _Run, seqs: Sequence[int], now: datetime) -> set[int]:
        """Replace expired episodes by their gist where the rules say so; return the numbers of these."""
        kept: set[int] = set()
        for start in range(0, len(seqs), WRITE_BATCH):
            memories = self._store.find_memories(owner, seqs[start : start + WRITE_BATCH])
            gists = {
                seq: (gist, memory.text)
                for seq, memory in memories.items()
                # A gist is a later version, which is not judged again when it is shown.
                if (gist := summarise_expired(self._judge(memory), now, self._lifetimes)) is not None
            }
            if gists:
                run.renew()
                self._write_gists(owner, list(gists.values()), now)
            kept |= gists.keys()
        return kept

    def _write_gists(self, owner: Owner, gists: Sequence[tuple[Memory, str]], now: datetime) -> None:
        def write() -> None:
            for gist, whole in gists:
                self._store.update_memory(gist, replaced_at=now, whole=whole)

        try:
            self._store.transaction(owner.tenant, write)
        # One of them was edited or deleted meanwhile: write the others one by one.
        except (Conflict, NotFound):
            for gist, whole in gists:
                with suppress(Conflict, NotFound):
                    self._store.update_memory(gist, replaced_at=now, whole=whole)

    def _batches(self, owner: Owner, run: _Run | None = None) -> Iterator[Sequence[Aging]]:
        after = 0
        while batch := self._store.list_aging(owner, after=after, limit=READ_BATCH):
            if run is not None:
                run.renew()
            yield batch
            after = batch[-1].seq

    def _archive(self, owner: Owner, run: _Run, name: str, seqs: Sequence[int], now: datetime) -> None:
        """Archive memories in batches, and count them under a name."""
        for start in range(0, len(seqs), WRITE_BATCH):
            run.renew()
            run.count(name, self._store.archive_memories(owner, seqs[start : start + WRITE_BATCH], now=now))

    def _record(self, tenant: str, changes: Mapping[str, int], *, agent: str | None = None) -> None:
        meta = {name: count for name, count in changes.items() if count or name == "archived"}
        message = describe_changes(changes)
        self._store.add_event(
            AuditEvent(
                tenant=tenant, at=self._now(), action="maintenance.run", agent_id=agent, message=message, meta=meta
            )
        )


class MaintenanceSchedule:
    """Job that runs maintenance when it is due."""

    def __init__(self, maintain: Maintain, flush: Callable[[], None], now: Clock, *, interval: float) -> None:
        """Set up the schedule; nothing runs yet.

        `flush` writes the queued retrieval marks. An `interval` of 0 seconds never runs the whole store.
        """
        self._maintain = maintain
        self._flush = flush
        self._now = now
        self._interval = timedelta(seconds=interval)
        self._status = MaintenanceStatus()
        self._job = Job("maintenance", self._run, failed="Maintenance failed")
        # Guards the fields below.
        self._lock = threading.Lock()
        self._waiting: dict[Owner, None] = {}
        self._started_at: datetime | None = None
        self._late = 1.0

    def start(self, after: float = 0.0) -> None:
        """Maintain the whole store at intervals from now on, unless the interval is 0."""
        with self._lock:
            if not self._interval or self._started_at is not None or self._job.is_closed:
                return
            self._started_at, self._late = self._now(), _draw_delay()
        self._job.wake(after)

    def nudge(self) -> None:
        """Do as `start`, a moment later; called when a program that is no server first stores or recalls something."""
        self.start(NUDGE_SECONDS)

    def stop(self) -> None:
        """End the runs at intervals; one that is running ends after its current batch."""
        self._started_at = None

    def request(self, owner: Owner) -> None:
        """Maintain the memories of an agent soon, and return at once."""
        with self._lock:
            self._waiting[owner] = None
        self._job.wake(SETTLE_SECONDS)

    def read_totals(self) -> StoreReport:
        """Return the size of the store and what is in all tenants, with one query. Raises: StoreError."""
        return self._maintain.read_totals()

    def status(self) -> MaintenanceStatus:
        """Return what is known about the last and the next run, without asking the store."""
        return self._status

    def refresh(self) -> MaintenanceStatus:
        """Return the last run, by any process, and the next one of this process. Raises: StoreError."""
        last, started_at = self._maintain.find_last(), self._started_at
        next_at = None
        if started_at is not None:
            now = self._now()
            # A run that is yet to come was one of a clock that has been put right since.
            has_run = last is not None and last.at <= now + self._interval
            since_last = last.at + self._interval * self._late if last is not None and has_run else None
            next_at = since_last or min(started_at, now) + min(FIRST_RUN, self._interval) * self._late
        self._status = MaintenanceStatus(last=last, next_at=next_at)
        return self._status

    def run_if_due(self) -> bool:
        """Maintain the whole store if the last run is long enough ago; return True if it did.

        Raises: WellkeptError.
        """
        next_at = self.refresh().next_at
        if next_at is None or next_at > self._now():
            return False
        try:
            self._flush()
            self._maintain(is_automatic=True, is_stopped=lambda: self._started_at is None)
        except Conflict:
            # Another process has begun.
            return False
        finally:
            self._late = _draw_delay()
        self.refresh()
        return True

    def close(self) -> None:
        """Maintain the agents that wait, stop any other run after its current batch, and end the job."""
        self.stop()
        self._job.close(CLOSE_SECONDS)
        try:
            self._maintain_waiting()
        except WellkeptError as error:
            log.warning("Maintenance failed: %s", error)

    def _run(self) -> float | None:
        """Do what is due; return the seconds until the next look, None if there is none."""
        self._maintain_waiting()
        if self._started_at is None:
            return None
        with suppress(Cancelled):
            self.run_if_due()
        next_at = self._status.next_at
        left = 0.0 if next_at is None else (next_at - self._now()).total_seconds()
        return left if left > 0 else RETRY_SECONDS

    def _maintain_waiting(self) -> None:
        while self._waiting:
            with self._lock:
                owner, _ = self._waiting.popitem()
            with suppress(Conflict):
                self._maintain.maintain_agent(owner)


def _draw_delay() -> float:
    return 1 + random.uniform(0, JITTER)
