"""Rows of embedders and vectors, and the texts that are not embedded yet."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime

from wellkept.errors import Conflict, SchemaMismatch
from wellkept.model import Owner
from wellkept.model.stored import SOON, Unembedded, Vector
from wellkept.store.engine import RegisteredEmbedder, Unit, Units, queue_texts
from wellkept.store.tables.knowledge import SHELF
from wellkept.store.tables.rows import owner_params

NO_OWNER = ""
"""Tenant of shared tables such as the embedder registry, and agent of passages."""

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
        return [row[0] for row in self.read(NO_OWNER, lambda unit: unit.all("list_tenants"))]

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
        place = {"tenant": owner.tenant, "agent": owner.agent, "limit": limit}
        rows = self.read(owner.tenant, lambda unit: unit.all("unembedded_of_agent", **place))
        return [Unembedded(Owner(owner.tenant, agent), *rest) for agent, *rest in rows]

    def count_unembedded(self, tenant: str) -> int:
        return self.read(tenant, _count_unembedded)

    def list_waiting_tenants(self, until: datetime) -> Sequence[str]:
        """List the tenants with texts in the queue that are due at `until`."""
        return [row[0] for row in self.read(NO_OWNER, lambda unit: unit.all("list_waiting_tenants", until=until))]

    def list_queue(self, tenant: str) -> Sequence[int]:
        """List the ids of a tenant's rows in the queue. Call it before reading the texts, for `settle_queue`."""
        rows = self.read(tenant, lambda unit: unit.all("list_queue", tenant=tenant, limit=MAX_SETTLED))
        return [row[0] for row in rows]

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
        row = self.read(NO_OWNER, lambda unit: unit.one("active_embedder"))
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
