"""Tools that look after an agent's memories: facts of conversations, and what is no longer used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.model import Fact, Json
from recollect.services.memories.fact_requests import parse_conversation, parse_steps
from recollect.tools.bounds import bound_results, render_text
from recollect.tools.recall import FILTERS
from recollect.tools.spec import Parameter, Tool

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory

NO_AGENT = {"ok": False, "error": "There is no agent in this conversation, so there is nothing to restore."}
GONE = ("archived", "expired")
PAGE = 20

STATE = Parameter(description="archived: put away by maintenance; expired: past their end.", choices=GONE)


def memory_list(
    memory: AgentMemory | None, state: Any = GONE[0], query: str = "", before: str | None = None, **filters: Any
) -> Json:
    if memory is None:
        return NO_AGENT
    found = memory.list(state=state, query=query, before=before or None, limit=PAGE, **filters)
    listed = [{"id": each.id, "kind": each.kind.value, **render_text(each.text, each)} for each in found]
    answer: Json = {"count": len(found), "memories": bound_results(listed)}
    return answer | {"before": found[-1].id} if len(found) == PAGE else answer


def memory_restore(memory: AgentMemory | None, ids: Sequence[str] | None = None, **filters: Any) -> Json:
    if memory is None:
        return NO_AGENT
    restored = memory.restore(ids, **filters)
    return {"ok": True, "restored": len(restored), "ids": [each.id for each in restored[:PAGE]]}


def memory_add(
    memory: AgentMemory | None, conversation: str, session_id: str | None = None, dry_run: bool = False
) -> Json:
    if memory is None:
        return NO_AGENT
    result = memory.add(parse_conversation(conversation), session_id=session_id, dry_run=dry_run)
    changes = {name: getattr(result, name) for name in ("added", "updated", "superseded")}
    answer: Json = {"ok": True, **{name: bound_results([_render(each) for each in changes[name]]) for name in changes}}
    dropped = [{"text": each.text, "reason": each.reason} for each in result.dropped[:PAGE]]
    undo = [f"{step.change}:{step.id}:{step.version}" for step in result.steps]
    return answer | {"dropped": bound_results(dropped), "undo": undo}


def memory_undo_add(memory: AgentMemory | None, undo: Sequence[str]) -> Json:
    if memory is None:
        return NO_AGENT
    return {"ok": True, "undone": memory.undo_add(parse_steps(undo))}


def _render(fact: Fact) -> Json:
    rendered: Json = {"id": fact.id, "turn": fact.turn, **render_text(fact.text, fact.memory)}
    return rendered if fact.replaces is None else {**rendered, "replaces": fact.replaces}


TOOLS = (
    Tool(
        name="memory_list",
        set="admin",
        title="List memories no longer used",
        description=(
            "List memories that are archived or have expired, newest first, 20 at a time. They are kept, but not "
            "recalled until memory_restore brings them back."
        ),
        parameters={
            "state": STATE,
            "query": Parameter(description="Words that occur in the text exactly like this; case does not matter."),
            **FILTERS,
            "before": Parameter(description="The `before` of the previous answer, to see the next page."),
        },
        answer={"count": "integer", "memories": "array", "before": "string"},
        call=memory_list,
        is_read_only=True,
        is_idempotent=True,
    ),
    Tool(
        name="memory_restore",
        set="admin",
        title="Restore memories",
        description=(
            "Bring archived or expired memories back into use: those with the ids, or all in a state that have the "
            "kind, tag and conversation. The answer names the first 20."
        ),
        parameters={
            "ids": Parameter(description="Ids such as m-7; leave the other arguments out.", type="array"),
            "state": STATE,
            **FILTERS,
        },
        answer={"restored": "integer", "ids": "array"},
        call=memory_restore,
        is_idempotent=True,
    ),
    Tool(
        name="memory_add",
        set="admin",
        title="Remember a conversation's facts",
        description=(
            "Read a conversation and keep its lasting facts, preferences, decisions and promises; questions, small "
            "talk and what is known already are left out. The answer's `undo` reverts it with memory_undo_add."
        ),
        parameters={
            "conversation": Parameter(
                description="Its messages, each on a line that begins with user: or assistant:.", is_required=True
            ),
            "session_id": Parameter(description="The id of the conversation, if it has one."),
            "dry_run": Parameter(description="true: only show what would be kept.", type="boolean"),
        },
        answer={"added": "array", "updated": "array", "superseded": "array", "dropped": "array", "undo": "array"},
        call=memory_add,
        is_idempotent=True,
        session_argument="session_id",
    ),
    Tool(
        name="memory_undo_add",
        set="admin",
        title="Undo memory_add",
        description="Undo one memory_add: delete what it added and restore what it changed, if nothing changed since.",
        parameters={
            "undo": Parameter(description="The `undo` of memory_add's answer.", type="array", is_required=True)
        },
        answer={"undone": "integer"},
        call=memory_undo_add,
        is_destructive=True,
    ),
)
