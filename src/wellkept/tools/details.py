"""Tools for long texts: store one, read it in parts, find it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wellkept.details.rules_keys import REFERENCE, reference
from wellkept.errors import Invalid, NotFound
from wellkept.model import Detail, Json

if TYPE_CHECKING:
    from wellkept.api.agent import AgentMemory

NOT_FOUND = "There is no stored text under this key. Copy the key exactly. Or look for it with search_memory."
NO_KEY = "Name the text by its key, which follows [MemoryRef: in your context."
PAGE_CHARS = 4_000
"""Default length of one answer: about 1,000 tokens."""

MAX_CHARS = 20_000
"""Largest length of one answer a model can request."""
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
        return {"ok": False, "error": NOT_FOUND}
    answer: Json = {"memory_key": page.key, "content": page.content, "offset": page.offset, "total": page.total}
    answer |= {name: value for name in OPTIONAL if (value := getattr(page, name)) is not None}
    return answer | {"total_lines": page.total_lines, "remaining": page.remaining}


def search_memory(memory: AgentMemory, query: str = "", thread_id: str = "") -> Json:
    found = memory.details.search(query, session_id=thread_id or None, limit=SEARCH_LIMIT)
    return {"count": len(found), "memories": [_render(detail) for detail in found]}


def _render(detail: Detail) -> Json:
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
