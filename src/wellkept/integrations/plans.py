"""Work on an agent's memory, written once for all its kinds: of the library or of a client, sync or async.

A plan is a generator. It yields the verbs to call and is sent their results; `run_plan` and `run_plan_async` call them.
"""

from __future__ import annotations

import asyncio
import builtins
import inspect
import json
import logging
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from wellkept.errors import Conflict, Forbidden, Invalid, NotFound, WellkeptError
from wellkept.language.text import clean_text
from wellkept.memory.rules_kinds import RULES
from wellkept.model import Item, Json, Kind, Origin, Role
from wellkept.prompt.rules_summaries import clip_middle
from wellkept.tools.catalog import select_tools
from wellkept.tools.spec import Tool

if TYPE_CHECKING:
    from wellkept.api.aio import AsyncAgentMemory
    from wellkept.api.wellkept import AgentMemory
    from wellkept.client.agent import AgentClient, AsyncAgentClient

    AnyMemory: TypeAlias = AgentMemory | AsyncAgentMemory | AgentClient | AsyncAgentClient

log = logging.getLogger(__name__)

MAX_MESSAGE_CHARS = 100_000
"""Characters of a message of a turn; longer ones are clipped."""

T = TypeVar("T")


class VerbCall(NamedTuple):
    """A verb of an agent's memory and its arguments."""

    verb: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


Plan: TypeAlias = Generator[VerbCall, Any, T]


def ask(verb: str, /, *args: Any, **kwargs: Any) -> Plan[Any]:
    """Call one verb; return its result."""
    return (yield VerbCall(verb, args, kwargs))


def run_plan(memory: AnyMemory, plan: Plan[T]) -> T:
    """Run a plan on a memory whose verbs are methods."""
    try:
        call = next(plan)
        while True:
            try:
                answer = _find_verb(memory, call.verb)(*call.args, **call.kwargs)
            except WellkeptError as error:
                call = plan.throw(error)
            else:
                call = plan.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def run_plan_async(memory: AnyMemory, plan: Plan[T]) -> T:
    """Run a plan on a memory of any kind; verbs that are methods run in a thread."""
    try:
        call = next(plan)
        while True:
            try:
                answer = await call_verb(memory, call.verb, *call.args, **call.kwargs)
            except WellkeptError as error:
                call = plan.throw(error)
            else:
                call = plan.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def call_verb(memory: AnyMemory, verb: str, /, *args: Any, **kwargs: Any) -> Any:
    """Call one verb of a memory of any kind."""
    method = _find_verb(memory, verb)
    if inspect.iscoroutinefunction(method):
        return await method(*args, **kwargs)
    return await asyncio.to_thread(method, *args, **kwargs)


def is_async(memory: AnyMemory) -> bool:
    """Return True if the verbs of a memory are coroutine methods."""
    return inspect.iscoroutinefunction(memory.remember)


def _find_verb(memory: object, verb: str) -> Callable[..., Any]:
    """Raises: Invalid."""
    try:
        return attrgetter(verb)(memory)  # type: ignore[no-any-return]
    except AttributeError:
        known = "use the agent of Wellkept, AsyncWellkept or Client"
        raise Invalid(f"{type(memory).__name__} has no {verb}; {known}.") from None


def log_turn(
    session_id: str, user: str, assistant: str, *, remember: bool | None = True, user_id: str | None = None
) -> Plan[None]:
    """Store a turn as part of a conversation and as episodes; if one of the texts is missing, the other as an episode.

    `remember` and `user_id` are those of the verb `log_turn`, for turns with both texts.
    A turn that memory refuses is logged and left out, because the caller's own work is done.
    """
    said = {Role.USER: user, Role.ASSISTANT: assistant}
    said = {role: clip_middle(clean_text(text), MAX_MESSAGE_CHARS) for role, text in said.items() if text.strip()}
    try:
        if len(said) > 1:
            yield from ask("log_turn", session_id, **said, remember=remember, user_id=user_id)
            return
        for role, text in said.items():
            episode = clip_middle(text, RULES[Kind.EPISODE].max_chars)
            origin = Origin.USER if role is Role.USER else Origin.AGENT
            yield from ask("remember", episode, kind=Kind.EPISODE, role=role, origin=origin, session_id=session_id)
    except (Invalid, Conflict, Forbidden) as error:
        log.warning("A turn of session %s was not remembered: %s", session_id, error)


CallTool: TypeAlias = Callable[[str, Mapping[str, Any]], Coroutine[Any, Any, Json]]


def open_tools(memory: AnyMemory, sets: Iterable[str] | None, session_id: str | None) -> tuple[list[Tool], CallTool]:
    """Return the tools of these sets and the function that calls them. Raises: Invalid."""
    tools = select_tools(sets)
    if tools:
        _find_verb(memory, "call_tool")
    offered: Collection[str] = {tool.set for tool in tools}

    async def call(name: str, arguments: Mapping[str, Any]) -> Json:
        answer: Json = await call_verb(memory, "call_tool", name, arguments, session_id=session_id, sets=offered)
        return answer

    return tools, call


def parse_arguments(text: str) -> Json:
    """Parse the arguments of a model's call; raise ValueError if they are no JSON object."""
    arguments = json.loads(text or "{}")
    if not isinstance(arguments, dict):
        raise ValueError("The arguments must be one JSON object.")
    return arguments


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
