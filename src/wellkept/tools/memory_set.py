"""Tools of the set `memory`: remember, recall, forget, the profile, and reading what lies behind a reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wellkept.errors import Invalid
from wellkept.model import Json, Memory
from wellkept.tools.bounds import bound_results, render_text
from wellkept.tools.details import retrieve_memory
from wellkept.tools.memories import memory_store
from wellkept.tools.recall import DEFAULT_LIMIT, NOTHING_KEPT, search_my_memories

if TYPE_CHECKING:
    from wellkept.api.agent import AgentMemory

LISTED = 20
MAX_LISTED = 100
SIMILAR = (
    "It is stored, but the memories under similar say nearly the same. Remove with forget, by their ids, those that "
    "are wrong, outdated or double."
)
WHICH = (
    "Nothing was forgotten: it is not clear which are meant, or they cannot be hidden. Ask the user, then delete one "
    "for good by calling forget with its id."
)
NONE_MEANT = (
    "No fact and no note is clearly about this, so nothing was forgotten. If recall finds what is meant, call forget "
    "with its id."
)
HIDDEN = "They are hidden for 30 days, in which they can be restored, and then deleted."
LEFT = " The candidates are meant as well but cannot be hidden; delete one for good by calling forget with its id."
NO_PROFILE = "No facts are known about whom you ask for. Ask recall: it also knows what was said in passing."


def remember(memory: AgentMemory, text: str, tags: Sequence[str] = ()) -> Json:
    answer = memory_store(memory, text, tags)
    return {**answer, "hint": SIMILAR} if "similar" in answer else answer


def recall(memory: AgentMemory, query: str, limit: int = DEFAULT_LIMIT) -> Json:
    return search_my_memories(memory, query, limit)


def forget(memory: AgentMemory, id: str = "", about: str = "") -> Json:
    if bool(id) == bool(about):
        raise Invalid("Name what to forget once: by the id of one memory, or by a few words in about.")
    if id:
        memory.forget(id)
        return {"ok": True, "forgotten": [{"id": id}]}
    done = memory.forget(about=about)
    forgotten, candidates = ([_render(each) for each in found] for found in (done.forgotten, done.candidates))
    if not forgotten:
        return {"ok": False, "error": WHICH if candidates else NONE_MEANT, "candidates": bound_results(candidates)}
    answer: Json = {"ok": True, "forgotten": bound_results(forgotten), "note": HIDDEN}
    return {**answer, "candidates": bound_results(candidates), "note": HIDDEN + LEFT} if candidates else answer


def profile(memory: AgentMemory, subject: str = "") -> Json:
    facts = memory.profile(subject=subject or None).facts
    answer: Json = {"count": len(facts), "facts": bound_results([_render(each) for each in facts[:MAX_LISTED]])}
    return answer if facts else {**answer, "hint": NO_PROFILE}


def list_memories(memory: AgentMemory, limit: int = LISTED) -> Json:
    found = memory.list(limit=max(1, min(limit, MAX_LISTED)))
    listed = bound_results([{**_render(each), "kind": each.kind.value} for each in found])
    answer: Json = {"count": len(found), "memories": listed}
    return answer if found else {**answer, "hint": NOTHING_KEPT}


def read_detail(memory: AgentMemory, key: str, **part: Any) -> Json:
    return retrieve_memory(memory, memory_key=key, **part)


def _render(memory: Memory) -> Json:
    return {"id": memory.id, **render_text(memory.text, memory), "since": f"{memory.since:%Y-%m-%d}"}
