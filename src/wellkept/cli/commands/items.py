"""Items: JSON values under a namespace and a key."""

from __future__ import annotations

import json
from typing import Any, Literal

import click

from wellkept.cli.options import read_text
from wellkept.cli.output import Column, Output, Piped, Styled, confirm, json_record, list_records, one_line, say
from wellkept.cli.run import Run
from wellkept.errors import Invalid, NotFound
from wellkept.memory.rules_items import join_names
from wellkept.model import Item


def put(
    run: Run,
    namespace: str,
    key: str,
    value: str,
    index: list[str] | None = None,
    no_index: bool = False,
    ttl: float | None = None,
    refresh: bool = False,
    version: int | None = None,
    secrets: str | None = None,
) -> None:
    """Store a JSON value under a key. An item with the key gets the new value.

    namespace: The names of the namespace, joined by /, such as users/7.
    key: The key in its namespace.
    value: The value as JSON; - reads standard input.
    --index FIELD: A field to find it by; repeat for more.
    --no-index: Leave it out of every search.
    --ttl: Seconds after which it expires.
    --refresh: Each reading starts its lifetime again.
    --version: Only if this is still its version; 0: only if new.

    Example: wellkept memory items put users/7 profile '{"name": "Lena"}' --index name"""
    run.flags |= {"secrets": secrets}
    if index and no_index:
        raise click.BadParameter("--index and --no-index exclude each other.")
    fields: list[str] | Literal[False] | None = False if no_index else index or None
    given = _parse(read_text(value))
    item = run.memory.items.put(namespace, key, given, index=fields, ttl=ttl, refresh=refresh, version=version)
    assert item is not None  # only null deletes
    run.show(say(one_line(f"{_place(item)} is at version {item.version}"), json_record(item)))


def get(run: Run, namespace: str, key: str) -> None:
    """Print the value of an item as JSON.

    namespace: The names of the namespace, joined by /, such as users/7.
    key: The key in its namespace.

    Example: wellkept memory items get users/7 profile"""
    item = run.memory.items.get(namespace, key)
    if item is None:
        raise NotFound("There is no item with this key; wellkept memory items search lists what is in a namespace.")
    whole = json.dumps(item.value, ensure_ascii=False, indent=2)
    run.show(Output(json_record(item), [Piped(_render(item.value)), Styled(whole)]))


def search(
    run: Run, namespace: str = "", query: str | None = None, where: str = "", limit: int = 10, offset: int = 0
) -> None:
    """Search the items of a namespace and of all below it.

    namespace: Names with which their namespaces begin; without any, all.
    --query: Best match first; without one, the last written first.
    --where: Only items that pass this filter.
    --offset: How many to skip.

    Example: wellkept memory items search users --where 'value.age >= 18'"""
    found = run.memory.items.search(namespace, query=query, where=where, limit=limit, offset=offset)
    none = "There are no items here; wellkept memory items namespaces lists where there are."
    run.show(list_records(ITEM_COLUMNS, found, if_empty=none))


def delete(run: Run, namespace: str, key: str, version: int | None = None) -> None:
    """Delete an item and its history for good.

    namespace: The names of the namespace, joined by /, such as users/7.
    key: The key in its namespace.
    --version: Only if this is still its version.

    Example: wellkept memory items delete users/7 profile"""
    if not run.memory.items.delete(namespace, key, version=version):
        raise NotFound("There is no item with this key.")
    run.show(confirm("Deleted", f"{namespace}/{key}"))


def namespaces(
    run: Run, prefix: str = "", suffix: str = "", max_depth: int | None = None, limit: int = 100, offset: int = 0
) -> None:
    """List the namespaces that have items.

    prefix: Names with which they begin; * stands for any one.
    --suffix: Names with which they end.
    --max-depth: Cut longer ones.
    --offset: How many to skip.

    Example: wellkept memory items namespaces users"""
    found = run.memory.items.namespaces(prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset)
    run.show(list_records([Column("Namespace", join_names)], found, if_empty="There are no items."))


ITEM_COLUMNS = (
    Column("Namespace and key", lambda item: _place(item), "cyan"),
    Column("", lambda item: item.version, only="pipe"),
    Column("Written", lambda item: item.updated_at, "dim", is_wide=True, is_whole=True),
    Column("Value", lambda item: _render(item.value)),
)


def _parse(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Invalid("The value is not JSON; put a text in double quotes: '\"a text\"'.") from None
    if value is None:
        raise Invalid("null is no value of an item; use wellkept memory items delete.")
    return value


def _place(item: Item) -> str:
    return f"{join_names(item.namespace)} {item.key}"


def _render(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False))
