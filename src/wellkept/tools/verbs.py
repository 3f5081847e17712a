"""Functions of the tools, by name, and limits on the length of their answers, so that they fit a prompt."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wellkept.details.rules_keys import REFERENCE, reference, safe_cut
from wellkept.errors import Invalid, NotFound, SecretRejected
from wellkept.facts.requests import parse_conversation
from wellkept.memory.remember import find_lookalikes
from wellkept.memory.rules_importance import is_small_talk
from wellkept.memory.rules_items import join_names
from wellkept.memory.rules_trust import is_low, is_suspicious
from wellkept.model import (
    NOTHING_FITS,
    Change,
    ChangeState,
    Detail,
    FoundFact,
    Hit,
    Item,
    Json,
    Kind,
    KindName,
    Memory,
    Scope,
    ScopeName,
)
from wellkept.prompt.rules_escaping import escape_data
from wellkept.recall.rules_ranking import is_unverified

if TYPE_CHECKING:
    from wellkept.api.agent import AgentMemory

MAX_CHARS = 20_000
"""Characters of the texts in one answer: about 5,000 tokens."""

CUT = "…"


def shorten(text: str, most: int = MAX_CHARS) -> str:
    """Cut `text` to at most `most` characters without splitting a reference.

    >>> shorten("a long story", 7)
    'a long…'
    """
    return text if len(text) <= most else text[: safe_cut(text, most - len(CUT))].rstrip() + CUT


def render_text(text: str, memory: Memory | None = None) -> Json:
    """Return the text of a result for a model, with the origin of a memory of low trust."""
    result: Json = {"text": escape_data(text)}
    if memory is not None and is_low(memory.origin):
        result["origin"] = memory.origin.value
        if is_suspicious(memory):
            result["unverified"] = True
    return result


def bound_results(results: Sequence[Json]) -> list[Json]:
    """Cut the texts of search results so that together they fit one answer.

    Each text longer than an equal share is cut and gets `total`, its full length in characters.
    """
    if sum(len(each["text"]) for each in results) <= MAX_CHARS:
        return list(results)
    share = MAX_CHARS // len(results)
    return [
        {**each, "text": shorten(each["text"], share), "total": len(each["text"])}
        if len(each["text"]) > share
        else each
        for each in results
    ]


WITHOUT_SECRET = "Store the text without the secret. If there is none in it, tell the user, who can allow it."


def render_secret_refusal(refusal: SecretRejected) -> Json:
    """Return the error for a text with a secret; the hint names the rule that found it and what to do."""
    matched = f"It matches the rule {refusal.rule}. " if refusal.rule else ""
    return {"error": refusal.sentence, "hint": f"{matched}{WITHOUT_SECRET}"}


LISTED = 20
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
    found = memory.search(query, tag=tag, kind=Kind.NOTE, session_id=session_id, where=where, limit=LISTED)
    answer: Json = {"count": len(found), "memories": [_render_note(note) for note in found]}
    return answer if found or not (query or tag or session_id or where) else {**answer, "hint": NOT_FOUND}


def memory_delete(memory: AgentMemory, id: str) -> Json:
    # This tool deletes notes only; other kinds are answered as missing.
    if memory.get(id).kind is not Kind.NOTE:
        raise NotFound(f"There is no note {id}.")
    memory.forget(id)
    return {"ok": True}


def _render_note(note: Memory) -> Json:
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
    found = memory.list(state=state, query=query, before=before or None, limit=LISTED, **filters)
    listed = [{"id": each.id, "kind": each.kind.value, **render_text(each.text, each)} for each in found]
    answer: Json = {"count": len(found), "memories": bound_results(listed)}
    return answer | {"before": found[-1].id} if len(found) == LISTED else answer


def memory_restore(memory: AgentMemory, ids: Sequence[str] | None = None, **filters: Any) -> Json:
    restored = memory.restore(ids, **filters)
    return {"ok": True, "restored": len(restored), "ids": [each.id for each in restored[:LISTED]]}


def memory_add(memory: AgentMemory, conversation: str, session_id: str | None = None, dry_run: bool = False) -> Json:
    result = memory.add(parse_conversation(conversation), session_id=session_id, dry_run=dry_run)
    changes = {name: getattr(result, name) for name in ("added", "updated", "superseded")}
    answer: Json = {
        "ok": True,
        **{name: bound_results([_render_added(each) for each in changes[name]]) for name in changes},
    }
    dropped = [{"text": each.text, "reason": each.reason} for each in result.dropped[:LISTED]]
    change = {} if result.change is None else {"change": result.change}
    return answer | {"dropped": bound_results(dropped), **change}


def memory_changes(memory: AgentMemory, state: str = ChangeState.PROPOSED, before: str | None = None) -> Json:
    found = memory.changes.list(state=state, before=before or None, limit=LISTED)
    answer: Json = {"count": len(found), "changes": bound_results([_render_change(each) for each in found])}
    return answer | {"before": found[-1].id} if len(found) == LISTED else answer


def memory_decide(memory: AgentMemory, id: str, decision: str) -> Json:
    decide = {"apply": memory.changes.apply, "reject": memory.changes.reject, "undo": memory.changes.undo}
    return {"ok": True, **_render_change(decide[decision](id))}


def _render_change(change: Change) -> Json:
    lines = [f"{each.action.value} {each.id}: {each.text}" for each in change.memories[:LISTED]]
    return {"id": change.id, "state": change.state.value, "reason": change.reason, **render_text("\n".join(lines))}


def _render_added(fact: FoundFact) -> Json:
    rendered: Json = {"id": fact.id, "turn": fact.turn, **render_text(fact.text, fact.memory)}
    return rendered if fact.replaces is None else {**rendered, "replaces": fact.replaces}


NOTHING_PASSES = (
    "Nothing passes these restrictions, which does not mean that nothing is known. Ask with fewer of them; without any "
    "you get what comes nearest."
)
NO_QUESTION = "This is small talk, for which nothing is looked up. Ask what you want to know, in a sentence."
NOTHING_KEPT = "Nothing has been kept yet, so there is nothing to find. Go on without it."
WEAK = (
    f"{NOTHING_FITS} Use one only if it answers the question; if none does, ask in other words, or say that you do not "
    "know."
)
DEFAULT_LIMIT = 5
MAX_LIMIT = 20


def search_my_memories(
    memory: AgentMemory,
    query: str,
    limit: int = DEFAULT_LIMIT,
    purpose: str | None = None,
    min_relevance: float | None = None,
    kind: KindName | None = None,
    tag: str = "",
    session_id: str | None = None,
    where: str = "",
) -> Json:
    hits = memory.recall(
        query,
        limit=max(1, min(limit, MAX_LIMIT)),
        kinds=None if kind is None else [kind],
        purpose=purpose,
        min_relevance=min_relevance,
        tag=tag,
        session_id=session_id,
        where=where,
    )
    answer: Json = {"count": len(hits), "results": bound_results([_render_hit(hit) for hit in hits])}
    if hits and all(hit.weak for hit in hits):
        answer = {"note": WEAK, **answer}
    if hits.heading:
        answer = {"heading": hits.heading, **answer}
    if not hits:
        is_narrow = any((purpose, min_relevance, kind, tag, session_id, where))
        answer["hint"] = NOTHING_PASSES if is_narrow else NO_QUESTION if is_small_talk(query) else NOTHING_KEPT
    if hits.unanswered:
        answer["missing"] = [{"source": each.source, "reason": each.reason} for each in hits.unanswered]
    return answer


def _render_hit(hit: Hit) -> Json:
    when = hit.created_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    result = render_text(hit.text, hit.memory)
    if is_unverified(hit):
        result["unverified"] = True
    if hit.document is not None:
        result |= {"title": hit.title, **({"page": hit.page} if hit.page else {})}
    if hit.weak:
        result["weak"] = True
    rated = {"score": round(hit.score, 3), "relevance": round(hit.relevance, 3)}
    return {"source": hit.source.value, "id": hit.id, **result, **rated, "when": when}


def search_knowledge(
    memory: AgentMemory,
    query: str,
    categories: Sequence[str] = (),
    limit: int = DEFAULT_LIMIT,
    min_relevance: float | None = None,
    where: str = "",
) -> Json:
    limit = max(1, min(limit, MAX_LIMIT))
    hits = memory.knowledge.search(query, categories=categories, limit=limit, min_relevance=min_relevance, where=where)
    answer: Json = {"count": len(hits), "results": bound_results([_render_passage(hit) for hit in hits])}
    return {"note": WEAK, **answer} if hits and all(hit.weak for hit in hits) else answer


def _render_passage(hit: Hit) -> Json:
    assert hit.document is not None
    result = {"id": hit.id, "title": hit.document.title, **render_text(hit.text), "score": round(hit.score, 3)}
    more = {
        "heading": hit.heading,
        "page": hit.page,
        "weak": hit.weak,
        "unverified": is_unverified(hit),
        "category": hit.document.category,
        "source": hit.document.source,
    }
    return result | {name: value for name, value in more.items() if value}


NO_DETAIL = "There is no stored text under this key. Copy the key exactly. Or look for it with search_memory."
NO_KEY = "Name the text by its key, which follows [MemoryRef: in your context."
PAGE_CHARS = 4_000
"""Default length of one answer: about 1,000 tokens."""

SEARCH_LIMIT = 10
OPTIONAL = ("next_offset", "first_line", "last_line", "matches")
"""Fields of a page that are left out when they are None."""


def store_memory(
    memory: AgentMemory, content: str, description: str = "", type: str = "text", thread_id: str = ""
) -> Json:
    detail = memory.details.store(content, description=description, type=type, session_id=thread_id or None)
    return {"ok": True, "memory_key": detail.key, "reference": reference(detail.key, detail.description)}


def retrieve_memory(
    memory: AgentMemory, memory_key: str = "", id: str = "", limit: int = PAGE_CHARS, **part: Any
) -> Json:
    key = (memory_key or id).strip()
    if not key:
        raise Invalid(NO_KEY)
    # A model may copy the whole reference instead of the key.
    match = REFERENCE.search(key)
    try:
        # Some models send an empty text for what they do not ask for.
        asked = {name: value for name, value in part.items() if value != ""}
        page = memory.details.read(match[1] if match else key, limit=max(1, min(limit, MAX_CHARS)), **asked)
    except NotFound:
        return {"ok": False, "error": NO_DETAIL}
    answer: Json = {"memory_key": page.key, "content": page.content, "offset": page.offset, "total": page.total}
    answer |= {name: value for name in OPTIONAL if (value := getattr(page, name)) is not None}
    return answer | {"total_lines": page.total_lines, "remaining": page.remaining}


def search_memory(memory: AgentMemory, query: str = "", thread_id: str = "") -> Json:
    found = memory.details.search(query, session_id=thread_id or None, limit=SEARCH_LIMIT)
    return {"count": len(found), "memories": [_render_detail(detail) for detail in found]}


def _render_detail(detail: Detail) -> Json:
    when = detail.created_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "memory_key": detail.key,
        "type": detail.type,
        "description": detail.description,
        "summary": detail.summary,
        "source": str(detail.metadata.get("source", "")),
        "total": detail.chars,
        "when": when,
    }


FOUND, MOST = 10, 50
MISSING = "There is no item with this key. item_search lists what is in a namespace, item_namespaces the namespaces."


def item_put(
    memory: AgentMemory,
    namespace: str,
    key: str,
    value: Json,
    index: list[str] | None = None,
    ttl: float | None = None,
    version: int | None = None,
) -> Json:
    stored = memory.items.put(namespace, key, value, index=index, ttl=ttl, version=version, origin="agent")
    assert stored is not None  # only None deletes
    return {"ok": True, "version": stored.version}


def item_get(memory: AgentMemory, namespace: str, key: str) -> Json:
    item = memory.items.get(namespace, key)
    return {"ok": False, "error": MISSING} if item is None else _render_item(item, MAX_CHARS)


def item_search(memory: AgentMemory, namespace: str = "", query: str = "", where: str = "", limit: int = FOUND) -> Json:
    if not 1 <= limit <= MOST:
        raise Invalid(f"The limit is a whole number from 1 to {MOST}.")
    found = memory.items.search(namespace, query=query or None, where=where, limit=limit)
    return {"count": len(found), "items": [_render_item(each, MAX_CHARS // len(found)) for each in found]}


def item_delete(memory: AgentMemory, namespace: str, key: str) -> Json:
    return {"ok": True} if memory.items.delete(namespace, key) else {"ok": False, "error": MISSING}


def item_namespaces(memory: AgentMemory, prefix: str = "") -> Json:
    found = memory.items.namespaces(prefix)
    return {"count": len(found), "namespaces": [escape_data(join_names(names)) for names in found]}


def _render_item(item: Item, most: int) -> Json:
    text = escape_data(json.dumps(item.value, ensure_ascii=False))
    rendered: Json = {"namespace": escape_data(join_names(item.namespace)), "key": escape_data(item.key)}
    rendered |= {"value": shorten(text, most), "version": item.version}
    if len(text) > most:
        rendered["total"] = len(text)
    return rendered | ({} if item.expires_at is None else {"expires_at": item.expires_at.isoformat(timespec="seconds")})


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
    forgotten, candidates = ([_render_fact(each) for each in found] for found in (done.forgotten, done.candidates))
    if not forgotten:
        return {"ok": False, "error": WHICH if candidates else NONE_MEANT, "candidates": bound_results(candidates)}
    answer: Json = {"ok": True, "forgotten": bound_results(forgotten), "note": HIDDEN}
    return {**answer, "candidates": bound_results(candidates), "note": HIDDEN + LEFT} if candidates else answer


def profile(memory: AgentMemory, subject: str = "") -> Json:
    facts = memory.profile(subject=subject or None).facts
    answer: Json = {"count": len(facts), "facts": bound_results([_render_fact(each) for each in facts[:MAX_LISTED]])}
    return answer if facts else {**answer, "hint": NO_PROFILE}


def list_memories(memory: AgentMemory, limit: int = LISTED) -> Json:
    found = memory.list(limit=max(1, min(limit, MAX_LISTED)))
    listed = bound_results([{**_render_fact(each), "kind": each.kind.value} for each in found])
    answer: Json = {"count": len(found), "memories": listed}
    return answer if found else {**answer, "hint": NOTHING_KEPT}


def read_detail(memory: AgentMemory, key: str, **part: Any) -> Json:
    return retrieve_memory(memory, memory_key=key, **part)


def _render_fact(memory: Memory) -> Json:
    return {"id": memory.id, **render_text(memory.text, memory), "since": f"{memory.since:%Y-%m-%d}"}
