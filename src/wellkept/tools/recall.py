"""Tools that recall memories and search the documents of the organisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wellkept.memory.rules_importance import is_small_talk
from wellkept.model import NOTHING_FITS, Hit, Json, KindName
from wellkept.recall.rules_ranking import is_unverified
from wellkept.tools.bounds import bound_results, render_text

if TYPE_CHECKING:
    from wellkept.api.agent import AgentMemory

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
    answer: Json = {"count": len(hits), "results": bound_results([_render(hit) for hit in hits])}
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


def _render(hit: Hit) -> Json:
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
