"""Items: JSON values under a namespace and a key."""

from __future__ import annotations

import json
from typing import Annotated, Any

import click

from wellkept.cli.options import Limit, Secrets, read_text
from wellkept.cli.output import Column, Output, confirm, list_records, say
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run
from wellkept.cli.text import json_record, one_line
from wellkept.errors import Invalid, NotFound
from wellkept.memory.rules_items import join_names
from wellkept.model import Item

Namespace = Annotated[str, Argument(help="The names of the namespace, joined by /, such as users/7.")]
Key = Annotated[str, Argument(help="The key in its namespace.")]
Version = Annotated[int | None, Option(help="Only if this is still its version.")]


def put(
    run: Run,
    namespace: Namespace,
    key: Key,
    value: Annotated[str, Argument(help="The value as JSON; - reads standard input.")],
    index: Annotated[list[str] | None, Option(metavar="FIELD", help="A field to find it by; repeat for more.")] = None,
    no_index: Annotated[bool, Option("--no-index", help="Leave it out of every search.")] = False,
    ttl: Annotated[float | None, Option(help="Seconds after which it expires.")] = None,
    refresh: Annotated[bool, Option("--refresh", help="Each reading starts its lifetime again.")] = False,
    version: Annotated[int | None, Option(help="Only if this is still its version; 0: only if new.")] = None,
    secrets: Secrets = None,
) -> None:
    """Store a JSON value under a key. An item with the key gets the new value.

    Example: wellkept memory items put users/7 profile '{"name": "Lena"}' --index name"""
    run.flags |= {"secrets": secrets}
    if index and no_index:
        raise click.BadParameter("--index and --no-index exclude each other.")
    item = run.memory.items.put(
        namespace,
        key,
        _parse(read_text(value)),
        index=False if no_index else index or None,
        ttl=ttl,
        refresh=refresh,
        version=version,
    )
    assert item is not None  # only null deletes
    run.show(say(one_line(f"{_place(item)} is at version {item.version}"), json_record(item)))


def get(run: Run, namespace: Namespace, key: Key) -> None:
    """Print the value of an item as JSON.

    Example: wellkept memory items get users/7 profile"""
    item = run.memory.items.get(namespace, key)
    if item is None:
        raise NotFound("There is no item with this key; wellkept memory items search lists what is in a namespace.")
    whole = json.dumps(item.value, ensure_ascii=False, indent=2)
    run.show(Output(json=json_record(item), lines=[_render(item.value)], blocks=[whole]))


def search(
    run: Run,
    namespace: Annotated[str, Argument(help="Names with which their namespaces begin; without any, all.")] = "",
    query: Annotated[str | None, Option(help="Best match first; without one, the last written first.")] = None,
    where: Annotated[str, Option(help="Only items that pass this filter.")] = "",
    limit: Limit = 10,
    offset: Annotated[int, Option(help="How many to skip.")] = 0,
) -> None:
    """Search the items of a namespace and of all below it.

    Example: wellkept memory items search users --where 'value.age >= 18'"""
    found = run.memory.items.search(namespace, query=query, where=where, limit=limit, offset=offset)
    none = "There are no items here; wellkept memory items namespaces lists where there are."
    run.show(list_records(ITEM_COLUMNS, found, if_empty=none))


def delete(run: Run, namespace: Namespace, key: Key, version: Version = None) -> None:
    """Delete an item and its history for good.

    Example: wellkept memory items delete users/7 profile"""
    if not run.memory.items.delete(namespace, key, version=version):
        raise NotFound("There is no item with this key.")
    run.show(confirm("Deleted", f"{namespace}/{key}"))


def namespaces(
    run: Run,
    prefix: Annotated[str, Argument(help="Names with which they begin; * stands for any one.")] = "",
    suffix: Annotated[str, Option(help="Names with which they end.")] = "",
    max_depth: Annotated[int | None, Option(help="Cut longer ones.")] = None,
    limit: Limit = 100,
    offset: Annotated[int, Option(help="How many to skip.")] = 0,
) -> None:
    """List the namespaces that have items.

    Example: wellkept memory items namespaces users"""
    found = run.memory.items.namespaces(prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset)
    columns = (Column("Namespace", join_names),)
    run.show(list_records(columns, found, if_empty="There are no items."))


ITEM_COLUMNS = (
    Column("Namespace and key", lambda item: _place(item), "cyan"),
    Column("", lambda item: item.version, only="pipe"),
    Column("Written", lambda item: item.updated_at, "dim", only="wide", is_whole=True),
    Column("", lambda item: item.updated_at, only="pipe"),
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
