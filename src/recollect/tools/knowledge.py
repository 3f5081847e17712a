"""Tool that searches the organisation's documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.model import Hit, Json
from recollect.policy.recall.purposes import is_unverified
from recollect.tools.bounds import bound_results, render_text
from recollect.tools.spec import Parameter, Tool

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory

NO_AGENT = {"ok": False, "error": "There is no agent in this conversation, so it is not known what it may read."}
DEFAULT_LIMIT = 5
MAX_LIMIT = 20


def search_knowledge(
    memory: AgentMemory | None,
    query: str,
    categories: Sequence[str] = (),
    limit: int = DEFAULT_LIMIT,
    min_score: float | None = None,
    where: str = "",
) -> Json:
    if memory is None:
        return NO_AGENT
    limit = max(1, min(limit, MAX_LIMIT))
    hits = memory.search_knowledge(query, categories=categories, limit=limit, min_score=min_score, where=where)
    return {"count": len(hits), "results": bound_results([_render(hit) for hit in hits])}


def _render(hit: Hit) -> Json:
    assert hit.document is not None
    result = {"id": hit.id, "title": hit.document.title, **render_text(hit.text), "score": round(hit.score, 3)}
    more = {
        "heading": hit.heading,
        "page": hit.page,
        "unverified": is_unverified(hit),
        "category": hit.document.category,
        "source": hit.document.source,
    }
    return result | {name: value for name, value in more.items() if value}


TOOLS = (
    Tool(
        name="search_knowledge",
        set="recall",
        title="Search the documents",
        description=(
            "Look something up in the documents of your organisation (policies, manuals, specifications). Answers with "
            "the passages that fit the question best, each with the title of its document, its headings and its page, "
            "and with nothing if no passage fits. It knows nothing of earlier conversations: for those there is "
            "search_my_memories."
        ),
        parameters={
            "query": Parameter(description="What you want to know.", is_required=True),
            "categories": Parameter(description="Only documents of these categories; all if not given.", type="array"),
            "limit": Parameter(description="How many passages, 5 if not given, 20 at most.", type="integer"),
            "min_score": Parameter(description="Lowest score, 0 to 1; unrelated ones if 0.", type="number"),
            "where": Parameter(
                description="Filter of documents, such as metadata.lang = 'en' and updated > 2026-01-01."
            ),
        },
        answer={"count": "integer", "results": "array"},
        call=search_knowledge,
        is_read_only=True,
        is_idempotent=True,
    ),
)
