"""Tables of an export: their columns, the types of these, and the columns that identify a row.

An export omits derived data (folded texts, the search index, vectors) and data that is specific to one database
(revisions, embedders, keys).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from wellkept.errors import Invalid
from wellkept.language.json_values import MAX_DEPTH, check_storable
from wellkept.language.text import check_text
from wellkept.model import EndedAs, Json, Kind, Memory, Origin, ProposalState, Role, Scope
from wellkept.store.engine import Row
from wellkept.store.tables.columns import COLUMNS
from wellkept.store.tables.rows import json_text, moment, stamp
from wellkept.transfer.rules import KEYS

MAX_NUMBER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTable:
    """One table of an export."""

    name: str
    columns: tuple[str, ...]  # in the order of the statement `export_…`
    order: tuple[str, ...] = ()  # order of the export, if it is not the key
    same: tuple[str, ...] = ()  # rows with equal keys are the same record if these are equal
    optional: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()  # columns that older files lack; an absent one has the default of its type
    choices: Mapping[str, type[StrEnum]] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Columns that identify a row within its tenant."""
        return KEYS[self.name]

    @property
    def ordered_by(self) -> tuple[str, ...]:
        return self.order or self.key


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TABLES: Sequence[ExportTable] = (
    ExportTable(name="audit_log", columns=COLUMNS["event"], same=("hash",), optional=_names("agent_id")),
    ExportTable(name="secret_allowances", columns=("tenant_id", "hash", "created_at")),
    ExportTable(name="agents", columns=(*COLUMNS["agent"], "last_seq")),
    ExportTable(
        name="memories",
        columns=COLUMNS["memory"],
        same=("kind", "created_at"),
        optional=frozenset(each.name for each in fields(Memory) if "None" in str(each.type)) - {"user"},
        added=_names("user_id metadata sources"),
        choices={"kind": Kind, "scope": Scope, "role": Role, "origin": Origin, "ended_as": EndedAs},
    ),
    ExportTable(
        name="memory_versions", columns=("tenant_id", "agent_id", *COLUMNS["version"]), added=_names("metadata")
    ),
    ExportTable(
        name="chat_sessions",
        columns=COLUMNS["session"],
        same=("agent_id", "created_at"),
        added=_names("user_id metadata"),
    ),
    ExportTable(name="chat_messages", columns=COLUMNS["message"], same=("role", "created_at"), choices={"role": Role}),
    ExportTable(
        name="details",
        columns=COLUMNS["detail"],
        same=("content_hash", "created_at"),
        optional=_names("session_id"),
        added=_names("user_id"),
    ),
    ExportTable(name="context_calls", columns=COLUMNS["context_call"], added=_names("user_id")),
    ExportTable(
        name="proposals",
        columns=COLUMNS["proposal"],
        same=("kind", "created_at"),
        optional=_names("memory_seq decided_at"),
        added=_names("user_id"),
        choices={"kind": Kind, "origin": Origin, "state": ProposalState},
    ),
    ExportTable(
        name="kb_documents",
        columns=COLUMNS["document"],
        same=("content_hash",),
        optional=_names("flag"),
        added=_names("metadata"),
    ),
    ExportTable(name="kb_chunks", columns=COLUMNS["chunk"], order=("id",)),
    ExportTable(name="workflows", columns=COLUMNS["workflow"], same=("name", "created_at")),
    ExportTable(
        name="workflow_steps",
        columns=(
            "tenant_id",
            "workflow_id",
            "position",
            "step_name",
            "agent_id",
            "status",
            "output",
            "completed_at",
            "seq",
        ),
        order=("seq",),
        same=("step_name", "completed_at"),
        optional=_names("agent_id"),
    ),
    # Last, so that an import that is repeated does not find the file's own hashes.
    ExportTable(name="erased_texts", columns=("tenant_id", "hash", "erased_at")),
    ExportTable(name="shelves", columns=("tenant_id", "shelf", "last_id", "last_hash")),
)
"""All tables in the order of an export: referenced rows come before the rows that refer to them."""

BY_NAME: Mapping[str, ExportTable] = {table.name: table for table in TABLES}

