"""LangGraph: a `BaseStore` on an agent's items, and a node that adds the agent's memory to a graph's state.

LangGraph's filters compare whole values, lists included. `search` lets wellkept narrow the items as far as its own
filters allow, and compares what it finds once more.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from wellkept.errors import Invalid
from wellkept.language.text import clean_text
from wellkept.memory.items import MAX_OFFSET, MAX_PAGE
from wellkept.memory.rules_filters import MAX_KEYS, MAX_NUMBER
from wellkept.memory.rules_items import ANY_NAME
from wellkept.model import Item as StoredItem
from wellkept.model import Json, OriginName

if TYPE_CHECKING:
    from wellkept.api.agent import AgentMemory
    from wellkept.client.agent import AgentClient

__all__ = ["WellkeptStore", "make_context_node"]

Memory: TypeAlias = "AgentMemory | AgentClient"

MINUTE = 60
TOO_MANY = (
    f"This filter has to compare more than {MAX_OFFSET:,} items one by one. Narrow the namespace, or add a condition "
    "that wellkept can look up: $eq, $gt, $gte, $lt or $lte with a text or a number."
)

_ORDERINGS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, bound: value > bound,
    "$gte": lambda value, bound: value >= bound,
    "$lt": lambda value, bound: value < bound,
    "$lte": lambda value, bound: value <= bound,
}
_SIGNS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_PLAIN_KEY = re.compile(r"[\w -]{1,100}")


class WellkeptStore(BaseStore):
    """Store of a LangGraph graph, kept as items of one agent.

    `memory` is the agent's memory (`Wellkept().agent("atlas")`), one of its users' (`….for_user("u-7")`) or that of a
    `Client`. `fields` are the fields by which items are found if `put` names none; by default all texts. `ttl` has
    LangGraph's settings: `default_ttl` in minutes and `refresh_on_read`. `origin` says how far the values are trusted.

    Reads of one batch come before its writes, and its writes are one transaction (with a `Client`: one each).
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
        origin: OriginName | None = None,
    ) -> None:
        self.memory = memory
        self.ttl_config = ttl
        self._fields = fields
        self._origin = origin

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations; return a result for each. Raises: Invalid, SecretRejected, Conflict, Forbidden."""
        ops = list(ops)
        results: list[Result] = [None] * len(ops)
        gets: dict[bool, list[int]] = {}
        writes: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for place, op in enumerate(ops):
            match op:
                case GetOp():
                    gets.setdefault(op.refresh_ttl, []).append(place)
                case SearchOp():
                    results[place] = self._search(op)
                case ListNamespacesOp():
                    results[place] = self._list_namespaces(op)
                case PutOp():
                    # As in LangGraph's own stores, the last of several writes to a key counts.
                    writes[op.namespace, op.key] = op
                case _:
                    raise Invalid(f"A store has no operation {type(op).__name__}.")
        for refresh, places in gets.items():
            found = self.memory.items.get_many(
                [(ops[each].namespace, ops[each].key) for each in places], refresh=refresh
            )
            for place, item in zip(places, found, strict=True):
                results[place] = None if item is None else Item(**_describe(item))
        self._put(writes.values())
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations on a thread; return a result for each."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _put(self, ops: Iterable[PutOp]) -> None:
        drafts: list[Json] = [
            {
                "namespace": op.namespace,
                "key": op.key,
                "value": None if op.value is None else dict(op.value),
                "index": self._fields if op.index is None else op.index,
                "ttl": None if op.ttl is None else op.ttl * MINUTE,
                # Each read says if it starts the lifetime again.
                "refresh": op.ttl is not None,
                "origin": self._origin,
            }
            for op in ops
        ]
        put_items = getattr(self.memory.items, "put_many", None)
        if put_items is not None and drafts:
            put_items(drafts)
        elif put_items is None:
            for draft in drafts:
                self.memory.items.put(**draft)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        filter, end = op.filter or {}, op.offset + op.limit
        if not filter:
            found = list(islice(self._iter_items(op, None, op.offset, refresh=op.refresh_ttl), op.limit))
        else:
            items = self._iter_items(op, _narrow(filter), 0, refresh=False)
            passing = (item for item in items if isinstance(item.value, dict) and _is_match(item.value, filter))
            found = list(islice(passing, op.offset, end))
            if op.refresh_ttl and any(item.expires_at for item in found):
                # Only what is returned lives longer, not all that was compared.
                self.memory.items.get_many([(item.namespace, item.key) for item in found])
        return [SearchItem(**_describe(item), score=item.score) for item in found]

    def _iter_items(self, op: SearchOp, where: Json | None, offset: int, *, refresh: bool) -> Iterator[StoredItem]:
        limit = min(max(op.offset + op.limit - offset, 1), MAX_PAGE)
        while True:
            if where is not None and offset > MAX_OFFSET:
                raise Invalid(TOO_MANY)
            page = self.memory.items.search(
                op.namespace_prefix, query=op.query, where=where or None, limit=limit, offset=offset, refresh=refresh
            )
            yield from page
            offset += limit
            if len(page) < limit:
                return
            # What a filter leaves over of the first page may be little.
            limit = MAX_PAGE if where is not None else limit

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        prefix = _merge_patterns(_paths(conditions, "prefix"))
        suffix = _merge_patterns([path[::-1] for path in _paths(conditions, "suffix")])
        found: list[tuple[str, ...]] = []
        while prefix is not None and suffix is not None and len(found) < op.limit:
            limit = min(op.limit - len(found), MAX_PAGE)
            page = self.memory.items.namespaces(
                prefix, suffix=suffix[::-1], max_depth=op.max_depth, limit=limit, offset=op.offset + len(found)
            )
            found += page
            if len(page) < limit:
                break
        return found


def _describe(item: StoredItem) -> Json:
    names = ("namespace", "key", "value", "created_at", "updated_at")
    return {name: getattr(item, name) for name in names}


def _paths(conditions: Iterable[MatchCondition], match_type: str) -> list[tuple[str, ...]]:
    unknown = {each.match_type for each in conditions} - {"prefix", "suffix"}
    if unknown:
        raise Invalid(f"Namespaces are matched by prefix or suffix, not by {unknown.pop()!r}.")
    return [tuple(each.path) for each in conditions if each.match_type == match_type]


def _merge_patterns(patterns: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the pattern that matches what all of them match, such as ("a", "b") for ("a", "*") and ("*", "b"); None if
    nothing can."""
    merged: list[str] = []
    for pattern in patterns:
        for place, name in enumerate(pattern):
            if place == len(merged):
                merged.append(name)
            elif merged[place] == ANY_NAME:
                merged[place] = name
            elif name not in (ANY_NAME, merged[place]):
                return None
    return tuple(merged)


