"""Tool that recalls memories for a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.model import Hit, Json, Kind, KindName
from recollect.policy.recall.purposes import PURPOSES, is_unverified
from recollect.tools.bounds import bound_results, render_text
from recollect.tools.spec import WHERE, Parameter, Tool

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory

NO_AGENT = {"ok": False, "error": "There is no agent in this conversation, so there is nothing to recall."}
DEFAULT_LIMIT = 5
MAX_LIMIT = 20

FILTERS = {
    "kind": Parameter(description="Only memories of this kind.", choices=tuple(Kind)),
    "tag": Parameter(description="Only memories with this tag."),
    "session_id": Parameter(description="Only memories of this conversation."),
    "where": WHERE,
}


def search_my_memories(
    memory: AgentMemory | None,
    query: str,
    limit: int = DEFAULT_LIMIT,
    purpose: str | None = None,
    min_score: float | None = None,
    kind: KindName | None = None,
    tag: str = "",
    session_id: str | None = None,
    where: str = "",
) -> Json:
    if memory is None:
        return NO_AGENT
    hits = memory.recall(
        query,
        limit=max(1, min(limit, MAX_LIMIT)),
        kinds=None if kind is None else [kind],
        purpose=purpose,
        min_score=min_score,
        tag=tag,
        session_id=session_id,
        where=where,
    )
    answer: Json = {"count": len(hits), "results": bound_results([_render(hit) for hit in hits])}
    if hits.heading:
        answer = {"heading": hits.heading, **answer}
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
    return {"source": hit.source.value, "id": hit.id, **result, "score": round(hit.score, 3), "when": when}


TOOLS = (
    Tool(
        name="search_my_memories",
        set="recall",
        title="Recall",
        description=(
            "Ask your memory a question in your own words. Answers with what fits best by meaning and by words, best "
            "first: from everything you have kept, and from what was done and is known in your organisation. Use it "
            "before a task to see what you know about it."
        ),
        parameters={
            "query": Parameter(description="What you want to know.", is_required=True),
            "limit": Parameter(description="How many results, 5 if not given, 20 at most.", type="integer"),
            "purpose": Parameter(
                description=(
                    "What it is for: task_intake finds similar tasks, failures first; tool_selection which tools "
                    "worked; decision_memo past approvals and refusals; content how past pieces did; delegation which "
                    "agents did such work well. Leave it out for anything else."
                ),
                choices=tuple(PURPOSES),
            ),
            "min_score": Parameter(
                description=(
                    "Least chance, from 0 to 1, that a result is relevant. Leave it out to get what is likely to be; "
                    "0 returns the nearest whatever it is."
                ),
                type="number",
            ),
            **FILTERS,
        },
        answer={"heading": "string", "count": "integer", "results": "array", "missing": "array"},
        call=search_my_memories,
        is_read_only=True,
        is_idempotent=True,
    ),
)
