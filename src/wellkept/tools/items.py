"""Tools for items: values an agent keeps under a namespace and a key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wellkept.errors import Invalid
from wellkept.memory.rules_items import join_names
from wellkept.model import Item, Json
from wellkept.prompt.rules_escaping import escape_data
from wellkept.tools.bounds import MAX_CHARS, shorten

if TYPE_CHECKING:
    from wellkept.api.agent import AgentMemory

FOUND, MOST = 10, 50
MISSING = "There is no item with this key. item_search lists what is in a namespace, item_namespaces the namespaces."


def item_put(
    memory: AgentMemory,
    namespace: str,
    key: str,
    value: Json,
    index: list[str] | None = None,
    ttl: float | None = None,
    version: int | None = None,
) -> Json:
    stored = memory.items.put(namespace, key, value, index=index, ttl=ttl, version=version, origin="agent")
    assert stored is not None  # only None deletes
    return {"ok": True, "version": stored.version}


def item_get(memory: AgentMemory, namespace: str, key: str) -> Json:
    item = memory.items.get(namespace, key)
    return {"ok": False, "error": MISSING} if item is None else _render(item, MAX_CHARS)


def item_search(memory: AgentMemory, namespace: str = "", query: str = "", where: str = "", limit: int = FOUND) -> Json:
    if not 1 <= limit <= MOST:
        raise Invalid(f"The limit is a whole number from 1 to {MOST}.")
    found = memory.items.search(namespace, query=query or None, where=where, limit=limit)
    return {"count": len(found), "items": [_render(each, MAX_CHARS // len(found)) for each in found]}


def item_delete(memory: AgentMemory, namespace: str, key: str) -> Json:
    return {"ok": True} if memory.items.delete(namespace, key) else {"ok": False, "error": MISSING}


def item_namespaces(memory: AgentMemory, prefix: str = "") -> Json:
    found = memory.items.namespaces(prefix)
    return {"count": len(found), "namespaces": [escape_data(join_names(names)) for names in found]}


def _render(item: Item, most: int) -> Json:
    text = escape_data(json.dumps(item.value, ensure_ascii=False))
    rendered: Json = {"namespace": escape_data(join_names(item.namespace)), "key": escape_data(item.key)}
    rendered |= {"value": shorten(text, most), "version": item.version}
    if len(text) > most:
        rendered["total"] = len(text)
    return rendered | ({} if item.expires_at is None else {"expires_at": item.expires_at.isoformat(timespec="seconds")})
