"""`AgentClient` and `AsyncAgentClient`: the verbs of one agent, on a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from wellkept import model
from wellkept.api.agent import NAME_ONE, AgentMemory, AgentSessions
from wellkept.api.views import AgentChanges, AgentDetails, AgentItems, AgentKnowledge, AgentPrompts, AgentReview, Part
from wellkept.arguments import RawText
from wellkept.client.connection import AsyncConnection, PlainConnection, Plan
from wellkept.client.verbs import (
    C,
    ClientView,
    Verb,
    call,
    decode_batch,
    decode_recalled,
    decode_record,
    field,
    local,
    many,
    one,
    pages,
    send,
    text,
)
from wellkept.details.parts import iter_pieces
from wellkept.errors import Invalid, NotFound
from wellkept.language.names import check_user
from wellkept.language.values import check_limit
from wellkept.memory.items import MAX_PAGE
from wellkept.memory.rules_items import check_namespace, split_path
from wellkept.tools import catalog

ITEMS = "/api/agents/{agent}/items"
MAX_FOUND = 100
"""Items or namespaces that a server returns at once."""


def _put_item(view: ClientView[Any], given: model.Json) -> Plan[model.Item | None]:
    if given["value"] is None:
        yield from _delete_item(view, {name: given.get(name) for name in ("namespace", "key", "version", "user")})
        return None
    body = {**given, "namespace": split_path(check_namespace(given["namespace"]))}
    return decode_record(model.Item, (yield from send(view, f"PUT {ITEMS}", body)), view.owner)  # type: ignore[no-any-return]


def _get_item(view: ClientView[Any], given: model.Json) -> Plan[model.Item | None]:
    place = {**given, "namespace": check_namespace(given["namespace"])}
    try:
        answer = yield from send(view, f"GET {ITEMS}", place)
    except NotFound:
        return None
    return decode_record(model.Item, answer, view.owner)  # type: ignore[no-any-return]


def _get_items(view: ClientView[Any], given: model.Json) -> Plan[Sequence[model.Item | None]]:
    found = []
    for namespace, key in given.pop("places"):
        found.append((yield from _get_item(view, {**given, "namespace": namespace, "key": key})))
    return found


def _delete_item(view: ClientView[Any], given: model.Json) -> Plan[bool]:
    place = {**given, "namespace": check_namespace(given["namespace"])}
    try:
        yield from send(view, f"DELETE {ITEMS}", place)
    except NotFound:
        return False
    return True


def _search_items(view: ClientView[Any], given: model.Json) -> Plan[Sequence[model.Item]]:
    names = split_path(check_namespace(given.pop("prefix", ()), may_be_empty=True))
    found = yield from _read_pages(view, f"POST {ITEMS}/search", {**given, "namespace": names})
    return many(model.Item)({"items": found}, view.owner)  # type: ignore[no-any-return]


def _list_namespaces(view: ClientView[Any], given: model.Json) -> Plan[Sequence[tuple[str, ...]]]:
    paths = {name: check_namespace(given.get(name, ()), may_be_empty=True) for name in ("prefix", "suffix")}
    return [tuple(each) for each in (yield from _read_pages(view, f"GET {ITEMS}/namespaces", given | paths))]


def _read_pages(view: ClientView[Any], route: str, given: model.Json) -> Plan[list[model.Json]]:
    found: list[model.Json] = []
    limit, offset = check_limit(given["limit"], most=MAX_PAGE), given.get("offset", 0)
    while True:
        page = {**given, "limit": min(limit - len(found), MAX_FOUND), "offset": offset}
        answer = yield from send(view, route, page, is_repeatable=True)
        found += answer["items"]
        offset = answer["next_offset"]
        if offset is None or len(found) >= limit:
            return found


AGENT = "/api/agents/{agent}"
SESSIONS = "/api/chat/sessions"
USER_HEADER = "X-Wellkept-User"
VISIBLE = {True: "shown", False: "hidden", None: "all"}


def _remember_many(view: ClientView[Any], given: model.Json) -> Plan[Sequence[model.Memory]]:
    drafts = [{"text": each} if isinstance(each, str) else each for each in given["items"]]
    if not drafts:
        return []
    batch = {"items": drafts, "atomic": True, "records": True}
    return decode_batch((yield from send(view, f"POST {AGENT}/memories/batch", batch)), view.owner)


def _add(view: ClientView[Any], given: model.Json) -> Plan[model.AddedFacts]:
    answer = yield from send(view, f"POST {AGENT}/add", {**given, "records": True})
    added: model.AddedFacts = decode_record(model.AddedFacts, answer, view.owner)
    return replace(added, revert=_reverter(view))


def _reverter(view: ClientView[Any]) -> Callable[[str], object]:
    def revert(change: str) -> object:
        if not isinstance(view, AgentClient):
            raise Invalid("This result cannot be undone without waiting; use: await agent.changes.undo(result.change)")
        return view.changes.undo(change)

    return revert


def _forget(view: ClientView[Any], given: model.Json) -> Plan[model.Forgotten]:
    if (given.get("id") is None) == (given.get("about") is None):
        raise Invalid(NAME_ONE)
    if given.get("id") is not None:
        yield from send(view, f"DELETE {AGENT}/memories/{{id}}", {"id": given["id"]})
        return model.Forgotten()
    return decode_record(model.Forgotten, (yield from send(view, f"POST {AGENT}/forget", given)), view.owner)  # type: ignore[no-any-return]


def _restore(view: ClientView[Any], given: model.Json) -> Plan[Sequence[model.Memory]]:
    ids = given.get("ids")
    if isinstance(ids, str):
        given["ids"] = [ids]
    answer = yield from send(view, f"POST {AGENT}/memories/restore", given)
    restored = many(model.Memory)(answer, view.owner)
    # The answer has as many as fit into a page.
    for id in answer["ids"][len(restored) :]:
        found = yield from send(view, f"GET {AGENT}/memories/{{id}}", {"id": id})
        restored.append(decode_record(model.Memory, found, view.owner))
    return restored  # type: ignore[no-any-return]


def _similar(view: ClientView[Any], given: model.Json) -> Plan[Sequence[model.Memory]]:
    memory = given["memory"]
    id = memory.id if isinstance(memory, model.Memory) else memory
    return many(model.Memory)((yield from send(view, f"GET {AGENT}/memories/{{id}}/similar", {"id": id})), view.owner)  # type: ignore[no-any-return]


def _store_detail(view: ClientView[Any], given: model.Json) -> Plan[model.Detail]:
    whole = {**given, "content": "".join(iter_pieces(given["content"]))}
    answer = yield from send(view, f"POST {AGENT}/details", whole)
    return decode_record(model.Detail, answer, view.owner)  # type: ignore[no-any-return]


def _capture(decode: Callable[[model.Json, Any], Any]) -> Any:
    def plan(view: ClientView[Any], given: model.Json) -> Plan[Any]:
        output = given["output"]
        if hasattr(output, "read"):
            output = "".join(iter_pieces(output))
        return decode((yield from send(view, f"POST {AGENT}/capture", {**given, "output": output})), view.owner)

    return plan


_list_details = pages(f"GET {AGENT}/details", model.Detail, "details", names={"query": "q"})
_search_details = pages(f"GET {AGENT}/details", model.Detail, "found details", start="offset", names={"query": "q"})


def _list_details_from(view: ClientView[Any], given: model.Json) -> Plan[Sequence[model.Detail]]:
    given["visible"] = VISIBLE[given.pop("is_active", True)]
    if isinstance(given.get("before"), str):
        last = yield from send(view, f"GET {AGENT}/details/{{key}}/record", {"key": given["before"]})
        given["before"] = decode_record(model.Detail, last, view.owner).created_at, last["memory_key"]
    return (yield from _list_details(view, given))  # type: ignore[no-any-return]


def _search_details_from(view: ClientView[Any], given: model.Json) -> Plan[Sequence[model.Detail]]:
    # Without words, the server lists the newest.
    has_words = bool(str(given.get("query", "")).strip()) or bool(given.get("offset"))
    return (yield from (_search_details if has_words else _list_details)(view, given))  # type: ignore[no-any-return]


def _hide_detail(view: ClientView[Any], given: model.Json) -> Plan[model.Detail]:
    shown = {"key": given["key"], "is_active": not given.get("is_hidden", True)}
    answer = yield from send(view, f"PATCH {AGENT}/details/{{key}}", shown)
    return decode_record(model.Detail, answer, view.owner)  # type: ignore[no-any-return]


def _conversation(view: ClientView[Any], given: model.Json) -> Plan[model.Conversation]:
    route = f"POST {SESSIONS}/{{session_id}}/conversation?agent={{agent}}&records=true"
    if given["limit"] is not None:
        route += "&limit={limit}"
    data = yield from send(view, route, given, is_repeatable=True)
    return decode_record(model.Conversation, data, view.owner)  # type: ignore[no-any-return]


class ClientDetails(ClientView[C]):
    """Long texts of an agent on a server."""

    _embedded = (AgentDetails,)

    store = Verb(AgentDetails.store, _store_detail)
    read = Verb(AgentDetails.read, call(f"GET {AGENT}/details/{{key}}", one(model.DetailPage)))
    get = Verb(AgentDetails.get, call(f"GET {AGENT}/details/{{key}}/record", one(model.Detail)))
    list = Verb(AgentDetails.list, _list_details_from)
    search = Verb(AgentDetails.search, _search_details_from)
    capture = Verb(AgentDetails.capture, _capture(text))
    capture_output = Verb(AgentDetails.capture_output, _capture(one(model.Captured)))
    hide = Verb(AgentDetails.hide, _hide_detail)
    delete = Verb(AgentDetails.delete, call(f"DELETE {AGENT}/details/{{key}}"))


class ClientItems(ClientView[C]):
    """Key–value store of an agent on a server."""

    _embedded = (AgentItems,)

    put = Verb(AgentItems.put, _put_item)
    get = Verb(AgentItems.get, _get_item)
    get_many = Verb(AgentItems.get_many, _get_items)
    delete = Verb(AgentItems.delete, _delete_item)
    search = Verb(AgentItems.search, _search_items)
    namespaces = Verb(AgentItems.namespaces, _list_namespaces)


class ClientSessions(ClientView[C]):
    """Conversations of an agent on a server."""

    _embedded = (AgentSessions,)

    start = Verb(AgentSessions.start, call(f"POST {SESSIONS}", one(model.Session), also={"agent_id": "{agent}"}))
    list = Verb(AgentSessions.list, pages(f"GET {SESSIONS}?agent={{agent}}", model.Session, "sessions"))
    get = Verb(AgentSessions.get, call(f"GET {SESSIONS}/{{id}}?agent={{agent}}", one(model.Session)))
    messages = Verb(
        AgentSessions.messages,
        pages(f"GET {SESSIONS}/{{session_id}}/messages?agent={{agent}}", model.Message, "messages", start="after"),
    )
    conversation = Verb(AgentSessions.conversation, _conversation)
    delete = Verb(AgentSessions.delete, call(f"DELETE {SESSIONS}/{{id}}?agent={{agent}}"))


class ClientReview(ClientView[C]):
    """Memories of an agent on a server that await a decision."""

    _embedded = (AgentReview,)

    list = Verb(AgentReview.list, call(f"GET {AGENT}/review", many(model.Memory)))
    approve = Verb(AgentReview.approve, call(f"POST {AGENT}/memories/{{id}}/approve", one(model.Memory)))
    approve_workspace = Verb(AgentReview.approve_workspace, call(f"POST {AGENT}/workspace/approve", field("approved")))
    similar = Verb(AgentReview.similar, _similar)


class ClientChanges(ClientView[C]):
    """Changes of an agent's memories on a server."""

    _embedded = (AgentChanges,)

    list = Verb(AgentChanges.list, pages(f"GET {AGENT}/changes", model.Change, "changes"))
    get = Verb(AgentChanges.get, call(f"GET {AGENT}/changes/{{id}}", one(model.Change)))
    apply = Verb(AgentChanges.apply, call(f"POST {AGENT}/changes/{{id}}/apply", one(model.Change)))
    reject = Verb(AgentChanges.reject, call(f"POST {AGENT}/changes/{{id}}/reject", one(model.Change)))
    undo = Verb(AgentChanges.undo, call(f"POST {AGENT}/changes/{{id}}/undo", one(model.Change)))
    consolidate = Verb(AgentChanges.consolidate, call(f"POST {AGENT}/changes/consolidate", many(model.Change)))


