"""Columns of each table, in the order in which statements select them, and conversion between records and rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from operator import attrgetter
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from wellkept.history.rules_history import canonical_json
from wellkept.language.names import memory_id, memory_seq
from wellkept.language.text import content_hash, fold
from wellkept.model import (
    NO_USER,
    Agent,
    AuditEvent,
    Detail,
    Fact,
    Kind,
    Memory,
    MemoryVersion,
    Owner,
    Workflow,
    WorkflowStep,
)
from wellkept.model.stored import MemorySummary
from wellkept.store.engine import CHANGED, WAITING, Row, Unit


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_RENAMED = {"user": "user_id"}
"""Fields of a memory whose name is a reserved word of SQL."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "agent": _names(
        "tenant_id id name system_prompt model tools colour icon is_active created_at updated_at knowledge_categories"
    ),
    # A memory's own fields have columns of the same name; its owner and its id are the key.
    "memory": (*_names("tenant_id agent_id seq"), *(_RENAMED.get(each.name, each.name) for each in fields(Memory)[2:])),
    "version": _names("seq version text tags importance replaced_at metadata"),
    "detail": _names(
        "tenant_id agent_id key type description summary session_id metadata content_hash size chars lines is_active "
        "created_at user_id"
    ),
    "session": _names(
        "tenant_id id agent_id summary summarized_count message_count created_at updated_at user_id metadata"
    ),
    "message": _names("tenant_id session_id position role content created_at"),
    "document": _names(
        "tenant_id id title category source content_hash is_published created_at updated_at flag metadata"
    ),
    "event": _names("tenant_id id at action agent_id message meta previous_hash hash"),
    "change": _names("tenant_id agent_id seq state cause reason text memories actor created_at decided_at user_id"),
    "context_call": _names("tenant_id agent_id id session_id at layout budget tokens blocks truncations user_id"),
    "key": _names("tenant_id id scope name created_at last_used_at expires_at revoked_at agents trust user_id"),
    "workflow": _names("tenant_id id name created_at"),
    "step": _names("tenant_id workflow_id position step_name agent_id status output completed_at seq"),
    "chunk": _names("tenant_id id document_id position text"),
}

R = TypeVar("R", bound=Any)
OtherField = tuple[str, Callable[[Any], Any] | None, Callable[[Any], Any] | None]
"""Field of a column, and how its values (other than None) are read and written."""

BEHIND_ALL = 2**62
"""Number greater than any row's; start of a listing without a cursor, and no limit."""

MAX_PATTERN_BYTES = 50_000
"""Maximum length of a LIKE pattern in SQLite; no searched text is that long."""

NO_OWNER = ""
"""Tenant of shared tables such as the embedder registry, and agent of passages."""

TAG_BORDER = "\n"
"""Delimiter around every tag in `folded_tags`, so that one LIKE finds a whole tag; tags cannot contain it."""


_latest: tuple[datetime | None, str] = (None, "")


def stamp(moment: datetime) -> str:
    """Format a time for SQLite: UTC text of fixed width, so that it sorts."""
    # A write binds the same time several times. Threads replace the pair as a whole.
    global _latest
    known, text = _latest
    if moment is not known:
        in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
        text = in_utc.isoformat(timespec="microseconds")[:-6] + "Z"
        _latest = (moment, text)
    return text


