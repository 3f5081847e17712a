"""A tenant's tables as an export has them: which columns, what is in them, and what tells two rows apart.

What can be made again is not there: folded texts, the search index, vectors. Nor is what means something only to one
database: revisions, embedders, keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from recollect.errors import Invalid
from recollect.model import Json, Kind, Origin, ProposalState, Role, Scope
from recollect.policy.text import checked_text
from recollect.policy.transfer import KEYS
from recollect.store.engine import Row
from recollect.store.tables.columns import COLUMNS
from recollect.store.tables.rows import json_text, moment, stamp

MAX_NUMBER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of an export."""

    name: str
    columns: tuple[str, ...]  # as `export_…` answers them
    order: tuple[str, ...] = ()  # what an export is ordered by, when it is not the key
    same: tuple[str, ...] = ()  # two rows of one key are the same thing if they are equal in these
    optional: frozenset[str] = frozenset()
    choices: Mapping[str, type[StrEnum]] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What a row is known by inside its tenant."""
        return KEYS[self.name]

    @property
    def ordered_by(self) -> tuple[str, ...]:
        return self.order or self.key


def _optional(names: str) -> frozenset[str]:
    return frozenset(names.split())


TABLES: Sequence[Table] = (
    Table(name="audit_log", columns=COLUMNS["event"], same=("hash",), optional=_optional("agent_id")),
    Table(name="secret_allowances", columns=("tenant_id", "hash", "created_at")),
    Table(name="agents", columns=(*COLUMNS["agent"], "last_seq")),
    Table(
        name="memories",
        columns=COLUMNS["memory"],
        same=("kind", "created_at"),
        optional=_optional(
            "session_id category updated_at expires_at last_retrieved_at archived_at supersedes valid_from valid_to "
            "held_at flag"
        ),
        choices={"kind": Kind, "scope": Scope, "role": Role, "origin": Origin},
    ),
    Table(
        name="memory_versions",
        columns=("tenant_id", "agent_id", *COLUMNS["version"]),
    ),
    Table(name="chat_sessions", columns=COLUMNS["session"], same=("agent_id", "created_at")),
    Table(
        name="chat_messages",
        columns=COLUMNS["message"],
        same=("role", "created_at"),
        choices={"role": Role},
    ),
    Table(
        name="details",
        columns=COLUMNS["detail"],
        same=("content_hash", "created_at"),
        optional=_optional("session_id"),
    ),
    Table(name="context_calls", columns=COLUMNS["context_call"]),
    Table(
        name="proposals",
        columns=COLUMNS["proposal"],
        same=("kind", "created_at"),
        optional=_optional("memory_seq decided_at"),
        choices={"kind": Kind, "origin": Origin, "state": ProposalState},
    ),
    Table(
        name="kb_documents",
        columns=COLUMNS["document"],
        same=("content_hash",),
        optional=_optional("flag"),
    ),
    Table(name="kb_chunks", columns=COLUMNS["chunk"], order=("id",)),
    Table(name="workflows", columns=COLUMNS["workflow"], same=("name", "created_at")),
    Table(
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
        optional=_optional("agent_id"),
    ),
    Table(name="shelves", columns=("tenant_id", "shelf", "last_id", "last_hash")),
)
"""In the order of an export: what others refer to comes before them."""

BY_NAME: Mapping[str, Table] = {table.name: table for table in TABLES}

WORDS = frozenset(["tools", "knowledge_categories", "tags"])
JSON_LISTS = WORDS | {"folds", "blocks", "truncations"}
JSON_OBJECTS = frozenset(["metadata", "meta"])
FLAGS = frozenset(["is_active", "is_new", "is_published"])
REALS = frozenset(["importance"])
NUMBERS = frozenset(
    """seq version last_seq last_id position summarized_count message_count size chars lines budget tokens supersedes
    memory_seq""".split()
)
NUMBERED = frozenset(["audit_log", "kb_chunks"])
"""Tables whose `id` is a number."""


def is_time(column: str) -> bool:
    return column == "at" or column.endswith("_at") or column in ("valid_from", "valid_to")


def is_number(table: Table, column: str) -> bool:
    return column in NUMBERS or (column == "id" and table.name in NUMBERED)


def first_place(table: Table) -> dict[str, Any]:
    """Where an export of the table begins: before every key."""
    return {column: -1 if is_number(table, column) else "" for column in table.ordered_by}


def portable(table: Table, row: Row) -> Json:
    """A row as a file has it, the tenant left out."""
    return {column: _out(column, value) for column, value in zip(table.columns[1:], row[1:], strict=True)}


def _out(column: str, value: Any) -> Any:
    if value is None:
        return None
    if is_time(column):
        return stamp(moment(value))
    if column in JSON_LISTS or column in JSON_OBJECTS:
        return json.loads(value) if isinstance(value, str) else value
    return bool(value) if column in FLAGS else value


def stored(table: Table, row: object) -> dict[str, Any]:
    """The columns of a row of a file, as statements take them.

    Raises: Invalid, which names the column.
    """
    wanted = table.columns[1:]
    if not isinstance(row, dict) or row.keys() - set(wanted):
        known = set(row) - set(wanted) if isinstance(row, dict) else set()
        newer = f" ({', '.join(sorted(map(str, known)))[:80]})" if known else ""
        raise Invalid(f"{table.name}: not a row this version knows{newer}; perhaps a newer one wrote it.")
    values: dict[str, Any] = {}
    for column in wanted:
        value = row.get(column)
        if value is None and column not in table.optional:
            raise Invalid(f"{table.name}: {column} is missing.")
        try:
            values[column] = None if value is None else _in(table, column, value)
        except (ValueError, TypeError, OverflowError):
            raise Invalid(f"{table.name}: {column} makes no sense.") from None
    return values


def _in(table: Table, column: str, value: Any) -> Any:
    """Raises: ValueError, Invalid."""
    if column in FLAGS:
        return _of(bool, value)
    if is_number(table, column):
        number = _of(int, value)
        return number if 0 <= number < MAX_NUMBER else _refuse()
    if column in REALS:
        real = float(value) if not isinstance(value, bool) else _refuse()
        return real if 0 <= real <= 1 else _refuse()
    if column in JSON_LISTS or column in JSON_OBJECTS:
        if column in WORDS and not all(isinstance(each, str) for each in _of(list, value)):
            _refuse()
        text = json_text(_of(list if column in JSON_LISTS else dict, value))
        return checked_text(text) if "\\u0000" not in text else _refuse()
    text = checked_text(_of(str, value), what=column)
    if is_time(column):
        return _moment(text)
    return text if table.choices is None or column not in table.choices else table.choices[column](text).value


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None and 1 < found.year < 9999 else _refuse()


def _of(kind: Callable[..., Any], value: Any) -> Any:
    return value if type(value) is kind else _refuse()


def _refuse() -> Any:
    raise ValueError