class ClientPrompts(ClientView[C]):
    """Prompts of an agent on a server."""

    _embedded = (AgentPrompts,)

    list = Verb(AgentPrompts.list, pages(f"GET {AGENT}/context-calls", model.ContextCall, "context-calls"))
    get = Verb(AgentPrompts.get, call(f"GET {AGENT}/context-calls/{{id}}", one(model.ContextCall)))
    inject = Verb(AgentPrompts.inject, call(f"POST {AGENT}/inject", text, is_repeatable=True))
    recall_block = Verb(
        AgentPrompts.recall_block,
        call(f"POST {AGENT}/recall", field("block"), also={"block": True}, is_repeatable=True),
    )


class ClientAgentKnowledge(ClientView[C]):
    """Documents and skills that an agent on a server may read."""

    _embedded = (AgentKnowledge,)

    search = Verb(
        AgentKnowledge.search,
        call(
            "POST /api/kb/search",
            many(model.Hit, "hits"),
            also={"agent": "{agent}", "records": True},
            is_repeatable=True,
        ),
    )
    skills = Verb(AgentKnowledge.skills, call("GET /api/skills?agent={agent}", many(model.Skill)))


class AgentVerbs(ClientView[C]):
    """Verbs of one agent, by the routes that serve them."""

    _embedded = (AgentMemory,)

    remember = Verb(AgentMemory.remember, call(f"POST {AGENT}/memories", one(model.Memory)))
    remember_many = Verb(AgentMemory.remember_many, _remember_many)
    add = Verb(AgentMemory.add, _add)
    get = Verb(AgentMemory.get, call(f"GET {AGENT}/memories/{{id}}", one(model.Memory)))
    list = Verb(AgentMemory.list, pages(f"GET {AGENT}/memories", model.Memory, "memories", names={"query": "q"}))
    search = Verb(AgentMemory.search, pages(f"GET {AGENT}/memories", model.Memory, "memories", names={"query": "q"}))
    update = Verb(AgentMemory.update, call(f"PATCH {AGENT}/memories/{{id}}", one(model.Memory)))
    forget = Verb(AgentMemory.forget, _forget)
    profile = Verb(AgentMemory.profile, call(f"GET {AGENT}/profile", one(model.Profile)))
    history = Verb(AgentMemory.history, pages(f"GET {AGENT}/memories/{{id}}/history", model.MemoryVersion, "versions"))
    restore = Verb(AgentMemory.restore, _restore)
    recall = Verb(
        AgentMemory.recall, call(f"POST {AGENT}/recall", decode_recalled, also={"records": True}, is_repeatable=True)
    )
    explain = Verb(
        AgentMemory.explain,
        call(f"POST {AGENT}/explain", one(model.Explanation), also={"records": True}, is_repeatable=True),
    )
    private_memory = Verb(AgentMemory.private_memory, call(f"GET {AGENT}/private-memory", text))
    context = Verb(
        AgentMemory.context,
        call(f"POST {AGENT}/context", one(model.WorkingMemory), names={"session": "session_id"}, is_repeatable=True),
    )
    log_turn = Verb(
        AgentMemory.log_turn,
        call(f"POST {SESSIONS}/{{session_id}}/messages", many(model.Message), also={"agent_id": "{agent}"}),
    )
    tools = Verb(AgentMemory.tools, local(lambda sets=None, form="openai": catalog.render_tools(sets, form)))

    def for_user(self, user: str, *, shared: bool = True) -> Self:
        """Return this agent's memory as one end user has it, with what belongs to no user. Raises: Invalid."""
        if not shared:
            raise Invalid("A server always includes what belongs to no user; filter by `where` to leave it out.")
        # The server reads the header as UTF-8.
        headers = {**self._headers, USER_HEADER: check_user(user).encode()}
        return type(self)(self._connection, replace(self.owner, user=user), headers)

    details: Part[ClientDetails[C]] = Part(ClientDetails)
    items: Part[ClientItems[C]] = Part(ClientItems)
    sessions: Part[ClientSessions[C]] = Part(ClientSessions)
    review: Part[ClientReview[C]] = Part(ClientReview)
    changes: Part[ClientChanges[C]] = Part(ClientChanges)
    prompts: Part[ClientPrompts[C]] = Part(ClientPrompts)
    knowledge: Part[ClientAgentKnowledge[C]] = Part(ClientAgentKnowledge)


