"""Rows that maintenance reads and writes: aging episodes, retrieval marks and leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

from recollect.model import Kind, Memory, Owner, State
from recollect.policy.items import end_of
from recollect.policy.memories.categories import LIFETIMES, Lifetimes
from recollect.policy.memories.lifetime import prolong
from recollect.policy.names import memory_seq
from recollect.ports import Aging
from recollect.store.engine import Row, Unit, Units
from recollect.store.tables.embeddings import NO_OWNER
from recollect.store.tables.rows import maybe_moment, memory_from, merge_parts, moment, owner_params


class MaintenanceRows(Units):
    """Implementation of `ports.MaintenanceStore`."""

    def list_for_review(self, owner: Owner, *, limit: int = 100) -> Sequence[Memory]:
        def read(unit: Unit) -> list[list[Memory]]:
            parts = (unit.all("list_for_review", **owner_params(part), limit=limit) for part in owner.parts)
            return [[*map(memory_from, rows)] for rows in parts]

        return merge_parts(self._read(owner.tenant, read), limit, lambda memory: memory_seq(memory.id) or 0)

    def list_aging(self, owner: Owner, *, after: int = 0, limit: int = 1000) -> Sequence[Aging]:
        rows = self._read(
            owner.tenant, lambda unit: unit.all("list_aging", **owner_params(owner), after=after, limit=limit)
        )
        return [
            Aging(
                seq,
                importance,
                moment(created_at),
                maybe_moment(last_retrieved_at),
                maybe_moment(expires_at),
                maybe_moment(valid_to),
                category,
                user,
            )
            for seq, importance, created_at, last_retrieved_at, expires_at, valid_to, category, user in rows
        ]

    def count_aging(self, owner: Owner, *, now: datetime) -> tuple[int, int]:
        ((live, expired),) = self._read(
            owner.tenant, lambda unit: unit.all("count_aging", **owner_params(owner), now=now)
        )
        return int(live), int(expired)

    def count_states(self, owner: Owner, *, now: datetime) -> Mapping[tuple[Kind, State], int]:
        rows = self._read(owner.tenant, lambda unit: unit.all("count_states", **owner_params(owner), now=now))
        return {(Kind(kind), State(state)): int(count) for kind, state, count in rows}

    def archive_memories(self, owner: Owner, seqs: Sequence[int], *, now: datetime) -> int:
        numbers = self._engine.numbers(seqs)

        def archive(unit: Unit) -> int:
            # Every write locks the agent's row first, to avoid deadlocks.
            unit.put("touch_index", **owner_params(owner))
            unit.put("remove_all_from_index", **owner_params(owner), seqs=numbers)
            return unit.run("archive_memories", **owner_params(owner), seqs=numbers, now=now)

        return self._write(owner.tenant, archive)

    def mark_retrieved(
        self, owner: Owner, seqs: Sequence[int], *, at: datetime, lifetimes: Lifetimes = LIFETIMES
    ) -> None:
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

        self._write(owner.tenant, mark)

    def count_recalls(self, owner: Owner, days: Mapping[date, int]) -> None:
        rows = [{**owner_params(owner), "day": day.isoformat(), "count": count} for day, count in days.items()]
        self._write(owner.tenant, lambda unit: unit.run_many("count_recalls", rows))

    def take_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        values = {"name": name, "holder": holder, "now": now, "until": until}
        return self._write(NO_OWNER, lambda unit: unit.run("take_lease", **values)) > 0

    def put_record(self, name: str, value: str, *, at: datetime) -> None:
        values = {"name": name, "holder": value, "until": at}
        self._write(NO_OWNER, lambda unit: unit.run("put_lease", **values))

    def find_record(self, name: str) -> tuple[str, datetime] | None:
        row = self._read(NO_OWNER, lambda unit: unit.one("find_lease_row", name=name))
        return None if row is None else (row[0], moment(row[1]))

    def count_bytes(self) -> int:
        ((count,),) = self._read(NO_OWNER, lambda unit: unit.all("count_bytes"))
        return int(count)

    def end_lease(self, name: str, holder: str) -> None:
        self._write(NO_OWNER, lambda unit: unit.run("end_lease", name=name, holder=holder))


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
