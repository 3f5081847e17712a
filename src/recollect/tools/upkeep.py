"""Tools that look after an agent's memories: see what is no longer used, and restore it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.model import Json
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
)