class AgentClient(AgentVerbs[PlainConnection]):
    """Memory of one agent on a server, with the verbs of `AgentMemory`."""

    def call_tool(
        self,
        name: RawText,
        arguments: Mapping[str, Any],
        *,
        session_id: str | None = None,
        sets: Collection[str] = catalog.SETS,
    ) -> model.Json:
        """Run one tool, like `AgentMemory.call_tool`: here, with requests for what it reads and writes."""
        user = None if session_id is None or USER_HEADER in self._headers else self._find_user(session_id)
        memory = self if user is None else self.for_user(user)
        return catalog.call(memory, name, arguments, session_id=session_id, sets=sets)

    def _find_user(self, session_id: str) -> str | None:
        """Return the user of a conversation, if it exists and has one."""
        try:
            return self.sessions.get(session_id).user
        except NotFound:
            return None


class AsyncAgentClient(AgentVerbs[AsyncConnection]):
    """Async version of `AgentClient`: the same verbs, awaited."""

    async def call_tool(
        self,
        name: RawText,
        arguments: Mapping[str, Any],
        *,
        session_id: str | None = None,
        sets: Collection[str] = catalog.SETS,
    ) -> model.Json:
        """Run one tool, like `AgentClient.call_tool`, in a thread with connections of its own."""
        connection = PlainConnection(self._connection.address)
        try:
            plain = AgentClient(connection, self.owner, self._headers)
            return await asyncio.to_thread(plain.call_tool, name, arguments, session_id=session_id, sets=sets)
        finally:
            connection.close()
