"""Rows that maintenance reads and writes: aging episodes, retrieval marks and leases."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from wellkept.errors import Conflict, SchemaMismatch
from wellkept.history.rules_history import history_terms, step_words
from wellkept.language.names import memory_seq
from wellkept.language.text import GIST, index_terms, terms
from wellkept.memory.rules_items import end_of
from wellkept.memory.rules_lifetime import LIFETIMES, Lifetimes, prolong
from wellkept.model import ClusterNode, IndexGaps, Kind, Memory, Owner, State, StoreState, WrongWords
from wellkept.model.stored import SOON, Aging, StoreTotals, Unembedded, Vector
from wellkept.store.conditions import STATE_SQL, Clause
from wellkept.store.engine import RegisteredEmbedder, Row, Unit, Units, owner_params, queue_texts
from wellkept.store.migrations import CreatedObject, list_created, load_migrations
from wellkept.store.search.encoding import count_terms, encode_terms
from wellkept.store.tables import history
from wellkept.store.tables.agents import renew_index
from wellkept.store.tables.knowledge import SHELF
from wellkept.store.tables.rows import (
    NO_OWNER,
    RecordRows,
    maybe_moment,
    memory_from,
    memory_values,
    moment,
    note_entries,
    number_of,
    step_from,
)
from wellkept.store.tables.transfer import TABLES

BEGUN = SOON + timedelta(days=1)
"""Due date of a tenant that changed, while it is visited."""


class MaintenanceRows(Units):
    """Archiving, recall marks and leases."""

    def list_for_review(self, owner: Owner, *, limit: int = 100) -> Sequence[Memory]:
        """List held and flagged memories, newest first."""
        return self._list(owner, "list_for_review", memory_from, number_of, limit=limit)

    def list_aging(self, owner: Owner, *, after: int = 0, limit: int = 1000) -> Sequence[Aging]:
        """List episodes that are not archived, by number, starting after `after`."""
        return [*map(_aging_from, self._all(owner, "list_aging", after=after, limit=limit))]

    def count_aging(self, owner: Owner, *, now: datetime) -> tuple[int, int]:
        """Count the episodes that are live at `now`, and those that have expired but are not archived."""
        ((live, expired),) = self._all(owner, "count_aging", now=now)
        return int(live), int(expired)

    def count_states(self, owner: Owner, *, now: datetime) -> Mapping[tuple[Kind, State], int]:
        """Count the memories by kind and state at `now`. Reads all of them."""
        state = Clause(STATE_SQL.format(now=":now"))
        rows = self._all(owner, "count_states", state, now=now)
        return {(Kind(kind), State(state)): int(count) for kind, state, count in rows}

    def archive_memories(self, owner: Owner, seqs: Sequence[int], *, now: datetime) -> int:
        """Archive memories: remove them from every search without deleting them; return how many."""
        numbers = list(seqs)

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
        numbers = list(seqs)

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
        return [row[0] for row in self._all(NO_OWNER, "list_due_tenants", now=now)]

    def mark_all_due(self) -> None:
        """Have maintenance visit every tenant with its next run."""
        self._run(NO_OWNER, "mark_all_due", soon=SOON)

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
        self._run(tenant, "end_visit", began=due_before, next=due_at, counts=json.dumps(counts))

    def find_first_ends(self, tenant: str) -> tuple[datetime | None, datetime | None]:
        """Return the first end of an item of the tenant, and the time of its oldest kept answer."""
        ((item, answer),) = self._all(tenant, "find_first_ends")
        return maybe_moment(item), maybe_moment(answer)

    def sum_counts(self) -> Mapping[str, int]:
        """Return the sums of the counts that the last visits of all tenants kept."""
        return {name: int(count) for name, count in self._all(NO_OWNER, "sum_counts")}

    def count_recalls(self, owner: Owner, days: Mapping[date, int]) -> None:
        """Add to the number of recalls of each day; nothing is added for an agent that does not exist."""
        rows = [{**owner_params(owner), "day": day.isoformat(), "count": count} for day, count in days.items()]
        self.write(owner.tenant, lambda unit: unit.run_many("count_recalls", rows))

    def take_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        # A lease that ends long after any taken now is one of a clock that has been put right since.
        """Acquire or renew an exclusive lease; return False while another holder has it."""
        values = {"name": name, "holder": holder, "now": now, "until": until, "latest": until + (until - now)}
        return self._run(NO_OWNER, "take_lease", **values) > 0

    def put_record(self, name: str, value: str, *, at: datetime) -> None:
        """Store a value about the whole store under a name that no lease has, such as the last maintenance run."""
        self._run(NO_OWNER, "put_lease", name=name, holder=value, until=at)

    def find_record(self, name: str) -> tuple[str, datetime] | None:
        """Return the value under a name, and its time."""
        row = self._one(NO_OWNER, "find_lease_row", name=name)
        return None if row is None else (row[0], moment(row[1]))

    def count_bytes(self) -> int:
        """Return the size of the whole database."""
        ((count,),) = self._all(NO_OWNER, "count_bytes")
        return int(count) + sum(node.bytes for node in self._engine.check_nodes())

    def read_totals(self, names: Sequence[str]) -> StoreTotals:
        """Read the size of the database, its waiting texts and the named records, with one statement."""
        rows = {name: (value, at) for name, value, at in self._all(NO_OWNER, "read_totals", names=list(names))}
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
        self._run(NO_OWNER, "end_lease", name=name, holder=holder)

    def end_old_leases(self, *, before: datetime) -> None:
        """Remove the leases of processes that died, if they ended before a time."""
        self._run(NO_OWNER, "end_old_leases", before=before)


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


NO_ONES = 0
"""Id of no embedder."""

MAX_SETTLED = 10_000
"""Queued rows of a tenant that are settled together."""

REPLACED = (
    "The embedder %r is gone; %r replaces it. Memories are found by their words until they have new vectors, which are "
    "made in the background. To make all of them now, run: wellkept admin reembed"
)

log = logging.getLogger("wellkept")


class EmbeddingRows(Units):
    """The embedder of the stored vectors, and the texts that still wait for one."""

    def use_embedder(self, name: str, dimensions: int, *, replaces: Collection[str] = ()) -> None:
        """Set the embedder whose vectors are written and searched; the first one is recorded.

        If the stored vectors come from one that it `replaces`, they are dropped, as `change_embedder` does.

        Raises: SchemaMismatch when they come from another.
        """
        active = self._find_active()
        if active is not None and active.name in replaces:
            log.warning(REPLACED, active.name, name)
            # Before the new name is registered: if this is interrupted, it starts again with the next opening.
            self._drop_vectors(NO_ONES)
            self.change_embedder(name, dimensions)
            return
        if active is None:
            active = self._register(name, dimensions)
        if (active.name, active.dimensions) != (name, dimensions):
            raise SchemaMismatch(
                f"The stored vectors come from the embedder {active.name!r} ({active.dimensions} dimensions), not from "
                f"{name!r} ({dimensions}). Use that one again, or run: wellkept admin reembed"
            )
        self._engine.use_embedder(active)

    def change_embedder(self, name: str, dimensions: int) -> None:
        """Drop the vectors of all other embedders, so that every text waits for this one."""
        active = self._find_active()
        if active is None or (active.name, active.dimensions) != (name, dimensions):
            active = self._register(name, dimensions)
        if (active.name, active.dimensions) != (name, dimensions):
            raise Conflict("Another process changed the embedder meanwhile. Check which one is active, then try again.")
        self._engine.use_embedder(active)
        self._drop_vectors(active.id)

    def list_tenants(self) -> Sequence[str]:
        return [row[0] for row in self._all(NO_OWNER, "list_tenants")]

    def list_unembedded(
        self, tenant: str, *, after: Unembedded | None = None, limit: int = 100
    ) -> Sequence[Unembedded]:
        """List memories by agent and number, then chunks; `after` (the last one of a page) continues a listing."""
        agent, seq = (NO_OWNER, 0) if after is None else (after.owner.agent, after.seq)
        is_past_memories = after is not None and agent == NO_OWNER

        def read(unit: Unit) -> list[Unembedded]:
            place = {"tenant": tenant, "agent": agent, "seq": seq, "limit": limit}
            memories = [] if is_past_memories else unit.all("unembedded_memories", **place)
            found = [Unembedded(Owner(tenant, name), *rest) for name, *rest in memories]
            place = {"tenant": tenant, "seq": seq if is_past_memories else 0, "limit": limit - len(found)}
            return found + [
                Unembedded(Owner(tenant, NO_OWNER), *rest) for rest in unit.all("unembedded_chunks", **place)
            ]

        return self.read(tenant, read)

    def list_unembedded_of(self, owner: Owner, *, limit: int) -> Sequence[Unembedded]:
        # Of all users: who asks first embeds for the others, too.
        """List memories of an agent, the newest first, then chunks of its tenant."""
        rows = self._all(owner.whole, "unembedded_of_agent", limit=limit)
        return [Unembedded(Owner(owner.tenant, agent), *rest) for agent, *rest in rows]

    def count_unembedded(self, tenant: str) -> int:
        return self.read(tenant, _count_unembedded)

    def list_waiting_tenants(self, until: datetime) -> Sequence[str]:
        """List the tenants with texts in the queue that are due at `until`."""
        return [row[0] for row in self._all(NO_OWNER, "list_waiting_tenants", until=until)]

    def list_queue(self, tenant: str) -> Sequence[int]:
        """List the ids of a tenant's rows in the queue. Call it before reading the texts, for `settle_queue`."""
        return [row[0] for row in self._all(tenant, "list_queue", limit=MAX_SETTLED)]

    def settle_queue(self, tenant: str, ids: Sequence[int], *, due_at: datetime = SOON) -> int:
        """Remove rows from the queue; queue the texts that still wait, if any, until `due_at`, and return how many."""

        def settle(unit: Unit) -> int:
            unit.run_many("leave_queue", [{"tenant": tenant, "id": id} for id in ids])
            left = _count_unembedded(unit)
            if left:
                queue_texts(unit, left, due_at=due_at)
            return left

        return self.write(tenant, settle)

    def set_vectors(self, tenant: str, embedded: Sequence[tuple[Unembedded, Vector]]) -> int:
        """Fill in missing vectors and return how many were set; skip texts edited or deleted since."""
        encoded = self._engine.index.encoded([()] * len(embedded), [vector for _, vector in embedded])
        pairs = zip(embedded, encoded, strict=True)
        entries = [(missing, entry) for (missing, _), entry in pairs if missing.owner.tenant == tenant]

        def fill(unit: Unit) -> int:
            for agent in sorted({missing.owner.agent for missing, _ in entries}):
                if agent == NO_OWNER:
                    unit.put("touch_shelf", tenant=tenant, shelf=SHELF)
                else:
                    unit.put("touch_index", tenant=tenant, agent=agent)
            filled = 0
            for missing, entry in entries:
                row = {"seq": missing.seq, "version": missing.version, "embedder_id": entry["embedder_id"]}
                if missing.owner.agent == NO_OWNER:
                    filled += unit.run("set_chunk_vector", tenant=tenant, vector=entry["vector"], **row)
                else:
                    filled += unit.run(
                        "set_memory_vector", **owner_params(missing.owner), vector=entry["vector"], **row
                    )
            return filled

        return self.write(tenant, fill)

    def _drop_vectors(self, embedder_id: int) -> None:
        """Drop the vectors of all other embedders."""
        for tenant in self.list_tenants():
            self.write(tenant, lambda unit: _drop_vectors(unit, embedder_id))

    def _find_active(self) -> RegisteredEmbedder | None:
        row = self._one(NO_OWNER, "active_embedder")
        return None if row is None else RegisteredEmbedder(*row)

    def _register(self, name: str, dimensions: int) -> RegisteredEmbedder:
        def register(unit: Unit) -> RegisteredEmbedder:
            newest = unit.one("active_embedder")
            if newest is None or tuple(newest[1:]) != (name, dimensions):
                number = 1 if newest is None else newest[0] + 1
                unit.put("add_embedder", id=number, name=name, dimensions=dimensions)
                # Read it back: another server may have taken the number first.
                newest = unit.one("active_embedder")
            assert newest is not None
            return RegisteredEmbedder(*newest)

        return self.write(NO_OWNER, register)


