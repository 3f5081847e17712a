"""Rows of items: memories with a namespace and a key of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from wellkept.language.names import memory_seq
from wellkept.memory.rules_conditions import Condition
from wellkept.model import Memory, Owner
from wellkept.store.conditions import compile_filter
from wellkept.store.engine import Unit, Units
from wellkept.store.tables.agents import hold_agent, touch_index
from wellkept.store.tables.rows import memory_from, owner_params


class ItemRows(Units):
    """Memories that are items. `path` is a namespace as `memory.rules_items` joins it."""

    def find_item(self, owner: Owner, path: str, key: str) -> Memory | None:
        # Without a user, a key is that of no user.
        """Return the memory with this key of the owner's user, or else of no user; it may have expired."""
        owners = [owner.of(part.user) for part in owner.parts]

        def find(unit: Unit) -> Memory | None:
            rows = (unit.one("find_item", **owner_params(each), path=path, key=key) for each in owners)
            return next((memory_from(row) for row in rows if row is not None), None)

        return self._read(owner.tenant, find)

    def hold_items(self, owner: Owner, *, now: datetime) -> None:
        """Keep all others from writing items of the agent until this transaction ends."""
        self._write(owner.tenant, lambda unit: hold_agent(unit, owner, now))

    def set_item_end(self, memory: Memory) -> None:
        """Store `expires_at` and `ttl_seconds`. This is no edit, so no version is kept."""
        values = {**owner_params(memory.owner), "seq": memory_seq(memory.id) or 0, "until": memory.expires_at}

        def set_end(unit: Unit) -> None:
            # Every write to the index locks the agent's row first, to avoid deadlocks.
            touch_index(unit, memory.owner)
            unit.put("set_item_end", **values, ttl_seconds=memory.ttl_seconds)
            unit.put("prolong_entry", **values)

        self._write(memory.owner.tenant, set_end)

    def find_item_numbers(
        self, owner: Owner, where: Condition | None, *, now: datetime, limit: int, offset: int = 0
    ) -> Sequence[int]:
        """Return the numbers of the live items that meet a condition, the last written first."""
        clause = compile_filter(where, self._engine.name, now)
        values = {**owner_params(owner), "now": now, "limit": limit, "offset": offset}
        rows = self._read(owner.tenant, lambda unit: unit.all("item_numbers", clause, **values))
        return [row[0] for row in rows]

    def list_item_paths(self, owner: Owner, first: str, last: str, *, now: datetime, limit: int) -> Sequence[str]:
        """List the different paths of live items from `first` to before `last`, in order."""
        values = {**owner_params(owner), "now": now, "first": first, "last": last, "limit": limit}
        return [row[0] for row in self._read(owner.tenant, lambda unit: unit.all("item_namespaces", **values))]

    def archive_expired_items(self, owner: Owner, *, now: datetime, limit: int) -> int:
        """Archive expired items and return how many."""

        def archive(unit: Unit) -> int:
            place = {**owner_params(owner), "now": now}
            numbers = [seq for (seq,) in unit.all("expired_items", **place, limit=limit)]
            if not numbers:
                return 0
            touch_index(unit, owner)
            # The end of an item may have moved until the agent's row was locked.
            unit.put("archive_expired_items", **place, numbers=self._engine.numbers(numbers))
            unit.put("remove_archived_from_index", **owner_params(owner), numbers=self._engine.numbers(numbers))
            return len(numbers)

        return self._write(owner.tenant, archive)

    def delete_ended_items(self, owner: Owner, *, before: datetime, limit: int) -> int:
        """Delete items that had expired when they were archived, up to `before`; return how many."""
        return self._delete_old("ended_items", owner, before, limit)

    def delete_forgotten(self, owner: Owner, *, before: datetime, limit: int) -> int:
        """Delete memories that were hidden at a request to forget, up to `before`; return how many."""
        return self._delete_old("forgotten_memories", owner, before, limit)

    def _delete_old(self, name: str, owner: Owner, before: datetime, limit: int) -> int:
        def delete(unit: Unit) -> int:
            rows = unit.all(name, **owner_params(owner), before=before, limit=limit)
            if rows:
                touch_index(unit, owner)
                unit.run_many("delete_memory", [{**owner_params(owner), "seq": seq} for (seq,) in rows])
            return len(rows)

        return self._write(owner.tenant, delete)
