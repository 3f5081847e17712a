"""Letting memories fade: rows that age, rows that were retrieved, and who may look after them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.model import Owner
from recollect.ports import Aging
from recollect.store.agents import whose
from recollect.store.embeddings import NOBODY
from recollect.store.engine import Unit
from recollect.store.rows import maybe_moment, moment
from recollect.store.units import Units


class MaintenanceRows(Units):
    """`ports.MaintenanceStore`."""

    def list_aging(self, owner: Owner, *, after: int = 0, limit: int = 1000) -> Sequence[Aging]:
        rows = self._read(owner.tenant, lambda unit: unit.all("list_aging", **whose(owner), after=after, limit=limit))
        return [
            Aging(seq, importance, moment(created_at), *map(maybe_moment, ends))
            for seq, importance, created_at, *ends in rows
        ]

    def archive_memories(self, owner: Owner, seqs: Sequence[int], *, now: datetime) -> int:
        numbers = self._engine.numbers(seqs)

        def archive(unit: Unit) -> int:
            # The agent's row first, as every writer takes it, so that two of them never wait for each other.
            unit.run("touch_index", **whose(owner))
            unit.run("remove_all_from_index", **whose(owner), seqs=numbers)
            return unit.run("archive_memories", **whose(owner), seqs=numbers, now=now)

        return self._write(owner.tenant, archive)

    def mark_retrieved(self, owner: Owner, seqs: Sequence[int], *, at: datetime) -> None:
        numbers = self._engine.numbers(seqs)
        self._write(owner.tenant, lambda unit: unit.run("mark_retrieved", **whose(owner), seqs=numbers, at=at))

    def take_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        values = {"name": name, "holder": holder, "now": now, "until": until}
        return self._write(NOBODY, lambda unit: unit.run("take_lease", **values)) > 0

    def count_bytes(self) -> int:
        ((count,),) = self._read(NOBODY, lambda unit: unit.all("count_bytes"))
        return int(count)

    def end_lease(self, name: str, holder: str) -> None:
        self._write(NOBODY, lambda unit: unit.run("end_lease", name=name, holder=holder))
