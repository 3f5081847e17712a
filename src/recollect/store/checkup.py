"""The store's own condition."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.model import IndexGaps, Owner, StoreState
from recollect.store.embeddings import NOBODY
from recollect.store.engine import Unit
from recollect.store.units import Units

SOUND = "ok"
DURABLE = {"wal": "write-ahead log", "fsync": "fsync", "memory": "in memory, gone when it is closed"}
MISSING = ("count_unindexed_memories", "count_unindexed_chunks")
SURPLUS = ("count_surplus_memories", "count_surplus_chunks")


class CheckupRows(Units):
    """`ports.CheckupStore`, but for what is kept as contents."""

    def describe_store(self) -> StoreState:
        def describe(unit: Unit) -> StoreState:
            ((schema,),), ((log,),) = unit.all("newest_step"), unit.all("durability")
            return StoreState(schema=schema, durability=DURABLE.get(log, str(log)), is_durable=log in DURABLE)

        return self._read(NOBODY, describe)

    def find_damage(self, *, is_quick: bool = False) -> Sequence[str]:
        def find(unit: Unit) -> list[str]:
            if is_quick:
                rows = unit.all("find_damage_quickly")
            else:
                rows = [*unit.all("find_damage"), *unit.all("find_lost_references")]
            return [said for (said,) in rows if said != SOUND]

        return self._read(NOBODY, find)

    def count_index_gaps(self, tenant: str) -> IndexGaps:
        def count(unit: Unit) -> IndexGaps:
            missing, surplus = (
                sum(int(row[0]) for name in names for row in unit.all(name, tenant=tenant))
                for names in (MISSING, SURPLUS)
            )
            return IndexGaps(missing=missing, surplus=surplus)

        return self._read(tenant, count)

    def find_damaged_notes(self, owner: Owner) -> Sequence[str] | None:
        return None
