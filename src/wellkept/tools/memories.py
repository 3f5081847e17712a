"""Tools for memories: notes, the journal and the core, facts of conversations, and what is no longer used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wellkept.errors import Invalid, NotFound, SecretRejected
from wellkept.facts.requests import parse_conversation
from wellkept.memory.remember import find_lookalikes
from wellkept.model import Change, ChangeState, FoundFact, Json, Kind, Memory, Scope, ScopeName
from wellkept.tools.bounds import bound_results, render_secret_refusal, render_text

if TYPE_CHECKING:
    from wellkept.api.agent import AgentMemory

SEARCH_LIMIT = 20
PAGE = 20
HINT = (
    "It is stored, but the facts under similar say nearly the same. Remove with memory_delete the ones that are wrong, "
    "outdated or double; next time, name the fact a new one replaces as supersedes."
)
NOT_FOUND = (
    "No fact holds exactly these words. Try one word of it, or leave the arguments out to see the newest facts. A "
    "question in your own words is for search_my_memories."
)


def memory_store(
    memory: AgentMemory,
    text: str,
    tags: Sequence[str] = (),
    scope: ScopeName = Scope.WORKSPACE,
    supersedes: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Json:
    note = memory.remember(
        text, tags=tags, scope=scope, origin="agent", supersedes=supersedes or None, metadata=metadata
    )
    stored: Json = {"ok": True, "id": note.id}
    similar = find_lookalikes(memory.review.similar, note)
    if similar:
        stored |= {"similar": [{"id": each.id, **render_text(each.text, each)} for each in similar], "hint": HINT}
    return stored


def memory_search(
    memory: AgentMemory, query: str = "", tag: str = "", session_id: str | None = None, where: str = ""
) -> Json:
    found = memory.search(query, tag=tag, kind=Kind.NOTE, session_id=session_id, where=where, limit=SEARCH_LIMIT)
    answer: Json = {"count": len(found), "memories": [_render(note) for note in found]}
    return answer if found or not (query or tag or session_id or where) else {**answer, "hint": NOT_FOUND}


def memory_delete(memory: AgentMemory, id: str) -> Json:
    # This tool deletes notes only; other kinds are answered as missing.
    if memory.get(id).kind is not Kind.NOTE:
        raise NotFound(f"There is no note {id}.")
    memory.forget(id)
    return {"ok": True}


def _render(note: Memory) -> Json:
    ts = note.created_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    more = {"metadata": dict(note.metadata)} if note.metadata else {}
    return {"id": note.id, **render_text(note.text, note), "tags": list(note.tags), "ts": ts, **more}


def save_to_journal(memory: AgentMemory, content: str) -> Json:
    return _save(memory, content, Kind.JOURNAL, lambda entry: {"expires_around": f"{entry.expires_at:%Y-%m-%d}"})


def save_to_core(memory: AgentMemory, content: str) -> Json:
    return _save(memory, content, Kind.CORE, lambda _: {"note": "This memory is now part of your permanent identity"})


def _save(memory: AgentMemory, content: str, kind: Kind, extra_fields: Callable[[Memory], Json]) -> Json:
    try:
        entry = memory.remember(content, kind=kind, origin="agent")
    except SecretRejected as refusal:
        return render_secret_refusal(refusal)
    except Invalid as refusal:
        return {"error": str(refusal)}
    return {"success": True, "memory_type": entry.kind.value, "content": entry.text, **extra_fields(entry)}


def memory_list(
    memory: AgentMemory, state: Any = "archived", query: str = "", before: str | None = None, **filters: Any
) -> Json:
    found = memory.list(state=state, query=query, before=before or None, limit=PAGE, **filters)
    listed = [{"id": each.id, "kind": each.kind.value, **render_text(each.text, each)} for each in found]
    answer: Json = {"count": len(found), "memories": bound_results(listed)}
    return answer | {"before": found[-1].id} if len(found) == PAGE else answer


def memory_restore(memory: AgentMemory, ids: Sequence[str] | None = None, **filters: Any) -> Json:
    restored = memory.restore(ids, **filters)
    return {"ok": True, "restored": len(restored), "ids": [each.id for each in restored[:PAGE]]}


def memory_add(memory: AgentMemory, conversation: str, session_id: str | None = None, dry_run: bool = False) -> Json:
    result = memory.add(parse_conversation(conversation), session_id=session_id, dry_run=dry_run)
    changes = {name: getattr(result, name) for name in ("added", "updated", "superseded")}
    answer: Json = {
        "ok": True,
        **{name: bound_results([_render_fact(each) for each in changes[name]]) for name in changes},
    }
    dropped = [{"text": each.text, "reason": each.reason} for each in result.dropped[:PAGE]]
    change = {} if result.change is None else {"change": result.change}
    return answer | {"dropped": bound_results(dropped), **change}


def memory_changes(memory: AgentMemory, state: str = ChangeState.PROPOSED, before: str | None = None) -> Json:
    found = memory.changes.list(state=state, before=before or None, limit=PAGE)
    answer: Json = {"count": len(found), "changes": bound_results([_render_change(each) for each in found])}
    return answer | {"before": found[-1].id} if len(found) == PAGE else answer


def memory_decide(memory: AgentMemory, id: str, decision: str) -> Json:
    decide = {"apply": memory.changes.apply, "reject": memory.changes.reject, "undo": memory.changes.undo}
    return {"ok": True, **_render_change(decide[decision](id))}


def _render_change(change: Change) -> Json:
    lines = [f"{each.action.value} {each.id}: {each.text}" for each in change.memories[:PAGE]]
    return {"id": change.id, "state": change.state.value, "reason": change.reason, **render_text("\n".join(lines))}


def _render_fact(fact: FoundFact) -> Json:
    rendered: Json = {"id": fact.id, "turn": fact.turn, **render_text(fact.text, fact.memory)}
    return rendered if fact.replaces is None else {**rendered, "replaces": fact.replaces}
