"""Items of exactly one user, or of no user, with texts of any length."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from wellkept.errors import NotFound
from wellkept.integrations.plans import Plan, ask
from wellkept.model import Item, Json

if TYPE_CHECKING:
    from wellkept.integrations.plans import AnyMemory

PAGE = 500
MAX_INLINE_BYTES = 60_000
"""Size of a value, above which its text is kept as a detail."""
READ_CHARS = 1_000_000
"""Characters of a detail that are read at once."""
EVERY_ITEM: Json = {"=": ["kind", "item"]}
DETAIL = "detail"
"""Field of a value whose text is kept as a detail: its key."""


def is_long(value: Json) -> bool:
    """Return True if a value is too long for an item."""
    return len(json.dumps(value, ensure_ascii=False).encode()) > MAX_INLINE_BYTES


def read_text(key: str) -> Plan[str]:
    """Read a detail as a whole. Raises: NotFound."""
    parts, offset = list[str](), 0
    while offset is not None:
        page = yield from ask("details.read", key, offset=offset, limit=READ_CHARS)
        parts.append(page.content)
        offset = page.next_offset
    return "".join(parts)


def drop_texts(keys: Iterable[str | None]) -> Plan[None]:
    """Delete details, if they are there."""
    for key in filter(None, keys):
        with suppress(NotFound):
            yield from ask("details.delete", key)


class OwnItems:
    """Items that a view has itself: a user's without those of no user, an agent's without those of its users."""

    def __init__(self, memory: AnyMemory) -> None:
        self._user = memory.owner.user or None
        # A server writes one item at a time, and its key may be limited to a user that the client does not know.
        self._is_local = hasattr(memory.items, "put_many")

    def get(self, namespace: Sequence[str], key: str) -> Plan[Item | None]:
        """Return one item, if there is one."""
        item: Item | None = yield from ask("items.get", namespace, key)
        return item if item is not None and self._has(item) else None

    def search(
        self, namespace: Sequence[str], query: str, *, where: Sequence[Json] = (), limit: int
    ) -> Plan[Sequence[Item]]:
        """Return the best items for a query that meet all conditions."""
        conditions = {"and": self._conditions(where)}
        found: Sequence[Item] = yield from ask(
            "items.search", namespace, query=query, where=conditions, limit=min(limit, PAGE), refresh=False
        )
        return found

    def list(
        self, namespace: Sequence[str], limit: int | None = None, *, where: Sequence[Json] = ()
    ) -> Plan[builtins.list[Item]]:
        """Return items of a namespace and all below it that meet all conditions, the last written first."""
        found: dict[str, Item] = {}
        offset, earlier = 0, list[Json]()
        while limit is None or len(found) < limit:
            most = PAGE if limit is None else min(limit - len(found), PAGE)
            conditions = {"and": self._conditions([*where, *earlier])}
            page = yield from ask("items.search", namespace, where=conditions, limit=most, offset=offset, refresh=False)
            found |= {each.id: each for each in page}
            if len(page) < most:
                break
            # The rest was last written at this time or before it, so pages do not shift when items are added meanwhile.
            last = page[-1].updated_at
            offset = sum(each.created_at <= last for each in found.values())
            earlier = [{"<=": ["created_at", last.isoformat()]}]
        return list(found.values())

    def put(self, drafts: Sequence[Json]) -> Plan[None]:
        """Write drafts in one transaction, all or none; on a server one after the other."""
        if self._is_local:
            yield from ask("items.put_many", drafts)
            return
        for draft in drafts:
            yield from ask("items.put", **draft)

    def delete(self, items: Iterable[Item]) -> Plan[None]:
        """Delete items and their details."""
        gone = list(items)
        yield from self.put([{"namespace": each.namespace, "key": each.key, "value": None} for each in gone])
        yield from drop_texts(each.value.get(DETAIL) for each in gone)

    def _conditions(self, others: Sequence[Json]) -> Sequence[Json]:
        if self._user is not None:
            return [*others, {"=": ["user", self._user]}]
        return [*others, {"not": {"exists": "user"}} if self._is_local else EVERY_ITEM]

    def _has(self, item: Item) -> bool:
        return item.user == self._user or (self._user is None and not self._is_local)
