"""Items: JSON values under a namespace and a key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import click

from wellkept.cli.options import Secrets, read_text
from wellkept.cli.output import Column, Output, Styled, confirm, tick
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Command, Run
from wellkept.cli.text import json_record, local_time, one_line, plain_time, safe, shorten
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
    """Store a JSON value under a key. An item with the key gets the new value."""
    run.flags |= {"secrets": secrets}
    if index and no_index:
        raise click.BadParameter("--index and --no-index exclude each other.")
    item = run.memory.put(
        namespace,
        key,
        _parse(read_text(value)),
        index=False if no_index else index or None,
        ttl=ttl,
        refresh=refresh,
        version=version,
    )
    assert item is not None  # only null deletes
    line = f"{_place(item)} is at version {item.version}"
    run.show(Output(json=_json(item), lines=[one_line(line)], blocks=[(tick(True), one_line(line))]))


def get(run: Run, namespace: Namespace, key: Key) -> None:
    """Print the value of an item as JSON."""
    item = run.memory.get_item(namespace, key)
    if item is None:
        raise NotFound("There is no item with this key; wellkept items search lists what is in a namespace.")
    value = _render(item.value)
    run.show(
        Output(json=_json(item), lines=[value], blocks=[safe(json.dumps(item.value, ensure_ascii=False, indent=2))])
    )


def search(
    run: Run,
    namespace: Annotated[str, Argument(help="Names with which their namespaces begin; without any, all.")] = "",
    query: Annotated[str | None, Option(help="Best match first; without one, the last written first.")] = None,
    where: Annotated[str, Option(help="Only items that pass this filter.")] = "",
    limit: Annotated[int, Option(help="Maximum number of results.")] = 10,
    offset: Annotated[int, Option(help="How many to skip.")] = 0,
) -> None:
    """Search the items of a namespace and of all below it."""
    run.show(_render_items(run.memory.search_items(namespace, query=query, where=where, limit=limit, offset=offset)))


def delete(run: Run, namespace: Namespace, key: Key, version: Version = None) -> None:
    """Delete an item and its history for good."""
    if not run.memory.delete_item(namespace, key, version=version):
        raise NotFound("There is no item with this key.")
    run.show(confirm("Forgotten", f"{namespace}/{key}"))


def namespaces(
    run: Run,
    prefix: Annotated[str, Argument(help="Names with which they begin; * stands for any one.")] = "",
    suffix: Annotated[str, Option(help="Names with which they end.")] = "",
    max_depth: Annotated[int | None, Option(help="Cut longer ones.")] = None,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 100,
    offset: Annotated[int, Option(help="How many to skip.")] = 0,
) -> None:
    """List the namespaces that have items."""
    found = run.memory.namespaces(prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset)
    paths = [one_line(join_names(names)) for names in found]
    run.show(
        Output(
            json={"items": [[*names] for names in found]},
            lines=paths,
            columns=(Column("Namespace"),),
            rows=((path,) for path in paths),
            if_empty="There are no items.",
        )
    )


COMMANDS = (
    Command(run=put, example="""wellkept items put users/7 profile '{"name": "Lena"}' --index name"""),
    Command(run=get, example="wellkept items get users/7 profile"),
    Command(run=search, example="wellkept items search users --where 'value.age >= 18'"),
    Command(run=delete, example="wellkept items delete users/7 profile", listed_by="items search"),
    Command(run=namespaces, example="wellkept items namespaces users"),
)


def _parse(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Invalid("The value is not JSON; put a text in double quotes: '\"a text\"'.") from None
    if value is None:
        raise Invalid("null is no value of an item; use wellkept items delete.")
    return value


def _render_items(items: Sequence[Item]) -> Output:
    return Output(
        json={"items": [_json(each) for each in items]},
        lines=(
            (one_line(_place(each)), f"{each.version}", plain_time(each.updated_at), _render(each.value))
            for each in items
        ),
        columns=(
            Column("Namespace and key", "cyan"),
            Column("Written", "dim", whole=True, wide_only=True),
            Column("Value"),
        ),
        rows=(
            (safe(one_line(_place(each))), local_time(each.updated_at), Styled(shorten(_render(each.value))))
            for each in items
        ),
        if_empty="There are no items here; wellkept items namespaces lists where there are.",
    )


def _place(item: Item) -> str:
    return f"{join_names(item.namespace)} {item.key}"


def _render(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False))


def _json(item: Item) -> dict[str, Any]:
    return json_record(item)