def _narrow(filter: Mapping[str, Any]) -> Json:
    """Return a filter of wellkept that every item which passes LangGraph's filter passes, too; {} if there is none."""
    conditions = list(islice(_iter_conditions(filter, "value"), MAX_KEYS))
    return {"and": conditions} if conditions else {}


def _iter_conditions(filter: Mapping[str, Any], field: str) -> Iterator[Json]:
    for key, expected in filter.items():
        if not _PLAIN_KEY.fullmatch(str(key)):
            continue
        inner = f'{field}."{key}"'
        if not isinstance(expected, Mapping):
            expected = {"$eq": expected}
        if not any(str(name).startswith("$") for name in expected):
            yield from _iter_conditions(expected, inner)
            continue
        for operator, value in expected.items():
            # A missing field equals None for LangGraph, and wellkept looks into lists.
            is_number = isinstance(value, int | float) and abs(value) < MAX_NUMBER
            if operator in _SIGNS and (isinstance(value, str) or is_number):
                yield {_SIGNS[operator]: [inner, value]}


def _is_match(value: Any, filter: Mapping[str, Any]) -> bool:
    return all(_passes(value.get(key), expected) for key, expected in filter.items())


def _passes(value: Any, expected: Any) -> bool:
    """Compare as LangGraph's stores do: whole values by JSON, objects field by field."""
    if isinstance(expected, Mapping):
        if any(str(name).startswith("$") for name in expected):
            return all(_compare(value, operator, bound) for operator, bound in expected.items())
        return isinstance(value, dict) and _is_match(value, expected)
    if isinstance(expected, list | tuple):
        is_as_long = isinstance(value, list) and len(value) == len(expected)
        return is_as_long and all(map(_passes, value, expected))
    return _compare(value, "$eq", expected)


def _compare(value: Any, operator: str, bound: Any) -> bool:
    if operator in ("$eq", "$ne"):
        # In JSON, true is not 1.
        is_equal = value == bound and isinstance(value, bool) == isinstance(bound, bool)
        return is_equal is (operator == "$eq")
    if operator not in _ORDERINGS:
        raise Invalid(f"There is no filter operator {operator!r}; use $eq, $ne, $gt, $gte, $lt or $lte.")
    is_number = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (value, bound))
    return (is_number or (isinstance(value, str) and isinstance(bound, str))) and _ORDERINGS[operator](value, bound)


def make_context_node(
    memory: Memory, *, key: str = "context", system_prompt: str | None = None, budget: int | None = None
) -> Callable[[Any, RunnableConfig], dict[str, str]]:
    """Return a node that writes what the agent remembers about the last message into the field `key` of the state.

    It is the text of `memory.context(…)`: the system prompt, core memories, notes, recalled memories and passages, for
    a system message. The thread of the run is the session, `user_id` in its configuration the end user.
    """

    def add_context(state: Any, config: RunnableConfig) -> dict[str, str]:
        messages = state["messages"] if isinstance(state, Mapping) else state.messages
        return {key: render_context(memory, messages, config, system_prompt=system_prompt, budget=budget)}

    return add_context


def render_context(memory: Memory, messages: Sequence[Any], config: RunnableConfig, **options: Any) -> str:
    """Return the system messages of the context for the last human message."""
    session_id, user = find_session(config)
    working = memory.context(clean_text(find_text(messages, "human")), session=session_id, user=user, **options)
    return "\n\n".join(each["content"] for each in working.messages if each["role"] == "system")


def find_session(config: RunnableConfig) -> tuple[str, str | None]:
    """Return the thread of a run, which is the session, and its end user, if it names one. Raises: Invalid."""
    named = config.get("configurable") or {}
    thread, user = named.get("thread_id"), named.get("user_id")
    if not thread:
        raise Invalid('A run names its thread: config={"configurable": {"thread_id": "t-1"}}.')
    return str(thread), None if user is None else str(user)


def find_text(messages: Sequence[Any], type: str) -> str:
    """Return the text of the last message of a type (human or ai); "" if there is none."""
    return next((str(each.text) for each in reversed(messages) if each.type == type and str(each.text)), "")