def moment(value: datetime | str) -> datetime:
    """Parse a time as either engine returns it."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value.astimezone(UTC)


def maybe_moment(value: datetime | str | None) -> datetime | None:
    return None if value is None else moment(value)


def _parse_strings(value: str | list[str]) -> tuple[str, ...]:
    # Most rows have none; skip the parser for them.
    if value == "[]":
        return ()
    return tuple(json.loads(value) if isinstance(value, str) else value)


def json_list(value: str | list[Any]) -> list[Any]:
    """Parse a JSON list as either engine returns it."""
    return list(json.loads(value)) if isinstance(value, str) else value


def parse_json(value: Any) -> Any:
    """Parse JSON as either engine returns it."""
    # Most rows have an empty object; skip the parser for them.
    if value == "{}":
        return {}
    return json.loads(value) if isinstance(value, str) else value


def json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def folded_tags(tags: tuple[str, ...]) -> str:
    """Join folded tags with delimiters around each.

    >>> folded_tags(("Infra", "deploy"))
    '\\ninfra\\ndeploy\\n'
    """
    return TAG_BORDER + "".join(fold(tag) + TAG_BORDER for tag in tags) if tags else ""


class RecordRows(Generic[R]):
    """Conversion between rows and records of one type, derived from the record's fields.

    A column has the name of its field. `tenant_id` and `agent_id` are the record's owner, or `tenant_id` its tenant.
    `other` names the field of a column with another name, or with a value that its type does not tell how to convert.
    """

    def __init__(self, record: type[R], columns: Sequence[str], **other: OtherField) -> None:
        hints = get_type_hints(record)
        owner = {"tenant_id": "owner.tenant", "agent_id": "owner.agent"}
        places = (owner if "owner" in hints else {"tenant_id": "tenant"}) | {"user_id": "user"}
        self._record = record
        self._names: list[str] = []
        self._dropped: list[str] = []  # fields of columns that the record does not have
        self._parsers: list[tuple[str, Callable[[Any], Any]]] = []
        self._renderers: list[tuple[str, Callable[[Any], Any]]] = []
        read: dict[str, str] = {}
        for column in columns:
            field, parse, render = other.get(column, (places.get(column, column), None, None))
            known_parse, known_render = _converters(hints.get(field)) if field != "user" else (_parse_user, None)
            self._names.append(field)
            if (parse := parse or known_parse) is not None:
                self._parsers.append((field, parse))
            if field in hints or "." in field:
                read[column] = field
                if (render := render or known_render) is not None:
                    self._renderers.append((column, render))
            else:
                self._dropped.append(field)
        self._columns = tuple(read)
        self._read = attrgetter(*read.values())

    def parse(self, row: Row) -> R:
        """Return the record of a row."""
        values = dict(zip(self._names, row, strict=True))
        for field, parse in self._parsers:
            value = values[field]
            if value is not None:
                values[field] = parse(value)
        for field in self._dropped:
            del values[field]
        if "owner.tenant" in values:
            values["owner"] = Owner(values.pop("owner.tenant"), values.pop("owner.agent"))
        record: R = self._record(**values)
        return record

    def render(self, record: R) -> dict[str, Any]:
        """Return the values of a record, by column."""
        values = dict(zip(self._columns, self._read(record), strict=True))
        for column, render in self._renderers:
            value = values[column]
            if value is not None:
                values[column] = render(value)
        if "user_id" in values:
            values["user_id"] = values["user_id"] or NO_USER
        return values


def _parse_user(user: str) -> str | None:
    return user or None


def _converters(hint: Any) -> tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]:
    """Return how values of a type, other than None, are read and written; None if they stay as they are."""
    kinds = [each for each in get_args(hint) or (hint,) if each is not NoneType]
    if get_origin(hint) is tuple:
        return _parse_strings, lambda strings: json_text(strings) if strings else "[]"
    if get_origin(hint) is Mapping:
        return parse_json, lambda value: json_text(value) if value else "{}"
    if kinds == [datetime]:
        return moment, None
    if kinds == [bool]:
        return bool, None
    if len(kinds) == 1 and isinstance(kinds[0], type) and issubclass(kinds[0], StrEnum):
        # A lookup table, because calling an enum is slower than converting the rest of the row.
        return {each.value: each for each in kinds[0]}.__getitem__, str
    return None, None


def _parse_told(told: str | dict[str, Any]) -> Fact:
    # An imported row may hold anything.
    parts = parse_json(told)
    texts = {name: None if parts.get(name) is None else str(parts[name]) for name in ("attribute", "value")}
    return Fact(subject=str(parts.get("subject", "")), **texts, is_remark=parts.get("is_remark") is True)


MEMORY_ID: OtherField = ("memory_id", memory_id, memory_seq)
_AGENTS = RecordRows(Agent, COLUMNS["agent"], id=("owner.agent", None, None))
_MEMORIES = RecordRows(
    Memory,
    COLUMNS["memory"],
    seq=("id", memory_id, memory_seq),
    supersedes=("supersedes", memory_id, memory_seq),
    ended_by=("ended_by", memory_id, memory_seq),
    told=("told", _parse_told, lambda told: json_text(asdict(told))),
)
_DETAILS = RecordRows(Detail, COLUMNS["detail"])
_EVENTS = RecordRows(AuditEvent, COLUMNS["event"], meta=("meta", parse_json, None))
_WORKFLOWS = RecordRows(Workflow, COLUMNS["workflow"])
_STEPS = RecordRows(
    WorkflowStep,
    "tenant_id workflow_id workflow_name position step_name agent_id status output completed_at".split(),
    step_name=("name", None, None),
)

agent_from, agent_values = _AGENTS.parse, _AGENTS.render
memory_from = _MEMORIES.parse
version_from = RecordRows(MemoryVersion, COLUMNS["version"], seq=MEMORY_ID).parse
detail_from, detail_values = _DETAILS.parse, _DETAILS.render
event_from = _EVENTS.parse
workflow_from, workflow_values = _WORKFLOWS.parse, _WORKFLOWS.render
step_from, step_values = _STEPS.parse, _STEPS.render
_CREATED_AT, _UPDATED_AT, _VALID_FROM, _VALID_TO = map(
    COLUMNS["memory"].index, ("created_at", "updated_at", "valid_from", "valid_to")
)


def number_of(memory: Memory) -> int:
    return memory_seq(memory.id) or 0


def is_searchable(row: Mapping[str, object]) -> bool:
    """Return True if a memory belongs in the index; archived, held and empty ones are never recalled."""
    return row["archived_at"] is None and row["held_at"] is None and row["text"] != ""


def summary_from(row: Row) -> MemorySummary:
    created_at = moment(row[_CREATED_AT])
    since = created_at if row[_VALID_FROM] is None else moment(row[_VALID_FROM])
    updated_at, valid_to = row[_UPDATED_AT], row[_VALID_TO]
    has_ended = valid_to is not None and updated_at is not None and valid_to <= updated_at
    return MemorySummary(row[2], row[4], row[9], created_at, since, _LazyMemory(row), has_ended)


class _LazyMemory:
    """Memory of a row, built at the first call: trust is judged first, and the hit is made later."""

    __slots__ = ("_memory", "_row")

    def __init__(self, row: Row) -> None:
        self._row = row
        self._memory: Memory | None = None

    def __call__(self) -> Memory:
        if self._memory is None:
            self._memory = memory_from(self._row)
        return self._memory


def memory_values(memory: Memory, seq: int) -> dict[str, Any]:
    folded = fold(memory.text)
    return {
        **_MEMORIES.render(memory),
        "seq": seq,
        "folded": folded,
        "folded_tags": folded_tags(memory.tags),
        # Episodes may repeat, so they are never looked up by their hash.
        "content_hash": content_hash(memory.text) if memory.kind is not Kind.EPISODE else "",
        "ends_at": memory.ends_at,
        "since": int(memory.since.timestamp()),
    }


_FIELDS = tuple(each.name for each in fields(Memory))
_read_fields = attrgetter(*_FIELDS)


def number_memory(memory: Memory, seq: int) -> Memory:
    """Return a memory with the id of its number. Every write does this, and `replace` takes twice as long."""
    return Memory(**{**dict(zip(_FIELDS, _read_fields(memory), strict=True)), "id": memory_id(seq)})


def readable_event(row: Row) -> AuditEvent:
    """Convert a row to an event; mark it as damaged if parts of it are unreadable."""
    try:
        event = event_from(row)
        if isinstance(event.meta, dict):
            return event
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    values = [*row]
    try:
        moment(values[2])
    except (ValueError, OverflowError):
        values[2] = datetime.fromtimestamp(0, UTC)
    values[6] = {}
    return replace(event_from(values), is_damaged=True)


def event_values(event: AuditEvent) -> dict[str, Any]:
    return {
        "tenant_id": event.tenant,
        "id": event.id,
        "at": event.at,
        "action": event.action,
        "agent_id": event.agent_id,
        "message": event.message,
        "meta": canonical_json(event.meta),
        "previous_hash": event.previous_hash,
        "hash": event.hash,
        "folded": fold(event.message),
    }


def note_entries(unit: Unit, entries: Iterable[Mapping[str, Any]]) -> None:
    """Note new entries of the search index: those without a vector are queued at the end of the transaction."""
    unit.memo[CHANGED] = True
    if count := sum(entry["embedder_id"] is None for entry in entries):
        unit.memo[WAITING] = unit.memo.get(WAITING, 0) + count


def note_change(unit: Unit) -> None:
    """Note a change after which maintenance has to visit the tenant."""
    unit.memo[CHANGED] = True
