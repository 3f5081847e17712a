"""Items of an agent: `/api/agents/{agent}/items`, JSON values under a namespace and a key.

In a query, a namespace is a path: its names joined by "/", with "/" and "%" in a name written %2F and %25 before the
path is encoded for the URL.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Strict

from wellkept.errors import Invalid, NotFound
from wellkept.language.values import check_limit
from wellkept.memory.rules_items import MAX_KEY_CHARS, MAX_NAMES
from wellkept.model import Item
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import fit_page
from wellkept.server.rest import shapes
from wellkept.server.rest.shapes import Flag, Number, RecordBody, RequestBody, describes, field

MAX_FOUND = 100
NO_ITEM = "There is no item with this key in this namespace."
NO_NULL = "null is no value of an item; delete the item, or store an object with a field that is null."

Names = Annotated[list[str], field(maxItems=MAX_NAMES, example=["users", "7"])]
Key = Annotated[str, field(minLength=1, maxLength=MAX_KEY_CHARS, example="profile")]
Path = Annotated[str, field(description="The names of the namespace, joined by /.", example="users/7")]
Limit = Annotated[int, field(minimum=1, maximum=MAX_FOUND)]


class NewItem(RequestBody):
    """A value to store under a namespace and a key."""

    namespace: Names
    key: Key
    value: Any = field(description="Any JSON but null, up to 64 KB.", example={"name": "Lena"})
    index: list[str] | bool | None = field(
        None, "Fields by which it is found; null: all texts; false: none.", example=["name"]
    )
    ttl: Number | None = field(None, "Lifetime in seconds; null: unlimited.", example=3600)
    refresh: Flag = field(False, "Each reading starts its lifetime again.")
    version: int | None = field(None, "The version to replace, 0 for none; 409 if it is another.", strict=True)
    origin: shapes.OriginName | None = None
    user: shapes.UserName | None = None


class ItemPlace(shapes.Query):
    """Place of one item."""

    namespace: Path
    key: Key
    user: shapes.UserName | None = None


class ReadItem(ItemPlace):
    """The item to read."""

    refresh: bool = field(True, "Start the lifetime of a sliding item again.")


class DeleteItem(ItemPlace):
    """The item to delete."""

    version: int | None = field(None, "The version to delete; 409 if it is another.")


class ItemSearch(RequestBody):
    """A search for items."""

    namespace: Names = field([], "Names with which their namespaces begin; empty: all.")
    query: str | None = field(None, "Best first; null: the last written first.")
    where: str | dict[str, Any] | None = field(
        None, "Filter, as text or JSON; `value.city` is a field of the value.", example="value.age >= 18"
    )
    limit: Annotated[Limit, Strict()] = 10
    offset: int = field(0, "The `next_offset` of the previous page.", strict=True)
    refresh: Flag = field(True, "Start the lifetimes of sliding items again.")
    user: shapes.UserName | None = None


class NamespaceFilter(shapes.Query):
    """Filter for namespaces; `*` stands for any one name."""

    prefix: str = field("", "Path with which they begin.", example="users/*")
    suffix: str = field("", "Path with which they end.")
    max_depth: int | None = field(None, "Cut longer ones to so many names.")
    limit: Limit = 100
    offset: int = 0
    user: shapes.UserName | None = None


@describes(Item)
class KeyedItem(RecordBody):
    """An item."""


class FoundItems(BaseModel):
    """Items, in the order of the search."""

    items: list[KeyedItem]
    next_offset: int | None = field(description="null: there are no more")


class NamespacePage(BaseModel):
    """Namespaces, sorted by their paths."""

    items: list[list[str]]
    next_offset: int | None


router = Router(prefix="/api/agents/{agent}/items", tags=["items"])


@router.put("", scope=WRITE)
def put_item(memory: CurrentAgent, body: NewItem) -> KeyedItem:
    """Store a value. If there is an item with this key, it gets the value and the next version, and its former value
    stays in its history; the same value makes no new version. When this route answers, it is on disk. 403 for an origin
    that is trusted more than the key."""
    shapes.check_origin(body.origin)
    if body.value is None:
        raise Invalid(NO_NULL)
    item = memory.items.put(**dict(body))
    assert item is not None  # only null deletes
    return KeyedItem.of(item)


@router.get("", scope=READ)
def get_item(memory: CurrentAgent, place: Annotated[ReadItem, Query()]) -> KeyedItem:
    """Return an item. 404 if there is none, or if it has expired."""
    item = memory.items.get(**dict(place))
    if item is None:
        raise NotFound(NO_ITEM)
    return KeyedItem.of(item)


@router.delete("", scope=WRITE, status_code=204)
def delete_item(memory: CurrentAgent, place: Annotated[DeleteItem, Query()]) -> None:
    """Delete an item and its history permanently. 404 if there is none."""
    if not memory.items.delete(**dict(place)):
        raise NotFound(NO_ITEM)


@router.post("/search", scope=READ)
def search_items(memory: CurrentAgent, body: ItemSearch) -> FoundItems:
    """Search the items of a namespace and of all below it: the best for a query first, as recall ranks them, otherwise
    the last written first. A page has fewer items than the limit if they are long; `next_offset` continues it."""
    check_limit(body.limit, most=MAX_FOUND)
    found = memory.items.search(body.namespace, **body.model_dump(exclude={"namespace"}))
    items = fit_page(found)
    is_end = len(found) < body.limit and len(items) == len(found)
    return FoundItems(
        items=[KeyedItem.of(each) for each in items], next_offset=None if is_end else body.offset + len(items)
    )


@router.get("/namespaces", scope=READ)
def list_namespaces(memory: CurrentAgent, filters: Annotated[NamespaceFilter, Query()]) -> NamespacePage:
    """List the namespaces that have items, sorted by their paths."""
    check_limit(filters.limit, most=MAX_FOUND)
    found = memory.items.namespaces(**dict(filters))
    is_end = len(found) < filters.limit
    return NamespacePage(
        items=[[*names] for names in found], next_offset=None if is_end else filters.offset + len(found)
    )
