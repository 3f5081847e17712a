"""Tools for long texts: store one, read it in parts, find it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import Invalid, NotFound
from recollect.model import Detail, Json
from recollect.policy.details.references import REFERENCE, reference
from recollect.tools.spec import Parameter, Tool

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory

NO_AGENT = {"ok": False, "error": "There is no agent in this conversation, so there are no stored texts."}
NOT_FOUND = "There is no stored text under this key. Copy the key exactly, or look for it with search_memory."
NO_KEY = "Name the text by its memory_key, which follows [MemoryRef: in your context."
PAGE_CHARS = 4_000
"""Default length of one answer: about 1,000 tokens."""

MAX_CHARS = 20_000
"""Largest length of one answer a model can request."""
SEARCH_LIMIT = 10
OPTIONAL = ("next_offset", "first_line", "last_line", "matches")
"""Fields of a page that are left out when they are None."""


def store_memory(
    memory: AgentMemory | None, content: str, description: str = "", type: str = "text", thread_id: str = ""
) -> Json:
    if memory is None:
        return NO_AGENT
    detail = memory.store_detail(content, description=description, type=type, session_id=thread_id or None)
    return {"ok": True, "memory_key": detail.key, "reference": reference(detail.key, detail.description)}


def retrieve_memory(
    memory: AgentMemory | None,
    memory_key: str = "",
    id: str = "",
    offset: int = 0,
    limit: int = PAGE_CHARS,
    lines: str | None = None,
    head: int | None = None,
    tail: int | None = None,
    grep: str | None = None,
    context: int = 2,
    json_path: str | None = None,
) -> Json:
    if memory is None:
        return NO_AGENT
    key = (memory_key or id).strip()
    if not key:
        raise Invalid(NO_KEY)
    # A model may copy the whole reference instead of the key.
    match = REFERENCE.search(key)
    try:
        page = memory.read_detail(
            match[1] if match else key,
            offset=offset,
            limit=max(1, min(limit, MAX_CHARS)),
            lines=lines or None,
            head=head,
            tail=tail,
            grep=grep or None,
            context=context,
            json_path=json_path or None,
        )
    except NotFound:
        return {"ok": False, "error": NOT_FOUND}
    answer: Json = {"memory_key": page.key, "content": page.content, "offset": page.offset, "total": page.total}
    answer |= {name: value for name in OPTIONAL if (value := getattr(page, name)) is not None}
    return answer | {"total_lines": page.total_lines, "remaining": page.remaining}


def search_memory(memory: AgentMemory | None, query: str = "", thread_id: str = "") -> Json:
    if memory is None:
        return NO_AGENT
    found = memory.search_details(query, session_id=thread_id or None, limit=SEARCH_LIMIT)
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


TOOLS = (
    Tool(
        name="store_memory",
        set="details",
        title="Store a long text",
        description=(
            "Put a long text (a log, a file, an answer of a service) away under a key, so that it need not stay in "
            "your context: keep the reference this answers with, and read the text again with retrieve_memory when "
            "you need it. For a short fact that you want to be shown again in later conversations, use memory_store "
            "instead."
        ),
        parameters={
            "content": Parameter(description="The whole text.", is_required=True),
            "description": Parameter(description="In one sentence, what it is; it appears in the reference."),
            "type": Parameter(
                description="A short word for what it is: command_output, file_content, api_response, user_preference …"
            ),
            "thread_id": Parameter(description="The conversation it belongs to; leave it out for the current one."),
        },
        answer={"memory_key": "string", "reference": "string"},
        call=store_memory,
        session_argument="thread_id",
    ),
    Tool(
        name="retrieve_memory",
        set="details",
        title="Read a stored text",
        description=(
            "Read the text behind a reference such as [MemoryRef: npm-install-x7k2m9qp - log, 812 lines]. Without more "
            "arguments you get its beginning. Ask for what you need: grep for errors, tail for how it ended, lines, "
            "json_path. The answer says what remains and how to ask for it."
        ),
        parameters={
            "memory_key": Parameter(description="The key behind [MemoryRef: in your context."),
            "id": Parameter(description="The same as memory_key."),
            "offset": Parameter(
                description="Where to begin, in characters; the next_offset of an answer.", type="integer"
            ),
            "limit": Parameter(
                description=f"Characters at most; {PAGE_CHARS} if not given, at most {MAX_CHARS}.", type="integer"
            ),
            "lines": Parameter(description='These lines, such as "120-180", "120" or "120-" (to the end).'),
            "head": Parameter(description="Number of lines from the beginning.", type="integer"),
            "tail": Parameter(description="Number of lines from the end.", type="integer"),
            "grep": Parameter(description="Lines that hold this, ignoring case, or match a regular /expression/."),
            "context": Parameter(description="Lines shown around each match of grep; 2 if not given.", type="integer"),
            "json_path": Parameter(description="A part of a JSON text, such as $.items[0].name."),
        },
        answer={
            "memory_key": "string",
            "content": "string",
            "remaining": "string",
            **dict.fromkeys(("offset", "total", "total_lines", *OPTIONAL), "integer"),
        },
        call=retrieve_memory,
        is_read_only=True,
        is_idempotent=True,
    ),
    Tool(
        name="search_memory",
        set="details",
        title="Search stored texts",
        description=(
            "Find long texts that were stored earlier, by words of their key, type, description, summary or command. "
            "Answers with keys and summaries, not with the texts: read those with retrieve_memory. Without a query: "
            "the newest. For short facts use memory_search, for a question in your own words search_my_memories."
        ),
        parameters={
            "query": Parameter(description="A few words; texts that have most of them come first."),
            "thread_id": Parameter(description="Only texts of this conversation."),
        },
        answer={"count": "integer", "memories": "array"},
        call=search_memory,
        is_read_only=True,
        is_idempotent=True,
    ),
)
