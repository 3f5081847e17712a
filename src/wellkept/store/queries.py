"""Loader of named SQL statements from .sql files.

`sql/queries/<topic>.sql` holds the statements that both engines share; `<topic>.<engine>.sql` adds statements or
replaces them by name. A statement starts with `-- name: <name>` and uses `:parameter`. `{memory}` and similar
placeholders expand to a record's columns, so that their order is defined in one place. `{name}` expands to the shared
text that follows `-- fragment: <name>`. `{where}` stays: each call replaces it by an expression (`store.conditions`).

A statement on an agent's records has a second form for one user of the agent, with the text in `{user|…}`. `select`
returns it if the values name a user, so a caller cannot forget the restriction. A statement on such records without
that text cannot be run for a user, unless `-- users: <reason>` says why it needs no restriction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from wellkept.store.tables.rows import COLUMNS

Q = TypeVar("Q")
MAX_FORMATTED = 4096
"""Statements kept in the form of a driver. Filters make new ones; their values are parameters."""

_HEAD = re.compile(r"^-- (name|fragment): (\w+)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{(:?\w+)\}")
_OF_USER = re.compile(r"\{user\|([^}]*)\}")
_USERS = re.compile(r"^-- users: ", re.MULTILINE)
USER_TABLES = ("memories", "memory_versions", "memory_index", "changes", "chat_sessions", "details", "context_calls")
"""Tables whose rows belong to an agent and possibly to one of its users."""
_ON_USER_TABLE = re.compile(rf"\b(?:FROM|UPDATE|INTO|JOIN) (?:{'|'.join(USER_TABLES)})\b")
FOR_USER = "_for_user"
"""Suffix of the name of a statement's form for one user."""

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z_0-9]*)\b")


@cache
def load_queries(engine: str) -> Mapping[str, str]:
    """Load all statements of one engine by name."""
    folder = Path(__file__).parent / "sql" / "queries"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    shared = [name for name in names if name.count(".") == 1]
    own = [name for name in names if name.endswith(f".{engine}.sql")]
    found: dict[str, dict[str, str]] = {"name": {}, "fragment": {}}
    unrestricted = set[str]()
    for file in (*shared, *own):
        _, *parts = _HEAD.split((folder / file).read_text("utf-8"))
        for what, name, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            found[what][name] = _COMMENT.sub("", body).strip()
            if _USERS.search(body):
                unrestricted.add(name)
    statements = dict[str, str]()
    for name, sql in found["name"].items():
        expanded = _expand_columns(_expand_fragments(sql, found["fragment"]))
        statements[name] = _OF_USER.sub("", expanded)
        is_safe = name in unrestricted or (":agent" in expanded and not _ON_USER_TABLE.search(expanded))
        if is_safe or _OF_USER.search(expanded):
            statements[name + FOR_USER] = _OF_USER.sub(r"\1", expanded)
    return statements


def select(queries: Mapping[str, Q], name: str, values: Mapping[str, Any]) -> Q:
    """Return a statement in the form for these values: for one user, if they name one."""
    return queries[name + FOR_USER if "user" in values else name]


def peek(rows: Iterable[Q]) -> Iterator[tuple[Q, Iterable[Q]]]:
    """Yield the first row and all rows, unless there are none. The rows may be many, so they are not copied."""
    waiting = iter(rows)
    for first in waiting:
        yield first, chain([first], waiting)


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
