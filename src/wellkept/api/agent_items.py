"""`agent.items`: JSON values under a namespace and a key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from wellkept.api.agent_records import AgentView, trace_operation
from wellkept.arguments import check_fields
from wellkept.errors import Invalid
from wellkept.memory.items import ItemDraft, Place
from wellkept.memory.remember import naming_item
from wellkept.memory.rules_filters import Where
from wellkept.memory.rules_items import IndexedFields, Namespace
from wellkept.model import Item, OriginName


class AgentItems(AgentView):
    """Key–value store of an agent, whose values `recall` finds."""

    @trace_operation("upsert_memory")
    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Any,
        *,
        index: IndexedFields = None,
        ttl: float | None = None,
        refresh: bool = False,
        version: int | None = None,
        origin: OriginName | None = None,
        user: str | None = None,
    ) -> Item | None:
        """Store a JSON value of up to 64 KB under a namespace, such as `("users", "7")`, and a key.

        A stored item gets the new value and the next version; its former value stays in its history. The same value
        makes no new version, but starts its lifetime again. A value of None deletes the item and returns None.

        `index` names the fields by which the item is found (`name`, `address.city`, `tags[*]`); by default all texts,
        with False none. `ttl` is its lifetime in seconds; with `refresh`, each reading starts it again. `version`
        writes only if the stored item has this version, 0 only if there is none. `user` is the end user it belongs to;
        each user has items of his own.

        Raises: Invalid, SecretRejected; Conflict when the item does not have that version; Forbidden when it is trusted
        more than the caller.
        """
        draft = ItemDraft(
            namespace=namespace,
            key=key,
            value=value,
            index=index,
            ttl=ttl,
            refresh=refresh,
            version=version,
            origin=origin,
        )
        return self._services.items.put(self._narrow(user), [draft])[0]

    @trace_operation("upsert_memory")
    def put_many(self, items: Iterable[Mapping[str, Any]], *, user: str | None = None) -> Sequence[Item | None]:
        """Store many items in one transaction: all or none. Each is a mapping of `put`'s arguments.

        Raises: Invalid, SecretRejected, Conflict, Forbidden, each with the position of the refused item as `item`.
        """
        drafts = []
        for position, item in enumerate(items):
            with naming_item(position):
                drafts.append(_parse_draft(item))
        return self._services.items.put(self._narrow(user), drafts)

    @trace_operation("search_memory")
    def get(self, namespace: Namespace, key: str, *, refresh: bool = True, user: str | None = None) -> Item | None:
        """Return an item, or None if there is none or it has expired. A user also reads the items of no user.

        If the item was put with `refresh`, its lifetime starts again; pass `refresh=False` to read it without that.

        Raises: Invalid.
        """
        return self._services.items.get(self._narrow(user), [(namespace, key)], refresh=refresh)[0]

    def get_many(
        self, places: Collection[Place], *, refresh: bool = True, user: str | None = None
    ) -> Sequence[Item | None]:
        """Return the items at many places, each a namespace and a key; None for each that is missing.

        Raises: Invalid.
        """
        return self._services.items.get(self._narrow(user), places, refresh=refresh)

    @trace_operation("delete_memory")
    def delete(self, namespace: Namespace, key: str, *, version: int | None = None, user: str | None = None) -> bool:
        """Delete an item and its history permanently; return False if there is none.

        Raises: Invalid; Conflict when it does not have that version; Forbidden when it is trusted more than the caller.
        """
        return self._services.items.delete(self._narrow(user), (namespace, key), version=version)

    @trace_operation("search_memory")
    def search(
        self,
        prefix: Namespace = (),
        *,
        query: str | None = None,
        where: Where = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
        user: str | None = None,
    ) -> Sequence[Item]:
        """Return items of a namespace and of all below it.

        With a `query`, the best first, as `recall` ranks them, each with its score; otherwise the last written first.
        `where` is a filter (docs/filters.md) in which `value.<key>` is a field of the value: "value.age >= 18 and
        value.city = 'Oslo'". `user` narrows it to the items of one user and of none.

        Raises: Invalid; StoreTimeout when the search takes too long.
        """
        return self._services.items.search(
            self._narrow(user), prefix, query=query, where=where, limit=limit, offset=offset, refresh=refresh
        )

    def namespaces(
        self,
        prefix: Namespace = (),
        *,
        suffix: Namespace = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
        user: str | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """List the namespaces that have items, sorted by their paths.

        `prefix` and `suffix` are names with which they begin and end, in which `*` stands for any name. `max_depth`
        cuts longer ones to so many names.

        Raises: Invalid.
        """
        return self._services.items.namespaces(
            self._narrow(user), prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset
        )


def _parse_draft(item: object) -> ItemDraft:
    known = ItemDraft.__dataclass_fields__
    if not isinstance(item, Mapping):
        raise Invalid(f"An item is a mapping of its fields, not {type(item).__name__}.")
    if set(item) - set(known) or not {"namespace", "key", "value"} <= set(item):
        raise Invalid(f"An item needs namespace, key and value; its fields are {', '.join(known)}.")
    check_fields(AgentItems.put, item)
    return ItemDraft(**item)
