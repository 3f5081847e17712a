"""Rows that maintenance reads and writes: aging episodes, retrieval marks and leases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from wellkept.language.names import memory_seq
from wellkept.memory.rules_items import end_of
from wellkept.memory.rules_lifetime import LIFETIMES, Lifetimes, prolong
from wellkept.model import ClusterNode, Kind, Memory, Owner, State
from wellkept.model.stored import SOON, Aging, StoreTotals
from wellkept.store.conditions import STATE_SQL, Clause
from wellkept.store.engine import Row, Unit, Units
from wellkept.store.tables.embeddings import NO_OWNER
from wellkept.store.tables.rows import RecordRows, maybe_moment, memory_from, merge_parts, moment, owner_params

BEGUN = SOON + timedelta(days=1)
"""Due date of a tenant that changed, while it is visited."""


class MaintenanceRows(Units):
    """Archiving, recall marks and leases."""

    def list_for_review(self, owner: Owner, *, limit: int = 100) -> Sequence[Memory]:
        """List held and flagged memories, newest first."""

        def read(unit: Unit) -> list[list[Memory]]:
            parts = (unit.all("list_for_review", **owner_params(part), limit=limit) for part in owner.parts)
            return [[*map(memory_from, rows)] for rows in parts]

        return merge_parts(self.read(owner.tenant, read), limit, lambda memory: memory_seq(memory.id) or 0)

    def list_aging(self, owner: Owner, *, after: int = 0, limit: int = 1000) -> Sequence[Aging]:
        """List episodes that are not archived, by number, starting after `after`."""
        rows = self.read(
            owner.tenant, lambda unit: unit.all("list_aging", **owner_params(owner), after=after, limit=limit)
        )
        return [*map(_aging_from, rows)]

    def count_aging(self, owner: Owner, *, now: datetime) -> tuple[int, int]:
        """Count the episodes that are live at `now`, and those that have expired but are not archived."""
        ((live, expired),) = self.read(
            owner.tenant, lambda unit: unit.all("count_aging", **owner_params(owner), now=now)
        )
        return int(live), int(expired)

    def count_states(self, owner: Owner, *, now: datetime) -> Mapping[tuple[Kind, State], int]:
        """Count the memories by kind and state at `now`. Reads all of them."""
        state = Clause(STATE_SQL.format(now=":now"))
        rows = self.read(owner.tenant, lambda unit: unit.all("count_states", state, **owner_params(owner), now=now))
        return {(Kind(kind), State(state)): int(count) for kind, state, count in rows}

    def archive_memories(self, owner: Owner, seqs: Sequence[int], *, now: datetime) -> int:
        """Archive memories: remove them from every search without deleting them; return how many."""
        numbers = self._engine.numbers(seqs)

        def archive(unit: Unit) -> int:
            # Every write locks the agent's row first, to avoid deadlocks.
            unit.put("touch_index", **owner_params(owner))
            unit.put("remove_all_from_index", **owner_params(owner), seqs=numbers)
            return unit.run("archive_memories", **owner_params(owner), seqs=numbers, now=now)

        return self.write(owner.tenant, archive)

    def mark_retrieved(
        self, owner: Owner, seqs: Sequence[int], *, at: datetime, lifetimes: Lifetimes = LIFETIMES
    ) -> None:
        """Record that memories were recalled, and move the ends of episodes. This is no edit, so no version is kept."""
        numbers = self._engine.numbers(seqs)

        def mark(unit: Unit) -> None:
            ending = unit.all("ending_memories", **owner_params(owner), seqs=numbers, now=at)
            ends = [
                {**owner_params(owner), "seq": row[0], "until": end}
                for row in ending
                if (end := _prolong(row, at, lifetimes)) is not None
            ]
            if ends:
                # Every write to the index locks the agent's row first, to avoid deadlocks.
                unit.put("touch_index", **owner_params(owner))
            unit.put("mark_retrieved", **owner_params(owner), seqs=numbers, at=at)
            if ends:
                unit.run_many("prolong_memory", ends)
                unit.run_many("prolong_entry", ends)

        self.write(owner.tenant, mark)

    def list_due_tenants(self, now: datetime) -> Sequence[str]:
        """List the tenants that maintenance has to visit, the longest due first."""
        return [row[0] for row in self.read(NO_OWNER, lambda unit: unit.all("list_due_tenants", now=now))]

    def mark_all_due(self) -> None:
        """Have maintenance visit every tenant with its next run."""
        self.write(NO_OWNER, lambda unit: unit.put("mark_all_due", soon=SOON))

    def begin_visit(self, tenant: str) -> tuple[bool, datetime]:
        """Begin a visit of maintenance; return True if the tenant changed since the last one, and its due date."""
        self._marked.pop(tenant, None)

        def begin(unit: Unit) -> tuple[bool, datetime]:
            row = unit.one("find_due_at", tenant=tenant)
            due_at = SOON if row is None else moment(row[0])
            if due_at > BEGUN:
                return False, due_at
            unit.put("begin_visit", tenant=tenant, began=BEGUN)
            return True, BEGUN

        return self.write(tenant, begin)

    def end_visit(self, tenant: str, due_before: datetime, *, due_at: datetime, counts: Mapping[str, int]) -> None:
        """Set the next visit, unless the tenant has changed since this one began, and keep the counts."""
        values = {"began": due_before, "next": due_at, "counts": json.dumps(counts)}
        self.write(tenant, lambda unit: unit.put("end_visit", tenant=tenant, **values))

    def find_first_ends(self, tenant: str) -> tuple[datetime | None, datetime | None]:
        """Return the first end of an item of the tenant, and the time of its oldest kept answer."""
        ((item, answer),) = self.read(tenant, lambda unit: unit.all("find_first_ends", tenant=tenant))
        return maybe_moment(item), maybe_moment(answer)

    def sum_counts(self) -> Mapping[str, int]:
        """Return the sums of the counts that the last visits of all tenants kept."""
        return {name: int(count) for name, count in self.read(NO_OWNER, lambda unit: unit.all("sum_counts"))}

    def count_recalls(self, owner: Owner, days: Mapping[date, int]) -> None:
        """Add to the number of recalls of each day; nothing is added for an agent that does not exist."""
        rows = [{**owner_params(owner), "day": day.isoformat(), "count": count} for day, count in days.items()]
        self.write(owner.tenant, lambda unit: unit.run_many("count_recalls", rows))

    def take_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        # A lease that ends long after any taken now is one of a clock that has been put right since.
        """Acquire or renew an exclusive lease; return False while another holder has it."""
        values = {"name": name, "holder": holder, "now": now, "until": until, "latest": until + (until - now)}
        return self.write(NO_OWNER, lambda unit: unit.run("take_lease", **values)) > 0

    def put_record(self, name: str, value: str, *, at: datetime) -> None:
        """Store a value about the whole store under a name that no lease has, such as the last maintenance run."""
        values = {"name": name, "holder": value, "until": at}
        self.write(NO_OWNER, lambda unit: unit.run("put_lease", **values))

    def find_record(self, name: str) -> tuple[str, datetime] | None:
        """Return the value under a name, and its time."""
        row = self.read(NO_OWNER, lambda unit: unit.one("find_lease_row", name=name))
        return None if row is None else (row[0], moment(row[1]))

    def count_bytes(self) -> int:
        """Return the size of the whole database."""
        ((count,),) = self.read(NO_OWNER, lambda unit: unit.all("count_bytes"))
        return int(count) + sum(node.bytes for node in self._engine.check_nodes())

    def read_totals(self, names: Sequence[str]) -> StoreTotals:
        """Read the size of the database, its waiting texts and the named records, with one statement."""
        values = {"names": self._engine.texts(names)}
        rows = {
            name: (value, at) for name, value, at in self.read(NO_OWNER, lambda unit: unit.all("read_totals", **values))
        }
        elsewhere = sum(node.bytes for node in self._engine.check_nodes())
        return StoreTotals(
            bytes=int(rows["bytes"][0]) + elsewhere,
            waiting=int(rows["waiting"][0]),
            records={name: (rows[name][0], moment(rows[name][1])) for name in names if name in rows},
        )

    def check_nodes(self) -> Sequence[ClusterNode]:
        """Ask the other nodes of a database cluster, if it is one, within the last seconds or now."""
        return self._engine.check_nodes()

    def end_lease(self, name: str, holder: str) -> None:
        """Release a lease."""
        self.write(NO_OWNER, lambda unit: unit.run("end_lease", name=name, holder=holder))

    def end_old_leases(self, *, before: datetime) -> None:
        """Remove the leases of processes that died, if they ended before a time."""
        self.write(NO_OWNER, lambda unit: unit.put("end_old_leases", before=before))


_aging_from = RecordRows(
    Aging,
    "seq importance created_at last_retrieved_at expires_at valid_to category user has_ended".split(),
    user=("user", str, None),
).parse


def _prolong(row: Row, at: datetime, lifetimes: Lifetimes) -> datetime | None:
    _, category, created_at, last_retrieved_at, expires_at, ttl_seconds = row
    if ttl_seconds is not None:
        return end_of(at, ttl_seconds)
    return prolong(
        category,
        moment(created_at),
        maybe_moment(last_retrieved_at),
        moment(expires_at),
        recalled_at=at,
        lifetimes=lifetimes,
    )
