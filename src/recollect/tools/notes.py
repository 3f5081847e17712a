"""Tools for notes: short facts an agent keeps for later conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFound
from recollect.model import Json, Kind, Memory, Scope, ScopeName
from recollect.services.memories.similar import find_lookalikes
from recollect.tools.bounds import render_text
from recollect.tools.spec import WHERE, Parameter, Tool

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory

NO_AGENT = {"ok": False, "error": "There is no agent in this conversation, so there are no notes."}
SEARCH_LIMIT = 20
HINT = (
    "It is stored, but the facts under similar say nearly the same. Remove with memory_delete the ones that are wrong, "
    "outdated or double; next time, name the fact a new one replaces as supersedes."
)
NOT_FOUND = (
    "No fact holds exactly these words. Try one word of it, or leave the arguments out to see the newest facts. A "
    "question in your own words is for search_my_memories."
)


def memory_store(
    memory: AgentMemory | None,
    text: str,
    tags: Sequence[str] = (),
    scope: ScopeName = Scope.WORKSPACE,
    supersedes: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Json:
    if memory is None:
        return NO_AGENT
    note = memory.remember(
        text, tags=tags, scope=scope, origin="agent", supersedes=supersedes or None, metadata=metadata
    )
    stored: Json = {"ok": True, "id": note.id}
    similar = find_lookalikes(memory.similar, note)
    if similar:
        stored |= {"similar": [{"id": each.id, **render_text(each.text, each)} for each in similar], "hint": HINT}
    return stored


def memory_search(
    memory: AgentMemory | None, query: str = "", tag: str = "", session_id: str | None = None, where: str = ""
) -> Json:
    if memory is None:
        return NO_AGENT
    found = memory.search(query, tag=tag, kind=Kind.NOTE, session_id=session_id, where=where, limit=SEARCH_LIMIT)
    answer: Json = {"count": len(found), "memories": [_render(note) for note in found]}
    return answer if found or not (query or tag or session_id or where) else {**answer, "hint": NOT_FOUND}


def memory_delete(memory: AgentMemory | None, id: str) -> Json:
    if memory is None:
        return NO_AGENT
    # This tool deletes notes only; other kinds are answered as missing.
    if memory.get(id).kind is not Kind.NOTE:
        raise NotFound(f"There is no note {id}.")
    memory.forget(id)
    return {"ok": True}


def _render(note: Memory) -> Json:
    ts = note.created_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    more = {"metadata": dict(note.metadata)} if note.metadata else {}
    return {"id": note.id, **render_text(note.text, note), "tags": list(note.tags), "ts": ts, **more}


TOOLS = (
    Tool(
        name="memory_store",
        set="notes",
        title="Remember a fact",
        description=(
            "Keep one short, lasting fact about the user or the work, to be shown to you again in later conversations "
            "when it matters. Never store passwords, tokens or other secrets. A long text (a log, a file) belongs into "
            "store_memory."
        ),
        parameters={
            "text": Parameter(
                description="The fact, in one or two sentences (at most 500 characters).", is_required=True
            ),
            "tags": Parameter(description="Up to 5 words to sort it by, such as preference.", type="array"),
            "scope": Parameter(description="Whom or what it is about; workspace if not given.", choices=tuple(Scope)),
            "supersedes": Parameter(description="The id of the fact this one corrects or replaces, such as m-4."),
            "metadata": Parameter(
                description='Fields to filter by later, such as {"city": "Oslo", "stars": 4}.', type="object"
            ),
        },
        answer={"id": "string", "similar": "array", "hint": "string"},
        call=memory_store,
    ),
    Tool(
        name="memory_search",
        set="notes",
        title="Search facts",
        description=(
            "Find facts kept with memory_store: those whose text holds the query and that have the tag, newest first, "
            "20 at most. Without arguments: the newest 20."
        ),
        parameters={
            "query": Parameter(description="Words that occur in the fact exactly like this; case does not matter."),
            "tag": Parameter(description="Only facts with this tag."),
            "where": WHERE,
            "session_id": Parameter(description="Only facts of this conversation."),
        },
        answer={"count": "integer", "memories": "array", "hint": "string"},
        call=memory_search,
        is_read_only=True,
        is_idempotent=True,
    ),
    Tool(
        name="memory_delete",
        set="notes",
        title="Forget a fact",
        description="Delete one fact that is wrong or outdated, by the id shown with it (such as m-4).",
        parameters={"id": Parameter(description="The fact's id, such as m-4.", is_required=True)},
        answer={},
        call=memory_delete,
        is_destructive=True,
        is_idempotent=True,
    ),
)
