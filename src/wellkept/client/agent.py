"""`AgentClient` and `AsyncAgentClient`: the verbs of one agent, on a server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Self

from wellkept.api.agent import AgentMemory
from wellkept.api.agent_records import NAME_ONE
from wellkept.arguments import RawText
from wellkept.client import items
from wellkept.client.connection import Plan
from wellkept.client.decoding import (
    decode_batch,
    decode_hits,
    decode_recalled,
    decode_record,
    field,
    many,
    one,
)
from wellkept.client.verbs import AsyncView, ClientView, PlainView, Verb, call, local, pages, send, text
from wellkept.details.capturing import captured
from wellkept.details.pieces import iter_pieces
from wellkept.errors import Invalid, NotFound
from wellkept.language.names import check_user
from wellkept.memory.fact_requests import check_steps
from wellkept.model import (
    AddedFacts,
    Captured,
    ContextCall,
    Conversation,
    Detail,
    DetailPage,
    Explanation,
    FactStep,
    Forgotten,
    Json,
    Memory,
    MemoryVersion,
    Message,
    Profile,
    Proposal,
    Session,
    Skill,
    WorkingMemory,
)
from wellkept.tools import catalog
from wellkept.tools.guidance import guidance

AGENT = "/api/agents/{agent}"
SESSIONS = "/api/chat/sessions"
USER_HEADER = "X-Wellkept-User"
VISIBLE = {True: "shown", False: "hidden", None: "all"}


def _remember_many(view: ClientView, given: Json) -> Plan[Sequence[Memory]]:
    drafts = [{"text": each} if isinstance(each, str) else each for each in given["items"]]
    if not drafts:
        return []
    batch = {"items": drafts, "atomic": True, "records": True}
    return decode_batch((yield from send(view, f"POST {AGENT}/memories/batch", batch)), view.owner)


def _add(view: ClientView, given: Json) -> Plan[AddedFacts]:
    answer = yield from send(view, f"POST {AGENT}/add", {**given, "records": True})
    added: AddedFacts = decode_record(AddedFacts, answer, view.owner)
    return replace(added, revert=_reverter(view))


def _reverter(view: ClientView) -> Callable[[Sequence[FactStep]], None]:
    def revert(steps: Sequence[FactStep]) -> None:
        if not isinstance(view, AgentClient):
            raise Invalid("This result cannot be undone without waiting; use: await agent.undo_add(result)")
        view.undo_add(steps)

    return revert


def _undo_add(view: ClientView, given: Json) -> Plan[int]:
    steps = {"undo": [asdict(each) for each in check_steps(given["steps"])]}
    return (yield from send(view, f"POST {AGENT}/add/undo", steps))["undone"]  # type: ignore[no-any-return]


def _forget(view: ClientView, given: Json) -> Plan[Forgotten]:
    if (given.get("id") is None) == (given.get("about") is None):
        raise Invalid(NAME_ONE)
    if given.get("id") is not None:
        yield from send(view, f"DELETE {AGENT}/memories/{{id}}", {"id": given["id"]})
        return Forgotten()
    return decode_record(Forgotten, (yield from send(view, f"POST {AGENT}/forget", given)), view.owner)  # type: ignore[no-any-return]


def _restore(view: ClientView, given: Json) -> Plan[Sequence[Memory]]:
    ids = given.get("ids")
    if isinstance(ids, str):
        given["ids"] = [ids]
    answer = yield from send(view, f"POST {AGENT}/memories/restore", given)
    restored = many(Memory)(answer, view.owner)
    # The answer has as many as fit into a page.
    for id in answer["ids"][len(restored) :]:
        found = yield from send(view, f"GET {AGENT}/memories/{{id}}", {"id": id})
        restored.append(decode_record(Memory, found, view.owner))
    return restored  # type: ignore[no-any-return]


def _similar(view: ClientView, given: Json) -> Plan[Sequence[Memory]]:
    memory = given["memory"]
    id = memory.id if isinstance(memory, Memory) else memory
    return many(Memory)((yield from send(view, f"GET {AGENT}/memories/{{id}}/similar", {"id": id})), view.owner)  # type: ignore[no-any-return]


def _store_detail(view: ClientView, given: Json) -> Plan[Detail]:
    whole = {**given, "content": "".join(iter_pieces(given["content"]))}
    answer = yield from send(view, f"POST {AGENT}/details", whole)
    return decode_record(Detail, answer, view.owner)  # type: ignore[no-any-return]


def _capture(decode: Callable[[Json, Any], Any]) -> Any:
    def plan(view: ClientView, given: Json) -> Plan[Any]:
        output = given["output"]
        if hasattr(output, "read"):
            output = "".join(iter_pieces(output))
        return decode((yield from send(view, f"POST {AGENT}/capture", {**given, "output": output})), view.owner)

    return plan


_list_details = pages(f"GET {AGENT}/details", Detail, "details", names={"query": "q"})
_search_details = pages(f"GET {AGENT}/details", Detail, "found details", start="offset", names={"query": "q"})


def _list_details_from(view: ClientView, given: Json) -> Plan[Sequence[Detail]]:
    given["visible"] = VISIBLE[given.pop("is_active", True)]
    if isinstance(given.get("before"), str):
        last = yield from send(view, f"GET {AGENT}/details/{{key}}/record", {"key": given["before"]})
        given["before"] = decode_record(Detail, last, view.owner).created_at, last["memory_key"]
    return (yield from _list_details(view, given))  # type: ignore[no-any-return]


def _search_details_from(view: ClientView, given: Json) -> Plan[Sequence[Detail]]:
    # Without words, the server lists the newest.
    has_words = bool(str(given.get("query", "")).strip()) or bool(given.get("offset"))
    return (yield from (_search_details if has_words else _list_details)(view, given))  # type: ignore[no-any-return]


def _hide_detail(view: ClientView, given: Json) -> Plan[Detail]:
    shown = {"key": given["key"], "is_active": not given.get("is_hidden", True)}
    answer = yield from send(view, f"PATCH {AGENT}/details/{{key}}", shown)
    return decode_record(Detail, answer, view.owner)  # type: ignore[no-any-return]


def _conversation(view: ClientView, given: Json) -> Plan[Conversation]:
    route = f"POST {SESSIONS}/{{session_id}}/conversation?agent={{agent}}&records=true"
    if given["limit"] is not None:
        route += "&limit={limit}"
    data = yield from send(view, route, given, is_repeatable=True)
    return decode_record(Conversation, data, view.owner)  # type: ignore[no-any-return]


class AgentVerbs(ClientView):
    """Verbs of one agent, by the routes that serve them."""

    _embedded = (AgentMemory,)

    remember = Verb(AgentMemory.remember, call(f"POST {AGENT}/memories", one(Memory)))
    remember_many = Verb(AgentMemory.remember_many, _remember_many)
    add = Verb(AgentMemory.add, _add)
    undo_add = Verb(AgentMemory.undo_add, _undo_add)
    get = Verb(AgentMemory.get, call(f"GET {AGENT}/memories/{{id}}", one(Memory)))
    list = Verb(AgentMemory.list, pages(f"GET {AGENT}/memories", Memory, "memories", names={"query": "q"}))
    search = Verb(AgentMemory.search, pages(f"GET {AGENT}/memories", Memory, "memories", names={"query": "q"}))
    similar = Verb(AgentMemory.similar, _similar)
    update = Verb(AgentMemory.update, call(f"PATCH {AGENT}/memories/{{id}}", one(Memory)))
    forget = Verb(AgentMemory.forget, _forget)
    profile = Verb(AgentMemory.profile, call(f"GET {AGENT}/profile", one(Profile)))
    history = Verb(AgentMemory.history, pages(f"GET {AGENT}/memories/{{id}}/history", MemoryVersion, "versions"))
    review = Verb(AgentMemory.review, call(f"GET {AGENT}/review", many(Memory)))
    approve = Verb(AgentMemory.approve, call(f"POST {AGENT}/memories/{{id}}/approve", one(Memory)))
    approve_workspace = Verb(AgentMemory.approve_workspace, call(f"POST {AGENT}/workspace/approve", field("approved")))
    restore = Verb(AgentMemory.restore, _restore)
    recall = Verb(
        AgentMemory.recall, call(f"POST {AGENT}/recall", decode_recalled, also={"records": True}, is_repeatable=True)
    )
    recall_block = Verb(
        AgentMemory.recall_block,
        call(f"POST {AGENT}/recall", field("block"), also={"block": True}, is_repeatable=True),
    )
    explain = Verb(
        AgentMemory.explain,
        call(f"POST {AGENT}/explain", one(Explanation), also={"records": True}, is_repeatable=True),
    )
    inject = Verb(AgentMemory.inject, call(f"POST {AGENT}/inject", text, is_repeatable=True))
    private_memory = Verb(AgentMemory.private_memory, call(f"GET {AGENT}/private-memory", text))
    context = Verb(
        AgentMemory.context,
        call(f"POST {AGENT}/context", one(WorkingMemory), names={"session": "session_id"}, is_repeatable=True),
    )
    context_calls = Verb(AgentMemory.context_calls, pages(f"GET {AGENT}/context-calls", ContextCall, "context-calls"))
    context_call = Verb(AgentMemory.context_call, call(f"GET {AGENT}/context-calls/{{id}}", one(ContextCall)))
    log_turn = Verb(
        AgentMemory.log_turn,
        call(f"POST {SESSIONS}/{{session_id}}/messages", many(Message), also={"agent_id": "{agent}"}),
    )
    conversation = Verb(AgentMemory.conversation, _conversation)
    add_session = Verb(AgentMemory.add_session, call(f"POST {SESSIONS}", one(Session), also={"agent_id": "{agent}"}))
    sessions = Verb(AgentMemory.sessions, pages(f"GET {SESSIONS}?agent={{agent}}", Session, "sessions"))
    session = Verb(AgentMemory.session, call(f"GET {SESSIONS}/{{id}}?agent={{agent}}", one(Session)))
    messages = Verb(
        AgentMemory.messages,
        pages(f"GET {SESSIONS}/{{session_id}}/messages?agent={{agent}}", Message, "messages", start="after"),
    )
    delete_session = Verb(AgentMemory.delete_session, call(f"DELETE {SESSIONS}/{{id}}?agent={{agent}}"))
    store_detail = Verb(AgentMemory.store_detail, _store_detail)
    read_detail = Verb(AgentMemory.read_detail, call(f"GET {AGENT}/details/{{key}}", one(DetailPage)))
    search_details = Verb(AgentMemory.search_details, _search_details_from)
    list_details = Verb(AgentMemory.list_details, _list_details_from)
    get_detail = Verb(AgentMemory.get_detail, call(f"GET {AGENT}/details/{{key}}/record", one(Detail)))
    hide_detail = Verb(AgentMemory.hide_detail, _hide_detail)
    delete_detail = Verb(AgentMemory.delete_detail, call(f"DELETE {AGENT}/details/{{key}}"))
    capture = Verb(AgentMemory.capture, _capture(text))
    capture_output = Verb(AgentMemory.capture_output, _capture(one(Captured)))
    put = Verb(AgentMemory.put, items.put)
    get_item = Verb(AgentMemory.get_item, items.get_item)
    get_items = Verb(AgentMemory.get_items, items.get_items)
    delete_item = Verb(AgentMemory.delete_item, items.delete_item)
    search_items = Verb(AgentMemory.search_items, items.search_items)
    namespaces = Verb(AgentMemory.namespaces, items.namespaces)
    skills = Verb(AgentMemory.skills, call("GET /api/skills?agent={agent}", many(Skill)))
    search_knowledge = Verb(
        AgentMemory.search_knowledge,
        call("POST /api/kb/search", decode_hits, also={"agent": "{agent}", "records": True}, is_repeatable=True),
    )
    consolidate = Verb(AgentMemory.consolidate, call(f"POST {AGENT}/consolidate", many(Proposal)))
    proposals = Verb(AgentMemory.proposals, pages(f"GET {AGENT}/proposals", Proposal, "proposals"))
    apply_proposal = Verb(AgentMemory.apply_proposal, call(f"POST {AGENT}/proposals/{{id}}/apply", one(Proposal)))
    reject_proposal = Verb(AgentMemory.reject_proposal, call(f"POST {AGENT}/proposals/{{id}}/reject", one(Proposal)))
    undo_proposal = Verb(AgentMemory.undo_proposal, call(f"POST {AGENT}/proposals/{{id}}/undo", one(Proposal)))

    guidance = Verb(
        AgentMemory.guidance,
        local(lambda sets=None: guidance(dict.fromkeys(tool.set for tool in catalog.select_tools(sets)))),
    )
    tools = Verb(AgentMemory.tools, local(lambda sets=None, form="openai": catalog.render_tools(sets, form)))

    def for_user(self, user: str, *, shared: bool = True) -> Self:
        """Return this agent's memory as one end user has it, with what belongs to no user. Raises: Invalid."""
        if not shared:
            raise Invalid("A server always includes what belongs to no user; filter by `where` to leave it out.")
        # The server reads the header as UTF-8.
        headers = {**self._headers, USER_HEADER: check_user(user).encode()}
        return type(self)(self._connection, replace(self.owner, user=user), headers)

    def captured(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Decorate a tool function so that its output is captured: `wellkept.captured` for this agent."""
        return captured(self, **options) if function is None else captured(self, **options)(function)


class AgentClient(AgentVerbs, PlainView):
    """Memory of one agent on a server, with the verbs of `AgentMemory`."""

    def call_tool(
        self,
        name: RawText,
        arguments: Mapping[str, Any],
        *,
        session_id: str | None = None,
        sets: Collection[str] = catalog.SETS,
    ) -> Json:
        """Run one tool, like `AgentMemory.call_tool`: here, with requests for what it reads and writes."""
        user = None if session_id is None or USER_HEADER in self._headers else self._find_user(session_id)
        memory = self if user is None else self.for_user(user)
        return catalog.call(memory, name, arguments, session_id=session_id, sets=sets)

    def _find_user(self, session_id: str) -> str | None:
        """Return the user of a conversation, if it exists and has one."""
        try:
            return self.session(session_id).user
        except NotFound:
            return None


class AsyncAgentClient(AgentVerbs, AsyncView):
    """Async version of `AgentClient`: the same verbs, awaited."""
