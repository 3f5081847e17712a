"""Tools for items: values an agent keeps under a namespace and a key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from recollect.errors import Invalid
from recollect.model import Item, Json
from recollect.policy.items import join_names
from recollect.policy.prompt.escaping import escape_data
from recollect.tools.bounds import MAX_CHARS, shorten
from recollect.tools.spec import Parameter, Tool

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory

NO_AGENT = {"ok": False, "error": "There is no agent in this conversation, so there are no items."}
FOUND, MOST = 10, 50
MISSING = "There is no item with this key. item_search lists what is in a namespace, item_namespaces the namespaces."

NAMESPACE = Parameter(
    description="The names of the namespace, joined by /, such as users/7.",
    is_required=True,
)
KEY = Parameter(description="The key of the item in its namespace, such as profile.", is_required=True)
ITEM = {"namespace": "string", "key": "string", "value": "string", "version": "integer", "expires_at": "string"}


def item_put(
    memory: AgentMemory | None,
    namespace: str,
    key: str,
    value: Json,
    index: list[str] | None = None,
    ttl: float | None = None,
    version: int | None = None,
) -> Json:
    if memory is None:
        return NO_AGENT
    stored = memory.put(namespace, key, value, index=index, ttl=ttl, version=version, origin="agent")
    assert stored is not None  # only None deletes
    return {"ok": True, "version": stored.version}


def item_get(memory: AgentMemory | None, namespace: str, key: str) -> Json:
    if memory is None:
        return NO_AGENT
    item = memory.get_item(namespace, key)
    return {"ok": False, "error": MISSING} if item is None else _render(item, MAX_CHARS)


def item_search(
    memory: AgentMemory | None, namespace: str = "", query: str = "", where: str = "", limit: int = FOUND
) -> Json:
    if memory is None:
        return NO_AGENT
    if not 1 <= limit <= MOST:
        raise Invalid(f"The limit is a whole number from 1 to {MOST}.")
    found = memory.search_items(namespace, query=query or None, where=where, limit=limit)
    return {"count": len(found), "items": [_render(each, MAX_CHARS // len(found)) for each in found]}


def item_delete(memory: AgentMemory | None, namespace: str, key: str) -> Json:
    if memory is None:
        return NO_AGENT
    return {"ok": True} if memory.delete_item(namespace, key) else {"ok": False, "error": MISSING}


def item_namespaces(memory: AgentMemory | None, prefix: str = "") -> Json:
    if memory is None:
        return NO_AGENT
    found = memory.namespaces(prefix)
    return {"count": len(found), "namespaces": [escape_data(join_names(names)) for names in found]}


def _render(item: Item, most: int) -> Json:
    text = escape_data(json.dumps(item.value, ensure_ascii=False))
    rendered: Json = {"namespace": escape_data(join_names(item.namespace)), "key": escape_data(item.key)}
    rendered |= {"value": shorten(text, most), "version": item.version}
    if len(text) > most:
        rendered["total"] = len(text)
    return rendered | ({} if item.expires_at is None else {"expires_at": item.expires_at.isoformat(timespec="seconds")})


TOOLS = (
    Tool(
        name="item_put",
        set="items",
        title="Store a value under a key",
        description=(
            "Store a JSON value under a namespace and a key, to read it again by exactly that key or to find it by its "
            "texts. An item with the key gets the new value. Never store passwords, tokens or other secrets."
        ),
        parameters={
            "namespace": NAMESPACE,
            "key": KEY,
            "value": Parameter(
                description='The value, an object such as {"city": "Oslo"}.', type="object", is_required=True
            ),
            "index": Parameter(description="Fields to find it by, such as name; all texts if not given.", type="array"),
            "ttl": Parameter(description="Seconds after which it expires; never if not given.", type="number"),
            "version": Parameter(
                description="Write only if this is still its version; 0: only if new.", type="integer"
            ),
        },
        answer={"version": "integer"},
        call=item_put,
        is_idempotent=True,
    ),
    Tool(
        name="item_get",
        set="items",
        title="Read a value by its key",
        description="Read the value under a namespace and a key, as JSON text.",
        parameters={"namespace": NAMESPACE, "key": KEY},
        answer={**ITEM, "total": "integer"},
        call=item_get,
        is_read_only=True,
        is_idempotent=True,
    ),
    Tool(
        name="item_search",
        set="items",
        title="Search values",
        description=(
            "Find items in a namespace and all below it: those that answer the query best, or without one the last "
            "written. A value that is cut has `total`; read it whole with item_get."
        ),
        parameters={
            "namespace": Parameter(description="Path with which their namespaces begin; all if not given."),
            "query": Parameter(description="What to look for, in your own words."),
            "where": Parameter(description="Only items that pass this filter, such as value.age >= 18."),
            "limit": Parameter(description=f"Most items to return, {FOUND} if not given.", type="integer"),
        },
        answer={"count": "integer", "items": "array"},
        call=item_search,
        is_read_only=True,
        is_idempotent=True,
    ),
    Tool(
        name="item_delete",
        set="items",
        title="Delete a value",
        description="Delete the item under a namespace and a key.",
        parameters={"namespace": NAMESPACE, "key": KEY},
        answer={},
        call=item_delete,
        is_destructive=True,
        is_idempotent=True,
    ),
    Tool(
        name="item_namespaces",
        set="items",
        title="List namespaces",
        description="List the namespaces that have items, as paths, 100 at most.",
        parameters={"prefix": Parameter(description="Path with which they begin; * stands for any one name.")},
        answer={"count": "integer", "namespaces": "array"},
        call=item_namespaces,
        is_read_only=True,
        is_idempotent=True,
    ),
)