def _count_unembedded(unit: Unit) -> int:
    (memories,), (chunks,) = (
        *unit.all("count_unembedded_memories", tenant=unit.tenant),
        *unit.all("count_unembedded_chunks", tenant=unit.tenant),
    )
    return int(memories + chunks)


def _drop_vectors(unit: Unit, embedder_id: int) -> None:
    unit.put("touch_shelf", tenant=unit.tenant, shelf=SHELF)
    unit.put("touch_all_indexes", tenant=unit.tenant)
    unit.put("drop_memory_vectors", tenant=unit.tenant, embedder_id=embedder_id)
    unit.put("drop_chunk_vectors", tenant=unit.tenant, embedder_id=embedder_id)
    if left := _count_unembedded(unit):
        queue_texts(unit, left)


SOUND = "ok"
"""Answer of a check that found no damage."""

DURABLE = {"wal": "write-ahead log", "fsync": "fsync", "memory": "in memory, gone when it is closed"}
MISSING = ("count_unindexed_memories", "count_unindexed_chunks", "count_unindexed_steps")
SURPLUS = ("count_surplus_memories", "count_surplus_chunks")
DROP_SURPLUS = ("drop_surplus_memories", "drop_surplus_chunks")
MEMORY, KNOWLEDGE, WORKFLOW = "memory", SHELF, history.STEPS_SHELF
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
            unit.put("hold_shelf", tenant=tenant, shelf=history.STEPS_SHELF)
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
                unit.put("hold_shelf", tenant=tenant, shelf=history.STEPS_SHELF)
            mended = sum(self._mend_entry(unit, each) for each in entries)
            if WORKFLOW in shelves:
                _index_steps(unit, len(entries))
            return mended

        return self.write(tenant, mend)

    def _read_words_after(self, tenant: str, statement: str, agent: str, seq: int) -> Sequence[Row]:
        return self._all(tenant, statement, agent=agent, seq=seq, limit=PAGE)

    def _has_right_words(self, shelf: str, row: Row) -> bool:
        stored, words, index = row[3], _expected_words(shelf, row), self._engine.index
        if shelf == WORKFLOW:
            return count_terms(bytes(stored)) == count_terms(encode_terms(words))
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
    unit.put("add_shelf", tenant=unit.tenant, shelf=history.STEPS_SHELF)
    numbers = unit.one("take_shelf_numbers", tenant=unit.tenant, shelf=history.STEPS_SHELF, count=len(missing))
    assert numbers is not None
    for seq, step in enumerate(missing, numbers[0] - len(missing) + 1):
        place = {"tenant_id": unit.tenant, "workflow_id": step.workflow_id, "position": step.position}
        unit.put("index_step", **place, seq=seq, terms=encode_terms(history_terms(step_words(step))))
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
