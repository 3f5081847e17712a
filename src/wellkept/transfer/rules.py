"""Keys, parents and texts of the rows of an export, read from `tables.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wellkept.model import Json, RefusedItem

MAX_LISTED = 100
"""Maximum number of refused or flagged rows that a report lists."""

ERASED_HERE = "it was erased here; import it with what was erased to bring it back"

CONTENTS = "detail_contents"
"""Pseudo-table with the texts of details in pieces, each text before the first detail that refers to it."""

_SOURCE: Mapping[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))


def read_facts(what: str) -> Mapping[str, Any]:
    """Return what `tables.toml`, which explains its fields, says about each table that has this field.

    >>> read_facts("mark")["memories"]
    ('text', 'created_at')
    """
    found = {table: facts[what] for table, facts in _SOURCE.items() if what in facts}
    return {table: tuple(value.split()) if isinstance(value, str) else value for table, value in found.items()}


@dataclass(slots=True)
class Refused:
    """Number of refused items, and the first of them."""

    count: int = 0
    first: list[RefusedItem] = field(default_factory=list)

    def add(self, place: str, reason: str) -> None:
        self.count += 1
        if len(self.first) < MAX_LISTED:
            self.first.append(RefusedItem(place=place, reason=reason))


KEYS: Mapping[str, tuple[str, ...]] = read_facts("key")
PARENTS: Mapping[str, tuple[str, ...]] = read_facts("parent")
OWNED = frozenset(read_facts("owned"))
TEXTS: Mapping[str, tuple[str, ...]] = read_facts("prompt")

Key = tuple[str, ...]


def key_of(table: str, row: Json) -> Key:
    """Return the key of a row, including its table."""
    return (table, *(str(row.get(column)) for column in KEYS[table]))


def parent_of(table: str, row: Json) -> Key | None:
    """Return the key of the row's parent, if it has one."""
    if table not in PARENTS:
        return None
    parent, *columns = PARENTS[table]
    return (parent, *(str(row.get(column)) for column in columns))


def owner_of(table: str, row: Json) -> Key | None:
    """Return the key of the agent that the row belongs to, if it belongs to one."""
    return ("agents", str(row.get("agent_id"))) if table in OWNED else None


def upgrade_row(table: str, row: Json) -> tuple[str, Json]:
    """Return a row of an export as this version knows it: version 0.2 had proposals instead of changes."""
    folds = row.get("folds")
    if table != "proposals" or not isinstance(folds, list) or not all(isinstance(each, dict) for each in folds):
        return table, row
    state, made = "proposed" if row.get("state") == "open" else row.get("state"), row.get("memory_seq")
    is_stored = state in ("applied", "undone")
    memories: list[Json] = [
        {
            "action": "end",
            "id": fold.get("id"),
            "version": fold.get("version"),
            "new_version": fold.get("ended_version"),
            "before": {"valid_to": fold.get("valid_to")} if is_stored else {},
            "after": {},
        }
        for fold in folds
    ]
    memories.append(
        {
            "action": "add",
            "id": "" if made is None else f"m-{made}",
            "version": None,
            "new_version": 1 if made is not None and row.get("is_new") else None,
            "before": {},
            "after": {name: row.get(name) for name in ("kind", "tags", "origin")},
        }
    )
    kept = {name: row[name] for name in row if name in _KEPT}
    text = "" if is_stored else row.get("text")
    more = {"state": state, "text": text, "memories": memories, "cause": "consolidation", "actor": ""}
    return "changes", {"user_id": "", **kept, **more}


_KEPT = ("agent_id", "seq", "reason", "created_at", "decided_at", "user_id")
"""Columns of a proposal that a change has, too."""
