"""Loader of named SQL statements from .sql files.

`sql/queries/<topic>.sql` holds the statements that both engines share; `<topic>.<engine>.sql` adds statements or
replaces them by name. A statement starts with `-- name: <name>` and uses `:parameter`. `{memory}` and similar
placeholders expand to a record's columns, so that their order is defined in one place. `{name}` expands to the shared
text that follows `-- fragment: <name>`. `{where}` stays: each call replaces it by an expression (`store.conditions`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

from recollect.store.tables.columns import COLUMNS

MAX_FORMATTED = 4096
"""Statements kept in the form of a driver. Filters make new ones; their values are parameters."""

_HEAD = re.compile(r"^-- (name|fragment): (\w+)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{(:?\w+)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z_0-9]*)\b")


@cache
def load_queries(engine: str) -> Mapping[str, str]:
    """Load all statements of one engine by name."""
    folder = files("recollect.store") / "sql" / "queries"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    shared = [name for name in names if name.count(".") == 1]
    own = [name for name in names if name.endswith(f".{engine}.sql")]
    found: dict[str, dict[str, str]] = {"name": {}, "fragment": {}}
    for file in (*shared, *own):
        _, *parts = _HEAD.split((folder / file).read_text("utf-8"))
        for what, name, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            found[what][name] = _COMMENT.sub("", body).strip()
    return {name: _expand_columns(_expand_fragments(sql, found["fragment"])) for name, sql in found["name"].items()}


def _expand_fragments(sql: str, fragments: Mapping[str, str]) -> str:
    for name, fragment in fragments.items():
        sql = sql.replace(f"{{{name}}}", fragment)
    return sql


def _expand_columns(sql: str) -> str:
    return _PLACEHOLDER.sub(lambda match: _EXPANSIONS.get(match[1], match[0]), sql)


_EXPANSIONS = {name: ", ".join(columns) for name, columns in COLUMNS.items()} | {
    f":{name}": ", ".join(f":{column}" for column in columns) for name, columns in COLUMNS.items()
}


@lru_cache(MAX_FORMATTED)
def as_pyformat(sql: str) -> str:
    """Replace `:parameter` with psycopg's `%(parameter)s`.

    >>> as_pyformat("SELECT x::text FROM t WHERE a LIKE '%' AND b = :owner")
    "SELECT x::text FROM t WHERE a LIKE '%%' AND b = %(owner)s"
    """
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))


@lru_cache(MAX_FORMATTED)
def as_numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Replace `:parameter` with SQLite's `?1`; return the statement and the parameters in order.

    >>> as_numbered("SELECT :a WHERE b = :b OR c = :a")
    ('SELECT ?1 WHERE b = ?2 OR c = ?1', ('a', 'b'))
    """
    names = tuple(dict.fromkeys(_PARAMETER.findall(sql)))
    return _PARAMETER.sub(lambda match: f"?{names.index(match[1]) + 1}", sql), names


def statements(script: str) -> list[str]:
    """Split a migration into statements, because some servers accept only one at a time."""
    return [part.strip() for part in _COMMENT.sub("", script).split(";\n") if part.strip()]
