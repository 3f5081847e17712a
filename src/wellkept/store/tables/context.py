"""Rows of context calls: the prompts recently built for each agent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from wellkept.errors import NotFound
from wellkept.model import Block, BlockItem, ContextCall, Memory, Owner, Truncation
from wellkept.store.engine import Row, Unit, Units
from wellkept.store.tables.columns import COLUMNS
from wellkept.store.tables.rows import RecordRows, json_list, json_text, memory_from, moment, owner_params

BEHIND_ALL = "~"
"""Text that sorts after every id; start of a listing without a cursor."""

NO_SUCH_CALL = "There is no such call; only the latest are kept."


class ContextRows(Units):
    """Prompts assembled for an agent, stored as ids and digests."""

    def add_context_calls(self, owner: Owner, calls: Sequence[ContextCall], *, keep: int) -> bool:
        # The latest calls are kept, whoever they were for.
        """Add calls and delete the oldest beyond `keep`; return False and store nothing if there is no such agent."""
        owner = owner.whole

        def add(unit: Unit) -> bool:
            if unit.one("find_agent", **owner_params(owner)) is None:
                return False
            unit.run_many("add_context_call", map(_call_values, calls))
            oldest = unit.one("oldest_kept_context_call", **owner_params(owner), keep=keep)
            if oldest is not None:
                unit.put("prune_context_calls", **owner_params(owner), id=oldest[0])
            return True

        return self.write(owner.tenant, add)

    def get_context_call(self, owner: Owner, id: str) -> ContextCall:
        """Return one call. Raises: NotFound."""
        row = self.read(owner.tenant, lambda unit: unit.one("find_context_call", **owner_params(owner), id=id))
        if row is None:
            raise NotFound(NO_SUCH_CALL)
        return call_from(row)

    def list_context_calls(
        self, owner: Owner, *, session_id: str = "", before: str = "", limit: int = 20, item: str | None = None
    ) -> Sequence[ContextCall]:
        """List calls, newest first, optionally of one session; `before` (an id) continues a listing.

        With `item`, blocks hold only items with this id; with an empty one, none. A prompt may have considered
        thousands.
        """
        values = {"session": session_id, "before": before or BEHIND_ALL, "limit": limit}
        rows = self.read(owner.tenant, lambda unit: unit.all("list_context_calls", **owner_params(owner), **values))
        return [call_from(row if item is None else _drop_items(row, item)) for row in rows]

    def add_shown(self, owner: Owner, hashes: Collection[str], *, at: datetime, since: datetime, keep: int) -> bool:
        """Remember the newest `keep` hashes of texts shown after `since`; return False if there is no such agent."""

        def add(unit: Unit) -> bool:
            if unit.one("find_agent", **owner_params(owner)) is None:
                return False
            # Sorted, so that two processes lock the rows in the same order.
            unit.run_many("add_shown", (owner_params(owner) | {"hash": each, "at": at} for each in sorted(hashes)))
            oldest = unit.one("oldest_kept_shown", **owner_params(owner), keep=keep)
            last = since if oldest is None else max(since, moment(oldest[0]))
            unit.put("prune_shown", **owner_params(owner), at=last)
            return True

        return self.write(owner.tenant, add)

    def find_shown(self, owner: Owner, hashes: Collection[str], *, since: datetime) -> Collection[str]:
        """Return those of the hashes that were shown after `since`, by whatever process."""
        values = {"names": self._engine.texts(list(hashes)), "since": since}
        rows = self.read(owner.tenant, lambda unit: unit.all("find_shown", **owner_params(owner), **values))
        return {row[0] for row in rows}

    def forget_shown(self, tenant: str) -> None:
        """Delete the hashes of a tenant's shown texts."""
        self.write(tenant, lambda unit: unit.run("forget_shown", tenant=tenant))

    def list_tool_results(self, owner: Owner, session_id: str, *, now: datetime, limit: int = 20) -> Sequence[Memory]:
        """List live memories of tool results in a session, newest first."""
        values = {"session": session_id, "now": now, "limit": limit}
        rows = self.read(owner.tenant, lambda unit: unit.all("list_tool_results", **owner_params(owner), **values))
        return [memory_from(row) for row in rows]


def _block_values(block: Block) -> dict[str, Any]:
    items = [_non_empty_fields(item) for item in block.items]
    return {"name": block.name, "tokens": block.tokens, **({"items": items} if items else {})}


def _non_empty_fields(record: BlockItem | Truncation) -> dict[str, Any]:
    """Return the fields of a record that are not empty."""
    return {name: value for name, value in asdict(record).items() if value not in (None, "", ())}


def _block_from(values: dict[str, Any]) -> Block:
    items = tuple(BlockItem(**item) for item in values.get("items", ()))
    return Block(name=values["name"], tokens=values["tokens"], items=items)


_BLOCKS = COLUMNS["context_call"].index("blocks")


def _drop_items(row: Row, item: str) -> list[Any]:
    """Return a row whose blocks hold only the items with an id."""
    values = list(row)
    values[_BLOCKS] = [
        {**block, "items": [each for each in block.get("items", ()) if each["id"] == item]}
        for block in json_list(values[_BLOCKS])
    ]
    return values


def _truncation_from(values: dict[str, Any]) -> Truncation:
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Truncation(**{"sources": (), **values, **lists})


_CALLS = RecordRows(
    ContextCall,
    COLUMNS["context_call"],
    blocks=(
        "blocks",
        lambda blocks: tuple(map(_block_from, json_list(blocks))),
        lambda blocks: json_text([_block_values(block) for block in blocks]),
    ),
    truncations=(
        "truncations",
        lambda truncations: tuple(map(_truncation_from, json_list(truncations))),
        lambda truncations: json_text([_non_empty_fields(truncation) for truncation in truncations]),
    ),
)
call_from, _call_values = _CALLS.parse, _CALLS.render
