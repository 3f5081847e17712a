"""Export and import of a whole tenant as rows that every engine understands.

Tables of an export: their columns, the types of these, and the columns that identify a row.

An export omits derived data (folded texts, the search index, vectors) and data that is specific to one database
(revisions, embedders, keys).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from wellkept.errors import Conflict, Invalid, StoreError
from wellkept.history.rules_history import canonical_json, history_terms, step_words
from wellkept.language.text import check_text, fold, index_terms, terms
from wellkept.language.values import MAX_DEPTH, check_storable
from wellkept.model import ChangeCause, ChangeState, Detail, EndedAs, Json, Kind, Memory, Origin, Owner, Role, Scope
from wellkept.model.stored import Vector
from wellkept.store.engine import Row, Unit, owner_params
from wellkept.store.search.encoding import encode_terms
from wellkept.store.tables import history, knowledge
from wellkept.store.tables.agents import renew_index
from wellkept.store.tables.details import ContentDraft, DetailRows, keep_content, search_text
from wellkept.store.tables.memories import change_from
from wellkept.store.tables.rows import (
    COLUMNS,
    detail_from,
    is_searchable,
    json_text,
    maybe_moment,
    memory_from,
    memory_values,
    moment,
    note_entries,
    stamp,
    step_from,
)
from wellkept.store.tables.transcripts import call_from
from wellkept.transfer.rules import CONTENTS, KEYS, read_facts

MAX_NUMBER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTable:
    """One table of an export; `transfer/tables.toml` explains the facts."""

    name: str
    columns: tuple[str, ...]  # in the order of the statement `export_…`
    key: tuple[str, ...]
    ordered_by: tuple[str, ...]
    same: tuple[str, ...]
    optional: frozenset[str]
    added: frozenset[str]
    choices: Mapping[str, type[StrEnum]]


_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "audit_log": COLUMNS["event"],
    "secret_allowances": ("tenant_id", "hash", "created_at"),
    "agents": (*COLUMNS["agent"], "last_seq"),
    "memories": COLUMNS["memory"],
    "memory_versions": ("tenant_id", "agent_id", *COLUMNS["version"]),
    "chat_sessions": COLUMNS["session"],
    "chat_messages": COLUMNS["message"],
    "details": COLUMNS["detail"],
    "context_calls": COLUMNS["context_call"],
    "changes": COLUMNS["change"],
    "kb_documents": COLUMNS["document"],
    "kb_chunks": COLUMNS["chunk"],
    "workflows": COLUMNS["workflow"],
    "workflow_steps": COLUMNS["step"],
    "erased_texts": ("tenant_id", "hash", "erased_at"),
    "shelves": ("tenant_id", "shelf", "last_id", "last_hash"),
}
_CHOICES: Mapping[str, Mapping[str, type[StrEnum]]] = {
    "memories": {"kind": Kind, "scope": Scope, "role": Role, "origin": Origin, "ended_as": EndedAs},
    "chat_messages": {"role": Role},
    "changes": {"cause": ChangeCause, "state": ChangeState},
}


def _list_tables() -> Iterator[ExportTable]:
    order, same, optional, added = map(read_facts, ("order", "same", "optional", "added"))
    may_be_none = [each.name for each in fields(Memory) if "None" in str(each.type) and each.name != "user"]
    for name, key in KEYS.items():
        yield ExportTable(
            name=name,
            columns=_COLUMNS[name],
            key=key,
            ordered_by=order.get(name, key),
            same=same.get(name, ()),
            optional=frozenset(may_be_none if name == "memories" else optional.get(name, ())),
            added=frozenset(added.get(name, ())),
            choices=_CHOICES.get(name, {}),
        )


TABLES: Sequence[ExportTable] = tuple(_list_tables())
BY_NAME: Mapping[str, ExportTable] = {table.name: table for table in TABLES}

WORDS = frozenset(["tools", "knowledge_categories", "tags", "sources"])
JSON_LISTS = WORDS | {"memories", "blocks", "truncations"}
JSON_OBJECTS = frozenset(["metadata", "meta", "told"])
FLAGS = frozenset(["is_active", "is_published"])
REALS = {"importance": 1.0, "ttl_seconds": float(MAX_NUMBER)}
"""Columns with fractions, and the largest value of each."""
NUMBERS = frozenset(
    """seq version last_seq last_id position summarized_count message_count size chars lines budget tokens supersedes
    ended_by""".split()
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
    return table.choices[column](text).value if column in table.choices else text


def _parse_time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None and 1 < found.year < 9999 else _refuse()


def _check_type(kind: Callable[..., Any], value: Any) -> Any:
    return value if type(value) is kind else _refuse()


def _refuse() -> Any:
    raise ValueError


PAGE = 200
"""Rows read by one statement of an export."""

LOG_PAGE = 1000
"""Events read by one statement."""

CHANGED_MEANWHILE = "The audit log of this tenant changed during the import. Import the file again."

Take = Callable[[str, Json], None]

RECORDS: Mapping[str, Callable[[Row], object]] = {"changes": change_from, "context_calls": call_from}
"""Tables with nested JSON; rows are validated by converting them."""


class _UserRows:
    """Rows of an export that belong to one user, and the agents that have some."""

    def __init__(self, unit: Unit, user: str) -> None:
        self._unit = unit
        self._user = user
        self._kept: set[tuple[object, ...]] = set()

    def has(self, table: ExportTable, row: Row) -> bool:
        """Return True if the row belongs to the user. Rows are asked for in the order of an export."""
        values = dict(zip(table.columns, row, strict=True))
        if table.name == "agents":
            return self._has_any(values["id"])
        if table.name == "memory_versions":
            return ("memory", values["agent_id"], values["seq"]) in self._kept
        if table.name == "chat_messages":
            return ("session", values["session_id"]) in self._kept
        if values.get("user_id") != self._user:
            return False
        if table.name == "memories":
            self._kept.add(("memory", values["agent_id"], values["seq"]))
        elif table.name == "chat_sessions":
            self._kept.add(("session", values["id"]))
        return True

    def _has_any(self, agent: str) -> bool:
        owner = owner_params(Owner(self._unit.tenant, agent, self._user, with_shared=False))
        return self._unit.one("any_record", **owner) is not None


class TransferRows(DetailRows):
    """A whole tenant as engine-independent rows; `docs/transfer.md` describes them."""

    def export_rows(self, tenant: str, take: Take, *, user: str | None = None) -> None:
        """Pass every row, with the name of its table, to `take`, as of one moment.

        Rows come after the rows they refer to. Long texts come in pieces, as rows of `detail_contents`.
        """

        def export(unit: Unit) -> None:
            texts: set[str] = set()
            only = None if user is None else _UserRows(unit, user)
            for table in TABLES:
                for row in self._iter_rows(unit, table):
                    if only is not None and not only.has(table, row):
                        continue
                    if table.name == "details":
                        self._export_text(unit, detail_from(row), texts, take)
                    if table.name != "shelves" or row[1] != history.SHELF:
                        take(table.name, export_row(table, row))
                # The head follows the log directly: an import restores the log before anything else.
                if table.name == "audit_log" and user is None:
                    self._export_head(unit, take)

        self._read_sealed(tenant, export)

    def _iter_rows(self, unit: Unit, table: ExportTable) -> Iterator[Row]:
        place = first_place(table)
        where = [table.columns.index(column) for column in table.ordered_by]
        while page := unit.all(f"export_{table.name}", tenant=unit.tenant, limit=PAGE, **place):
            yield from page
            place = dict(zip(place, (page[-1][index] for index in where), strict=True))

    def _export_head(self, unit: Unit, take: Take) -> None:
        head = unit.one("audit_head", tenant=unit.tenant)
        if head is not None:
            take("shelves", {"shelf": history.SHELF, "last_id": head[0], "last_hash": head[1]})

    def _export_text(self, unit: Unit, detail: Detail, texts: set[str], take: Take) -> None:
        """Export the text of a detail once. Report a damaged text in its place and continue."""
        if detail.content_hash in texts:
            return
        texts.add(detail.content_hash)
        known: Json = {"content_hash": detail.content_hash}
        try:
            for position, text in enumerate(self._iter_content(unit, detail)):
                take(CONTENTS, known | {"position": position, "text": text})
        except StoreError as error:
            take(CONTENTS, known | {"problem": str(error)})

    def check_row(self, table: str, row: object) -> None:
        """Check that a row could occur in an export. Raises: Invalid."""
        values = parse_row(BY_NAME[table], row) | {"tenant_id": ""}
        if table in RECORDS:
            try:
                RECORDS[table]([values[column] for column in BY_NAME[table].columns])
            except (TypeError, KeyError, ValueError, AttributeError):
                raise Invalid(f"{table}: its nested values are not valid.") from None

    def has_rows(self, tenant: str, table: str) -> bool:
        place = first_place(BY_NAME[table])
        return bool(
            self._read_sealed(tenant, lambda unit: unit.all(f"export_{table}", tenant=tenant, limit=1, **place))
        )

    def find_rows(self, tenant: str, table: str, rows: Sequence[Json]) -> Sequence[bool | None]:
        """Return for each row: None if its key is free here, else True if the stored record is the same."""
        known = BY_NAME[table]
        parsed = [parse_row(known, row) for row in rows]

        def find(unit: Unit) -> list[bool | None]:
            return [_is_same(known, row, _find_present(unit, known, row)) for row in parsed]

        return self.read(tenant, find)

    def import_rows(
        self,
        tenant: str,
        table: str,
        rows: Sequence[Json],
        *,
        now: datetime,
        vectors: Sequence[Vector | None] = (),
        text: ContentDraft | None = None,
    ) -> int:
        """Add the rows with free keys, all or none, with the `text` they refer to; return how many were added.

        Memories and passages bring their vectors. Passages and steps get new numbers where theirs are taken. Events are
        stored unchanged, so they must follow the existing ones.

        Raises: Conflict.
        """
        values = [parse_row(BY_NAME[table], row) | {"tenant_id": tenant} for row in rows]
        if text is not None:
            text.seal()

        def add(unit: Unit) -> int:
            unit.put("add_tenant", tenant=tenant, now=now)
            if text is not None:
                keep_content(unit, text, now=now)
            return self._add_rows(unit, BY_NAME[table], values, vectors or [None] * len(values))

        return self.write(tenant, add)

    def _add_rows(
        self, unit: Unit, table: ExportTable, rows: list[dict[str, Any]], vectors: Sequence[Vector | None]
    ) -> int:
        match table.name:
            case "audit_log":
                return _add_events(unit, rows)
            case "shelves":
                return sum(_raise_shelf(unit, row) for row in rows)
            case "agents":
                return sum(_add_agent(unit, row) for row in rows)
            case "memories":
                return self._add_memories(unit, rows, vectors)
            case "kb_chunks":
                return self._add_chunks(unit, rows, vectors)
            case "workflow_steps":
                return _add_steps(unit, rows)
            case "details":
                return sum(_add_detail(unit, row) for row in rows)
            case "memory_versions":
                return sum(_add_version(unit, row) for row in rows)
            case "chat_messages":
                return _add_messages(unit, rows)
            case name:
                return sum(unit.run(f"import_{name}", **row) for row in rows)

    def _add_memories(self, unit: Unit, rows: list[dict[str, Any]], vectors: Sequence[Vector | None]) -> int:
        table = BY_NAME["memories"]
        memories = [memory_from([row[column] for column in table.columns]) for row in rows]
        index = self._engine.index.encoded([index_terms(memory.text) for memory in memories], vectors)
        highest: dict[str, int] = {}
        for row in rows:
            highest[row["agent_id"]] = max(row["seq"], highest.get(row["agent_id"], 0))
        # Every write locks the agents' rows first and in this order, to avoid deadlocks.
        for agent, seq in sorted(highest.items()):
            renew_index(unit, agent)
            unit.one("raise_counter", tenant=unit.tenant, agent=agent, seq=seq)
        added = 0
        for memory, row, entry in zip(memories, rows, index, strict=True):
            values = memory_values(memory, row["seq"])
            if unit.run("import_memories", **values):
                added += 1
                if is_searchable(values):
                    unit.put("index_memory", **values, **entry)
                    note_entries(unit, [entry])
        return added

    def _add_chunks(self, unit: Unit, rows: list[dict[str, Any]], vectors: Sequence[Vector | None]) -> int:
        index = self._engine.index.encoded([terms(row["text"]) for row in rows], vectors)
        last, revision = _lock_shelf(unit, knowledge.SHELF)
        added = 0
        for row, entry in zip(rows, index, strict=True):
            document = unit.one("find_document", tenant=unit.tenant, id=row["document_id"])
            if document is None:
                raise Conflict("The file has a passage of a document that is missing from it.")
            if _find_present(unit, BY_NAME["kb_chunks"], row) is not None:
                continue
            # Keep the passage's own number unless it is taken here.
            last = max(last + 1, row["id"])
            unit.put("add_chunk", **row | {"id": last})
            is_published, category = document[6], document[3]
            if is_published:
                known = {"tenant_id": unit.tenant, "seq": last, "version": revision, "category": category}
                unit.put("index_chunk", **known, **entry)
                note_entries(unit, [entry])
            added += 1
        unit.put("raise_shelf", tenant=unit.tenant, shelf=knowledge.SHELF, last_id=last)
        return added

    def last_imported(self, tenant: str, log: str) -> int:
        """Return the highest number in log `log` among the events copied from it."""

        def find(unit: Unit) -> int:
            last = id = 0
            while rows := unit.all("events_after", tenant=tenant, id=id, limit=LOG_PAGE):
                for *columns, _ in rows:
                    row = export_row(BY_NAME["audit_log"], columns)
                    imported = row["meta"].get("imported") if isinstance(row["meta"], dict) else None
                    if isinstance(imported, dict) and imported.get("log") == log:
                        last = max(last, int(imported["id"]))
                id = rows[-1][1]
            return last

        return self._read_sealed(tenant, find)

    def count_events(self, tenant: str) -> int:
        """Return the number of the last audit event."""
        row = self._read_sealed(tenant, lambda unit: unit.one("audit_head", tenant=tenant))
        return 0 if row is None else int(row[0])


def _find_present(unit: Unit, table: ExportTable, row: dict[str, Any]) -> Row | None:
    return unit.one(f"present_{table.name}", tenant=unit.tenant, **{column: row[column] for column in table.key})


def _is_same(table: ExportTable, row: dict[str, Any], present: Row | None) -> bool | None:
    """Compare a row with the one present under its key; None if there is none."""
    if present is None:
        return None
    found = zip(table.same, present, strict=False)
    return all(row[column] == (maybe_moment(value) if is_time(column) else value) for column, value in found)


def _lock_shelf(unit: Unit, shelf: str) -> tuple[int, int]:
    """Lock a shelf until commit; return its last number and its new revision."""
    unit.put("add_shelf", tenant=unit.tenant, shelf=shelf)
    unit.put("touch_shelf", tenant=unit.tenant, shelf=shelf)
    row = unit.one("take_shelf_numbers", tenant=unit.tenant, shelf=shelf, count=0)
    assert row is not None
    return int(row[0]), int(row[1])


def _add_events(unit: Unit, rows: list[dict[str, Any]]) -> int:
    """Append events unchanged, including their hashes."""
    last, _ = _lock_shelf(unit, history.SHELF)
    if rows and rows[0]["id"] <= last:
        raise Conflict(CHANGED_MEANWHILE)
    for row in rows:
        meta = canonical_json(json.loads(row["meta"]))
        unit.put("add_event", **row | {"meta": meta}, folded=fold(row["message"]))
        unit.put("set_audit_head", tenant=unit.tenant, last_id=row["id"], last_hash=row["hash"])
    return len(rows)


def _raise_shelf(unit: Unit, row: dict[str, Any]) -> int:
    known = {"tenant": unit.tenant, "last_id": row["last_id"]}
    unit.put("add_shelf", tenant=unit.tenant, shelf=row["shelf"])
    # Copy the head even if it shows that events are missing: the import must show it, too.
    if row["shelf"] == history.SHELF:
        unit.put("set_audit_head", **known, last_hash=row["last_hash"])
    else:
        unit.put("raise_shelf", **known, shelf=row["shelf"])
    return 0


def _add_agent(unit: Unit, row: dict[str, Any]) -> int:
    is_new = unit.run("add_agent", **row)
    unit.one("raise_counter", tenant=unit.tenant, agent=row["id"], seq=row["last_seq"])
    return is_new


def _add_steps(unit: Unit, rows: list[dict[str, Any]]) -> int:
    last, _ = _lock_shelf(unit, history.STEPS_SHELF)
    added = 0
    for row in rows:
        workflow = unit.one("find_workflow", tenant=unit.tenant, id=row["workflow_id"])
        if workflow is None:
            raise Conflict("The file has a step of a workflow that is missing from it.")
        if _find_present(unit, BY_NAME["workflow_steps"], row) is not None:
            continue
        last = max(last + 1, row["seq"])
        unit.put("add_step", **row, folded="")
        step_columns = [row[column] for column in ("step_name", "agent_id", "status", "output", "completed_at")]
        step = step_from([unit.tenant, row["workflow_id"], workflow[2], row["position"], *step_columns])
        unit.put("index_step", **row | {"seq": last}, terms=encode_terms(history_terms(step_words(step))))
        added += 1
    unit.put("raise_shelf", tenant=unit.tenant, shelf=history.STEPS_SHELF, last_id=last)
    return added


def _add_version(unit: Unit, row: dict[str, Any]) -> int:
    if _find_present(unit, BY_NAME["memory_versions"], row) is not None:
        return 0
    # An item was left out because its key is taken.
    if unit.one("find_memory", tenant=unit.tenant, agent=row["agent_id"], seq=row["seq"]) is None:
        return 0
    return unit.run("import_memory_versions", **row)


def _add_messages(unit: Unit, rows: list[dict[str, Any]]) -> int:
    """Add messages and raise the count in their sessions' rows, which may have existed before."""
    last: dict[str, int] = {}
    for row in rows:
        last[row["session_id"]] = max(row["position"], last.get(row["session_id"], 0))
    for session, position in sorted(last.items()):
        unit.put("raise_message_count", tenant=unit.tenant, id=session, position=position)
    return sum(unit.run("import_chat_messages", **row) for row in rows)


def _add_detail(unit: Unit, row: dict[str, Any]) -> int:
    detail = detail_from([row[column] for column in BY_NAME["details"].columns])
    return unit.run("import_details", **row, folded=search_text(detail))
