"""The store's own condition."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from recollect.model import IndexGaps, Owner, StoreState
from recollect.policy.history import history_terms, step_words
from recollect.policy.names import memory_seq
from recollect.policy.text import terms
from recollect.store import workflows
from recollect.store.embeddings import NOBODY
from recollect.store.engine import Unit
from recollect.store.history_rows import step_from
from recollect.store.knowledge import SHELF
from recollect.store.migrations import Made, load_migrations, made_by
from recollect.store.rows import memory_from, memory_values
from recollect.store.transfer_tables import TABLES
from recollect.store.units import Units
from recollect.store.words import encoded

SOUND = "ok"
DURABLE = {"wal": "write-ahead log", "fsync": "fsync", "memory": "in memory, gone when it is closed"}
MISSING = ("count_unindexed_memories", "count_unindexed_chunks", "count_unindexed_steps")
SURPLUS = ("count_surplus_memories", "count_surplus_chunks")
DROP_SURPLUS = ("drop_surplus_memories", "drop_surplus_chunks")
TABLE = "table"
ELSEWHERE = ("workflow_steps", "seq")
"""An export has it with the step; it is kept in the steps' index."""


class CheckupRows(Units):
    """`ports.CheckupStore`, but for what is kept as contents."""

    def describe_store(self) -> StoreState:
        def describe(unit: Unit) -> StoreState:
            ((schema,),), ((log,),) = unit.all("newest_step"), unit.all("durability")
            made = made_by(load_migrations(self._engine.name))
            found = {(str(name), str(column)) for name, column in unit.all("list_schema")}
            return StoreState(
                schema=schema,
                durability=DURABLE.get(log, str(log)),
                is_durable=log in DURABLE,
                lost=_lost(made, found),
                unmade=_unmade(made, found),
            )

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

    def mend_index(self, tenant: str, *, limit: int = 500) -> int:
        def mend(unit: Unit) -> int:
            # The rows of agents and shelf are the first that every write takes: whoever indexes a text waits for us.
            unit.run("touch_all_indexes", tenant=tenant)
            unit.run("touch_shelf", tenant=tenant, shelf=SHELF)
            unit.run("hold_shelf", tenant=tenant, shelf=workflows.SHELF)
            dropped = sum(unit.run(name, tenant=tenant) for name in DROP_SURPLUS)
            done = self._index_memories(unit, limit)
            done += self._index_chunks(unit, limit - done)
            return dropped + done + _index_steps(unit, limit - done)

        return self._write(tenant, mend)

    def _index_memories(self, unit: Unit, limit: int) -> int:
        missing = [memory_from(row) for row in unit.all("unindexed_memories", tenant=unit.tenant, limit=limit)]
        entries = self._entries([memory.text for memory in missing])
        known = [memory_values(memory, memory_seq(memory.id) or 0) for memory in missing]
        unit.run_many("index_memory", [{**row, **entry} for row, entry in zip(known, entries, strict=True)])
        return len(missing)

    def _index_chunks(self, unit: Unit, limit: int) -> int:
        missing = unit.all("unindexed_chunks", tenant=unit.tenant, limit=limit)
        if not missing:
            return 0
        numbers = unit.one("take_shelf_numbers", tenant=unit.tenant, shelf=SHELF, count=0)
        assert numbers is not None  # what has passages has a shelf
        entries = self._entries([text for _, text, _ in missing])
        known = [{"seq": seq, "category": category, "version": numbers[1]} for seq, _, category in missing]
        rows = [{"tenant_id": unit.tenant, **row, **entry} for row, entry in zip(known, entries, strict=True)]
        unit.run_many("index_chunk", rows)
        return len(missing)

    def _entries(self, texts: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return self._engine.index.encoded([terms(text) for text in texts], [None] * len(texts))

    def find_damaged_notes(self, owner: Owner) -> Sequence[str] | None:
        return None


def _index_steps(unit: Unit, limit: int) -> int:
    """They get new numbers, behind all others: whoever holds the words of steps looks for more of them only there."""
    missing = [step_from(row) for row in unit.all("unindexed_steps", tenant=unit.tenant, limit=limit)]
    if not missing:
        return 0
    unit.run("add_shelf", tenant=unit.tenant, shelf=workflows.SHELF)
    numbers = unit.one("take_shelf_numbers", tenant=unit.tenant, shelf=workflows.SHELF, count=len(missing))
    assert numbers is not None
    for seq, step in enumerate(missing, numbers[0] - len(missing) + 1):
        place = {"tenant_id": unit.tenant, "workflow_id": step.workflow_id, "position": step.position}
        unit.run("index_step", **place, seq=seq, terms=encoded(history_terms(step_words(step))))
    return len(missing)


def _lost(made: Mapping[str, Made], found: Collection[tuple[str, str]]) -> list[str]:
    """The tables and columns the database lacks of its schema."""
    tables = {name for name, each in made.items() if each.what == TABLE and (name, "") not in found}
    wanted = {(table.name, column): None for table in TABLES for column in table.columns if table.name not in tables}
    wanted.pop(ELSEWHERE, None)
    columns = [f"the column {column} of {table}" for table, column in wanted if (table, column) not in found]
    return [*(f"the table {name}" for name in sorted(tables)), *columns]


def _unmade(made: Mapping[str, Made], found: Collection[tuple[str, str]]) -> dict[str, str]:
    """The indexes and views it lacks, each with the statement that makes it."""
    lacking = {name: each for name, each in made.items() if each.what != TABLE and (name, "") not in found}
    return {f"the {each.what} {name}": f"{' '.join(each.statement.split())};" for name, each in lacking.items()}
