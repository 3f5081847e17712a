"""Items of an agent on a server: plans for the verbs of `api.agent_items`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wellkept.client.connection import Plan
from wellkept.client.decoding import decode_record, many
from wellkept.client.verbs import ClientView, send
from wellkept.errors import NotFound
from wellkept.language.values import check_limit
from wellkept.memory.items import MAX_PAGE
from wellkept.memory.rules_items import check_namespace, split_path
from wellkept.model import Item, Json

ITEMS = "/api/agents/{agent}/items"
MAX_FOUND = 100
"""Items or namespaces that a server returns at once."""


def put(view: ClientView[Any], given: Json) -> Plan[Item | None]:
    if given["value"] is None:
        yield from delete_item(view, {name: given.get(name) for name in ("namespace", "key", "version", "user")})
        return None
    body = {**given, "namespace": split_path(check_namespace(given["namespace"]))}
    return decode_record(Item, (yield from send(view, f"PUT {ITEMS}", body)), view.owner)  # type: ignore[no-any-return]


def get_item(view: ClientView[Any], given: Json) -> Plan[Item | None]:
    place = {**given, "namespace": check_namespace(given["namespace"])}
    try:
        answer = yield from send(view, f"GET {ITEMS}", place)
    except NotFound:
        return None
    return decode_record(Item, answer, view.owner)  # type: ignore[no-any-return]


def get_items(view: ClientView[Any], given: Json) -> Plan[Sequence[Item | None]]:
    found = []
    for namespace, key in given.pop("places"):
        found.append((yield from get_item(view, {**given, "namespace": namespace, "key": key})))
    return found


def delete_item(view: ClientView[Any], given: Json) -> Plan[bool]:
    place = {**given, "namespace": check_namespace(given["namespace"])}
    try:
        yield from send(view, f"DELETE {ITEMS}", place)
    except NotFound:
        return False
    return True


def search_items(view: ClientView[Any], given: Json) -> Plan[Sequence[Item]]:
    names = split_path(check_namespace(given.pop("prefix", ()), may_be_empty=True))
    found = yield from _read_pages(view, f"POST {ITEMS}/search", {**given, "namespace": names})
    return many(Item)({"items": found}, view.owner)  # type: ignore[no-any-return]


def namespaces(view: ClientView[Any], given: Json) -> Plan[Sequence[tuple[str, ...]]]:
    paths = {name: check_namespace(given.get(name, ()), may_be_empty=True) for name in ("prefix", "suffix")}
    return [tuple(each) for each in (yield from _read_pages(view, f"GET {ITEMS}/namespaces", given | paths))]


def _read_pages(view: ClientView[Any], route: str, given: Json) -> Plan[list[Json]]:
    found: list[Json] = []
    limit, offset = check_limit(given["limit"], most=MAX_PAGE), given.get("offset", 0)
    while True:
        page = {**given, "limit": min(limit - len(found), MAX_FOUND), "offset": offset}
        answer = yield from send(view, route, page, is_repeatable=True)
        found += answer["items"]
        offset = answer["next_offset"]
        if offset is None or len(found) >= limit:
            return found
