"""Items of an agent: `/api/agents/{agent}/items`, JSON values under a namespace and a key.

In a query, a namespace is a path: its names joined by "/", with "/" and "%" in a name written %2F and %25 before the
path is encoded for the URL.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from fastapi import Query
from pydantic import BaseModel, Field, Strict

from wellkept.errors import Invalid, NotFound
from wellkept.language.values import check_limit
from wellkept.memory.rules_items import MAX_KEY_CHARS, MAX_NAMES
from wellkept.model import Item
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import fit_page
from wellkept.server.rest.shapes import Number, OriginName, RecordBody, RequestBody, UserName, check_origin, describes

MAX_FOUND = 100
NO_ITEM = "There is no item with this key in this namespace."
NO_NULL = "null is no value of an item; delete the item, or store an object with a field that is null."

Names = Annotated[list[str], Field(json_schema_extra={"maxItems": MAX_NAMES}, examples=[["users", "7"]])]
Key = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_KEY_CHARS}, examples=["profile"])]
Path = Annotated[str, Field(description="The names of the namespace, joined by /.", examples=["users/7"])]
Limit = Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_FOUND})]


class NewItem(RequestBody):
    """A value to store under a namespace and a key."""

    namespace: Names
    key: Key
    value: Annotated[Any, Field(description="Any JSON but null, up to 64 KB.", examples=[{"name": "Lena"}])]
    index: Annotated[
        list[str] | bool | None,
        Field(description="Fields by which it is found; null: all texts; false: none.", examples=[["name"]]),
    ] = None
    ttl: Annotated[Number | None, Field(description="Lifetime in seconds; null: unlimited.", examples=[3600])] = None
    refresh: Annotated[bool, Strict(), Field(description="Each reading starts its lifetime again.")] = False
    version: Annotated[
        int | None, Strict(), Field(description="The version to replace, 0 for none; 409 if it is another.")
    ] = None
    origin: OriginName | None = None
    user: UserName | None = None


class ItemPlace(RequestBody):
    """Place of one item."""

    is_query: ClassVar[bool] = True
    namespace: Path
    key: Key
    user: UserName | None = None


class ReadItem(ItemPlace):
    """The item to read."""

    refresh: Annotated[bool, Field(description="Start the lifetime of a sliding item again.")] = True


class DeleteItem(ItemPlace):
    """The item to delete."""

    version: Annotated[int | None, Field(description="The version to delete; 409 if it is another.")] = None


class ItemSearch(RequestBody):
    """A search for items."""

    namespace: Annotated[Names, Field(description="Names with which their namespaces begin; empty: all.")] = []
    query: Annotated[str | None, Field(description="Best first; null: the last written first.")] = None
    where: Annotated[
        str | dict[str, Any] | None,
        Field(
            description="Filter, as text or JSON; `value.city` is a field of the value.", examples=["value.age >= 18"]
        ),
    ] = None
    limit: Annotated[Limit, Strict()] = 10
    offset: Annotated[int, Strict(), Field(description="The `next_offset` of the previous page.")] = 0
    refresh: Annotated[bool, Strict(), Field(description="Start the lifetimes of sliding items again.")] = True
    user: UserName | None = None


class NamespaceFilter(RequestBody):
    """Filter for namespaces; `*` stands for any one name."""

    is_query: ClassVar[bool] = True
    prefix: Annotated[str, Field(description="Path with which they begin.", examples=["users/*"])] = ""
    suffix: Annotated[str, Field(description="Path with which they end.")] = ""
    max_depth: Annotated[int | None, Field(description="Cut longer ones to so many names.")] = None
    limit: Limit = 100
    offset: int = 0
    user: UserName | None = None


@describes(Item)
class KeyedItem(RecordBody):
    """An item."""


class FoundItems(BaseModel):
    """Items, in the order of the search."""

    items: list[KeyedItem]
    next_offset: Annotated[int | None, Field(description="null: there are no more")]


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
    check_origin(body.origin)
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
