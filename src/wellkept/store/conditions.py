"""Compiler from filters (`memory`) to SQL of either engine.

All values, and the keys of metadata, are parameters. A comparison with NULL is NULL, which counts as false: `IS NOT
TRUE` negates it as `memory.rules_filters.is_matching` does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime

from wellkept.language.text import like_literal
from wellkept.memory.rules_filters import EQUAL, EXISTS, JSON_FIELDS, STATE, And, Comparison, Condition, Not, Or
from wellkept.store.tables.rows import TAG_BORDER

STATE_SQL = """CASE WHEN archived_at IS NOT NULL THEN 'archived' WHEN held_at IS NOT NULL THEN 'held'
  WHEN expires_at <= {now} OR valid_to <= {now} OR valid_to <= updated_at THEN 'expired' ELSE 'live' END"""
"""The state now, as `model.Memory.state` computes it: what has ended stays so if the clock steps back."""

PAST_STATE_SQL = """CASE WHEN archived_at <= {now} OR forgotten_at IS NOT NULL THEN 'archived'
  WHEN held_at IS NOT NULL THEN 'held'
  WHEN expires_at <= {now} OR valid_to <= {now} THEN 'expired' ELSE 'live' END"""
"""The state at a time of the past."""

COLUMNS = {"tags": "folded_tags", "user": "user_id", "agent": "agent_id", "fact": "told"}
"""Columns that have another name than their field."""

ACTOR = "actor"


@dataclass(frozen=True, slots=True)
class Clause:
    """SQL expression for the place `{where}` of a statement, with the values of its parameters."""

    sql: str = "TRUE"
    values: dict[str, object] = field(default_factory=dict)


ALL_ROWS = Clause()
PLACE = "{where}"


def compile_filter(
    condition: Condition | None, engine: str, now: datetime | None = None, *, is_past: bool = False
) -> Clause:
    """Return the SQL of a condition for one engine. `now` is needed if it names the state."""
    if condition is None:
        return ALL_ROWS
    state = PAST_STATE_SQL if is_past else STATE_SQL
    writer = _POSTGRES(now, state) if engine == "postgres" else _SQLITE(now, state)
    return Clause(writer.write(condition), writer.values)


def compile_field(comparison: Comparison, engine: str) -> Clause:
    """Return the SQL of the value of a compared field; of metadata, the JSON text at the path."""
    if comparison.field not in JSON_FIELDS:
        return Clause(COLUMNS.get(comparison.field, comparison.field))
    keys = join_keys(comparison.path)
    if engine == "postgres":
        path = f"strict ${keys}"
        column = COLUMNS.get(comparison.field, comparison.field)
        return Clause(f"jsonb_path_query_first({column}, :path::jsonpath, '{{}}', true)::text", {"path": path})
    return Clause(f"{COLUMNS.get(comparison.field, comparison.field)} -> :path", {"path": f"${keys}"})


class _Writer:
    """SQL of conditions that is the same on both engines."""

    actor: str
    """Expression for the actor of an event."""

    def __init__(self, now: datetime | None, state: str) -> None:
        self._now = now
        self._state = state
        self.values: dict[str, object] = {}

    def write(self, condition: Condition) -> str:
        match condition:
            case And(parts):
                return f"({' AND '.join(map(self.write, parts))})"
            case Or(parts):
                return f"({' OR '.join(map(self.write, parts))})"
            case Not(part):
                return f"({self.write(part)} IS NOT TRUE)"
        return self._write_json(condition) if condition.field in JSON_FIELDS else self._write_column(condition)

    def bind(self, value: object) -> str:
        """Return a parameter with this value."""
        name = f"where_{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def _write_column(self, comparison: Comparison) -> str:
        column, op, value = COLUMNS.get(comparison.field, comparison.field), comparison.op, comparison.value
        if comparison.field == ACTOR:
            column = self.actor
        if comparison.field == STATE:
            column = f"({self._state.format(now=self.bind(self._now))})"
        # These columns are empty where a record has no such value.
        is_never_null = comparison.field in COLUMNS
        if op == EXISTS:
            return f"{column} <> ''" if is_never_null else f"{column} IS NOT NULL"
        if is_never_null and not value:
            return "FALSE"
        if comparison.field == "tags":
            if TAG_BORDER in str(value):
                return "FALSE"
            return f"{column} LIKE {self.bind(f'%{TAG_BORDER}{like_literal(str(value))}{TAG_BORDER}%')} ESCAPE '!'"
        return f"{column} {op} {self.bind(value)}"

    def _write_json(self, comparison: Comparison) -> str:
        raise NotImplementedError


class _SQLITE(_Writer):
    # A damaged row may hold anything.
    actor = "(CASE WHEN json_valid(meta) THEN meta ->> 'actor' END)"

    def _write_json(self, comparison: Comparison) -> str:
        path, value = self.bind("$" + join_keys(comparison.path)), comparison.value
        column = COLUMNS.get(comparison.field, comparison.field)
        if comparison.op == EXISTS:
            return f"json_type({column}, {path}) IS NOT NULL"
        if value is None or isinstance(value, bool):
            passes = f"type = {self.bind(json.dumps(value))}"
        else:
            types = "type = 'text'" if isinstance(value, str) else "type IN ('integer', 'real')"
            passes = f"{types} AND value {comparison.op} {self.bind(value)}"
        # json_each yields a single value itself, but also the members of an object.
        return (
            f"(json_type({column}, {path}) IS NOT 'object' AND "
            f"EXISTS (SELECT 1 FROM json_each({column}, {path}) WHERE {passes}))"
        )


class _POSTGRES(_Writer):
    actor = "(CASE WHEN meta IS JSON THEN meta::jsonb ->> 'actor' END)"

    def _write_json(self, comparison: Comparison) -> str:
        keys, value = comparison.path, comparison.value
        column = COLUMNS.get(comparison.field, comparison.field)
        if comparison.op == EQUAL:
            nested = (self.bind(json.dumps(nest(keys, each), ensure_ascii=False)) for each in (value, [value]))
            contains = " OR ".join(f"{column} @> {each}::jsonb" for each in nested)
            # The index is partial; without its condition the planner does not use it.
            return f"({column} <> '{{}}'::jsonb AND ({contains}))"
        path = f"strict ${join_keys(keys)}"
        if comparison.op == EXISTS:
            return f"jsonb_path_exists({column}, {self.bind(path)}::jsonpath, '{{}}', true)"
        path += f" ? (@ {comparison.op} $value || exists (@[*] ? (@ {comparison.op} $value)))"
        values = json.dumps({"value": value}, ensure_ascii=False)
        return f"jsonb_path_exists({column}, {self.bind(path)}::jsonpath, {self.bind(values)}::jsonb, true)"


def join_keys(keys: tuple[str, ...]) -> str:
    """Return the keys as steps of a JSON path, which both engines read.

    >>> join_keys(("city", 'say "hi"'))
    '."city"."say \\\\"hi\\\\""'
    """
    return "".join(f".{json.dumps(key, ensure_ascii=False)}" for key in keys)


def nest(keys: tuple[str, ...], value: object) -> object:
    """Return an object with the value at this path of keys."""
    for key in reversed(keys):
        value = {key: value}
    return value