WORDS = frozenset(["tools", "knowledge_categories", "tags", "sources"])
JSON_LISTS = WORDS | {"folds", "blocks", "truncations"}
JSON_OBJECTS = frozenset(["metadata", "meta", "told"])
FLAGS = frozenset(["is_active", "is_new", "is_published"])
REALS = {"importance": 1.0, "ttl_seconds": float(MAX_NUMBER)}
"""Columns with fractions, and the largest value of each."""
NUMBERS = frozenset(
    """seq version last_seq last_id position summarized_count message_count size chars lines budget tokens supersedes
    ended_by memory_seq""".split()
)
TIMES = frozenset(each.name for each in fields(Memory) if "datetime" in str(each.type))
NUMBERED = frozenset(["audit_log", "kb_chunks"])
"""Tables whose `id` is a number."""


def is_time(column: str) -> bool:
    return column == "at" or column.endswith("_at") or column in TIMES


def is_number(table: ExportTable, column: str) -> bool:
    return column in NUMBERS or (column == "id" and table.name in NUMBERED)


def first_place(table: ExportTable) -> dict[str, Any]:
    """Return a position before every key, where an export of the table starts."""
    return {column: -1 if is_number(table, column) else "" for column in table.ordered_by}


def export_row(table: ExportTable, row: Row) -> Json:
    """Convert a row to JSON for a file, without the tenant."""
    return {column: _to_json(column, value) for column, value in zip(table.columns[1:], row[1:], strict=True)}


def _to_json(column: str, value: Any) -> Any:
    if value is None:
        return None
    if is_time(column):
        return stamp(moment(value))
    if column in JSON_LISTS or column in JSON_OBJECTS:
        return json.loads(value) if isinstance(value, str) else value
    return bool(value) if column in FLAGS else value


def parse_row(table: ExportTable, row: object) -> dict[str, Any]:
    """Parse a row of a file into the parameters of statements. Raises: Invalid, naming the column."""
    expected = table.columns[1:]
    if not isinstance(row, dict) or row.keys() - set(expected):
        unknown = set(row) - set(expected) if isinstance(row, dict) else set()
        names = f" ({', '.join(sorted(map(str, unknown)))[:80]})" if unknown else ""
        raise Invalid(f"{table.name}: not a row that this version knows{names}; a newer version may have written it.")
    values: dict[str, Any] = {}
    for column in expected:
        value = row.get(column)
        if value is None and column in table.added:
            value = {} if column in JSON_OBJECTS else [] if column in JSON_LISTS else ""
        if value is None and column not in table.optional:
            raise Invalid(f"{table.name}: {column} is missing.")
        try:
            values[column] = None if value is None else _from_json(table, column, value)
        except (ValueError, TypeError, OverflowError):
            raise Invalid(f"{table.name}: {column} is not valid.") from None
    return values


def _from_json(table: ExportTable, column: str, value: Any) -> Any:
    """Convert a JSON value to the parameter of a column. Raises: ValueError, Invalid."""
    if column in FLAGS:
        return _check_type(bool, value)
    if is_number(table, column):
        number = _check_type(int, value)
        return number if 0 <= number < MAX_NUMBER else _refuse()
    if column in REALS:
        real = float(value) if not isinstance(value, bool) else _refuse()
        return real if 0 <= real <= REALS[column] else _refuse()
    if column in JSON_LISTS or column in JSON_OBJECTS:
        if column in WORDS and not all(isinstance(each, str) for each in _check_type(list, value)):
            _refuse()
        # The value of an item may be wrapped in an object.
        check_storable(_check_type(list if column in JSON_LISTS else dict, value), what=column, most=MAX_DEPTH + 1)
        return json_text(value)
    text = check_text(_check_type(str, value), what=column)
    if is_time(column):
        return _parse_time(text)
    return text if table.choices is None or column not in table.choices else table.choices[column](text).value


def _parse_time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None and 1 < found.year < 9999 else _refuse()


def _check_type(kind: Callable[..., Any], value: Any) -> Any:
    return value if type(value) is kind else _refuse()


def _refuse() -> Any:
    raise ValueError
