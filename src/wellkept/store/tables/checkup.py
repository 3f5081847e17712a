"""Health checks of the store: schema, damage and gaps in the index."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from wellkept.history.rules_history import history_terms, step_words
from wellkept.language.names import memory_seq
from wellkept.language.text import GIST, index_terms, terms
from wellkept.model import IndexGaps, Owner, StoreState, WrongWords
from wellkept.store.engine import RegisteredEmbedder, Row, Unit, Units
from wellkept.store.migrations import CreatedObject, list_created, load_migrations
from wellkept.store.search.words import encode_words, has_same_words
from wellkept.store.tables import workflows
from wellkept.store.tables.agents import renew_index
from wellkept.store.tables.embeddings import NO_OWNER
from wellkept.store.tables.knowledge import SHELF
from wellkept.store.tables.rows import memory_from, memory_values, note_entries, step_from
from wellkept.store.tables.transfer import TABLES

SOUND = "ok"
"""Answer of a check that found no damage."""

DURABLE = {"wal": "write-ahead log", "fsync": "fsync", "memory": "in memory, gone when it is closed"}
MISSING = ("count_unindexed_memories", "count_unindexed_chunks", "count_unindexed_steps")
SURPLUS = ("count_surplus_memories", "count_surplus_chunks")
DROP_SURPLUS = ("drop_surplus_memories", "drop_surplus_chunks")
MEMORY, KNOWLEDGE, WORKFLOW = "memory", SHELF, workflows.SHELF
WORDS_AFTER = {MEMORY: "memory_words_after", KNOWLEDGE: "chunk_words_after", WORKFLOW: "step_terms_after"}
"""Statement that reads the index entries of each shelf after a given position."""

PAGE = 500
TABLE = "table"
ELSEWHERE = ("workflow_steps", "seq")
"""Column that exports list with the steps but the schema keeps in `step_index`."""


class CheckupRows(Units):
    """Self-checks of a store. Only `mend_index` and `mend_words` change anything; contents of details are left out."""

    def describe_store(self) -> StoreState:
        def describe(unit: Unit) -> StoreState:
            ((schema,),), ((log,),) = unit.all("newest_step"), unit.all("durability")
            created = list_created(load_migrations(self._engine.name))
            found = {(str(name), str(column)) for name, column in unit.all("list_schema")}
            active = unit.one("active_embedder") if ("embedders", "") in found else None
            own = {} if active is None else self._engine.own_indexes(RegisteredEmbedder(*active))
            return StoreState(
                engine=self._engine.name,
                schema=schema,
                durability=DURABLE.get(log, str(log)),
                is_durable=log in DURABLE,
                lost=_list_missing(created, found),
                unmade=_list_missing_objects(created, found),
                faster=[made for name, made in own.items() if (name, "") not in found],
            )

        return self.read(NO_OWNER, describe)

    def find_damage(self, *, is_quick: bool = False) -> Sequence[str]:
        """Describe damage the database finds in itself, in a few sentences; `is_quick` does not read every page."""

        def find(unit: Unit) -> list[str]:
            if is_quick:
                rows = unit.all("find_damage_quickly")
            else:
                rows = [*unit.all("find_damage"), *unit.all("find_lost_references")]
            return [message for (message,) in rows if message != SOUND]

        return self.read(NO_OWNER, find)

    def count_index_gaps(self, tenant: str) -> IndexGaps:
        def count(unit: Unit) -> IndexGaps:
            missing, surplus = (
                sum(int(row[0]) for name in names for row in unit.all(name, tenant=tenant))
                for names in (MISSING, SURPLUS)
            )
            return IndexGaps(missing=missing, surplus=surplus)

        return self.read(tenant, count)

    def mend_index(self, tenant: str, *, limit: int = 500) -> int:
        """Remove outdated entries from the search index and add at most `limit` missing texts, to be embedded later.

        Returns the number of changed entries.
        """

        def mend(unit: Unit) -> int:
            # Every write locks these rows first, so other writers of the index wait until we commit.
            unit.put("touch_all_indexes", tenant=tenant)
            unit.put("touch_shelf", tenant=tenant, shelf=SHELF)
            unit.put("hold_shelf", tenant=tenant, shelf=workflows.SHELF)
            dropped = sum(unit.run(name, tenant=tenant) for name in DROP_SURPLUS)
            done = self._index_memories(unit, limit)
            done += self._index_chunks(unit, limit - done)
            return dropped + done + _index_steps(unit, limit - done)

        return self.write(tenant, mend)

    def find_wrong_words(self, tenant: str) -> Iterator[WrongWords]:
        """Yield index entries whose words differ from their text, with one page in memory at a time.

        Entries that `count_index_gaps` counts as surplus may be left out.
        """
        for shelf, statement in WORDS_AFTER.items():
            agent, seq = "", 0
            while rows := self._read_words_after(tenant, statement, agent, seq):
                yield from (_wrong_words_from(shelf, row) for row in rows if not self._has_right_words(shelf, row))
                agent, seq = rows[-1][:2]

    def mend_words(self, tenant: str, entries: Sequence[WrongWords]) -> int:
        """Rewrite the words of these entries and keep their vectors; return how many were still wrong."""

        def mend(unit: Unit) -> int:
            # Lock in the same order as `mend_index` to avoid deadlocks.
            for agent in sorted({each.agent for each in entries if each.shelf == MEMORY}):
                renew_index(unit, agent)
            shelves = {each.shelf for each in entries}
            if KNOWLEDGE in shelves:
                unit.put("touch_shelf", tenant=tenant, shelf=SHELF)
            if WORKFLOW in shelves:
                unit.put("hold_shelf", tenant=tenant, shelf=workflows.SHELF)
            mended = sum(self._mend_entry(unit, each) for each in entries)
            if WORKFLOW in shelves:
                _index_steps(unit, len(entries))
            return mended

        return self.write(tenant, mend)

    def _read_words_after(self, tenant: str, statement: str, agent: str, seq: int) -> Sequence[Row]:
        values = {"tenant": tenant, "agent": agent, "seq": seq, "limit": PAGE}
        return self.read(tenant, lambda unit: unit.all(statement, **values))

    def _has_right_words(self, shelf: str, row: Row) -> bool:
        stored, words, index = row[3], _expected_words(shelf, row), self._engine.index
        if shelf == WORKFLOW:
            return has_same_words(bytes(stored), words)
        is_gist = shelf == MEMORY and index.holds_words(stored, [*terms(row[4]), GIST])
        return is_gist or index.has_words(stored, words)

    def _mend_entry(self, unit: Unit, entry: WrongWords) -> int:
        """Reread the entry under the lock and repair it if it is still wrong."""
        place = {"tenant": unit.tenant, "agent": entry.agent, "seq": entry.seq}
        row = unit.one(WORDS_AFTER[entry.shelf], **place | {"seq": entry.seq - 1, "limit": 1})
        if row is None or (row[0], row[1]) != (entry.agent, entry.seq) or self._has_right_words(entry.shelf, row):
            return 0
        if entry.shelf == WORKFLOW:
            # `_index_steps` adds it again under a new number, which readers of the index notice.
            return unit.run("drop_step_words", **place)
        (columns,) = self._engine.index.encoded([_expected_words(entry.shelf, row)], [None])
        if entry.shelf == MEMORY:
            return unit.run("set_memory_words", **place, **columns)
        numbers = unit.one("take_shelf_numbers", tenant=unit.tenant, shelf=SHELF, count=0)
        assert numbers is not None  # a tenant with passages has a shelf
        return unit.run("set_chunk_words", **place, **columns, version=numbers[1])

    def _index_memories(self, unit: Unit, limit: int) -> int:
        missing = [memory_from(row) for row in unit.all("unindexed_memories", tenant=unit.tenant, limit=limit)]
        entries = self._entries([index_terms(memory.text) for memory in missing])
        known = [memory_values(memory, memory_seq(memory.id) or 0) for memory in missing]
        unit.run_many("index_memory", [{**row, **entry} for row, entry in zip(known, entries, strict=True)])
        note_entries(unit, entries)
        return len(missing)

    def _index_chunks(self, unit: Unit, limit: int) -> int:
        missing = unit.all("unindexed_chunks", tenant=unit.tenant, limit=limit)
        if not missing:
            return 0
        numbers = unit.one("take_shelf_numbers", tenant=unit.tenant, shelf=SHELF, count=0)
        assert numbers is not None  # a tenant with passages has a shelf
        entries = self._entries([terms(text) for _, text, _ in missing])
        known = [{"seq": seq, "category": category, "version": numbers[1]} for seq, _, category in missing]
        rows = [{"tenant_id": unit.tenant, **row, **entry} for row, entry in zip(known, entries, strict=True)]
        unit.run_many("index_chunk", rows)
        note_entries(unit, entries)
        return len(missing)

    def _entries(self, words: Sequence[Sequence[str]]) -> Sequence[Mapping[str, Any]]:
        return self._engine.index.encoded(words, [None] * len(words))

    def find_damaged_notes(self, owner: Owner) -> Sequence[str] | None:
        """List the invalid lines of the agent's notes file with the reason; None if its notes are in the database.

        A file without an owner yet is checked for any agent.
        """
        return None


def _expected_words(shelf: str, row: Row) -> Sequence[str]:
    """Return the words an entry should hold."""
    if shelf == WORKFLOW:
        return history_terms(step_words(step_from(row[4:])))
    return index_terms(row[4]) if shelf == MEMORY else terms(row[4])


def _wrong_words_from(shelf: str, row: Row) -> WrongWords:
    agent, seq, name = row[:3]
    return WrongWords(shelf=shelf, agent=agent, seq=seq, name=name)


def _index_steps(unit: Unit, limit: int) -> int:
    """Index steps that lack an entry, under new numbers: cached word lists look only after their last one."""
    missing = [step_from(row) for row in unit.all("unindexed_steps", tenant=unit.tenant, limit=limit)]
    if not missing:
        return 0
    unit.put("add_shelf", tenant=unit.tenant, shelf=workflows.SHELF)
    numbers = unit.one("take_shelf_numbers", tenant=unit.tenant, shelf=workflows.SHELF, count=len(missing))
    assert numbers is not None
    for seq, step in enumerate(missing, numbers[0] - len(missing) + 1):
        place = {"tenant_id": unit.tenant, "workflow_id": step.workflow_id, "position": step.position}
        unit.put("index_step", **place, seq=seq, terms=encode_words(history_terms(step_words(step))))
    return len(missing)


def _list_missing(created: Mapping[str, CreatedObject], found: Collection[tuple[str, str]]) -> list[str]:
    """List the tables and columns that the database lacks."""
    tables = {name for name, each in created.items() if each.what == TABLE and (name, "") not in found}
    expected = {(table.name, column): None for table in TABLES for column in table.columns if table.name not in tables}
    expected.pop(ELSEWHERE, None)
    columns = [f"the column {column} of {table}" for table, column in expected if (table, column) not in found]
    return [*(f"the table {name}" for name in sorted(tables)), *columns]


def _list_missing_objects(created: Mapping[str, CreatedObject], found: Collection[tuple[str, str]]) -> dict[str, str]:
    """Map each index and view that the database lacks to the statement that creates it."""
    missing_objects = {name: each for name, each in created.items() if each.what != TABLE and (name, "") not in found}
    return {f"the {each.what} {name}": f"{' '.join(each.statement.split())};" for name, each in missing_objects.items()}
