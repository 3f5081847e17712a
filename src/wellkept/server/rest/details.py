"""Big texts that prompts only refer to: `/api/agents/{agent}/details` and `/capture`."""

from __future__ import annotations

from functools import partial
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel

from wellkept.api.wellkept import AgentMemory
from wellkept.details.details import COMMAND_OUTPUT
from wellkept.details.rules_keys import (
    MAX_CHARS,
    MAX_CONTEXT_LINES,
    MAX_DESCRIPTION_CHARS,
    PAGE_CHARS,
    PART_CHARS,
    reference,
)
from wellkept.language.values import MAX_SECONDS
from wellkept.model import Detail, DetailPage
from wellkept.model.stored import Place
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import PagedList, decode_number, decode_place
from wellkept.server.rest import shapes
from wellkept.server.rest.shapes import Flag, Number, RecordBody, RequestBody, describes, field


class NewDetail(RequestBody):
    """A new big text."""

    content: str = field(minLength=1, example="added 212 packages\n")
    description: str = field(
        "",
        "One line for the reference; empty: derived from the text.",
        maxLength=MAX_DESCRIPTION_CHARS,
        example="npm install",
    )
    type: str = field("text", "command_output, file_content, api_response …")
    session_id: str | None = None
    metadata: dict[str, Any] | None = field(
        None, "Such as source, status, duration.", example={"source": "npm install"}
    )


class DetailPatch(shapes.Patch):
    """Visibility of a detail."""

    is_active: Flag = True


class DetailFilter(shapes.Paging):
    """Filter for details."""

    q: str = field("", "Words; details with most of them come first.")
    visible: Literal["shown", "hidden", "all"] = field("shown", "With `q`, only those that are shown.")
    session_id: str | None = field(None, "Only those of this session.")


class PartFilter(shapes.Query):
    """The part of a text to return; besides offset and limit, use at most one of them."""

    offset: int = field(0, "From this character on.", minimum=0)
    limit: int | None = field(
        None,
        f"Characters at most; default {PAGE_CHARS:,}, with one of the others {PART_CHARS:,}.",
        minimum=1,
        maximum=MAX_CHARS,
    )
    lines: str | None = field(None, "Such as 120-180, 120 or 120-.", example="120-180")
    head: int | None = field(None, "Number of first lines.")
    tail: int | None = field(None, "Number of last lines.")
    grep: str | None = field(None, "Lines with this text, ignoring case; between slashes, a regular expression.")
    context: int = field(2, "Lines shown around each match.", minimum=0, maximum=MAX_CONTEXT_LINES)
    json_path: str | None = field(None, "RFC 9535.", example="$.items[*].name")


@describes(Detail)
class DetailBody(RecordBody):
    """A big text, without its content."""

    reference: str = field(description="The reference to use in a prompt.")


class DetailList(shapes.Page[DetailBody]):
    """Details: by relevance if words were given, otherwise newest first."""


@describes(DetailPage)
class PartBody(RecordBody):
    """A part of a big text."""


class CaptureBody(RequestBody):
    """The output of a command or tool."""

    output: str = field(description="The whole output.")
    source: str = field("", "The command or tool.", example="npm install")
    status: str = field("", "How it ended.", example="success")
    type: str = field(COMMAND_OUTPUT, "A short word for its kind.")
    session_id: str | None = field(None, "The conversation it belongs to.")
    duration: Number | None = field(None, "Seconds it took.", minimum=0, maximum=MAX_SECONDS)
    metadata: dict[str, Any] | None = field(None, "Further data to keep with it.")


class CapturedBody(BaseModel):
    """The text for the prompt."""

    text: str = field(description="The output if it is short, otherwise a reference to it.")
    captured: bool = field(description="True if the output was stored.")
    memory_key: str | None = field(description="Key of the stored output; null: `text` is all of it.")


VISIBLE = {"shown": True, "hidden": False, "all": None}
LISTING = PagedList[Place | None]("details", decode_place, attrgetter("created_at", "key"), None, direction="before")
SEARCH = PagedList("found details", decode_number, itemgetter(0), 0)

router = Router(prefix="/api/agents/{agent}", tags=["details"])
Key = Annotated[str, Path(description="The detail's key.", examples=["npm-install-x7k2m9qp"])]


@router.post("/details", scope=WRITE, status_code=201)
def store_detail(memory: CurrentAgent, body: NewDetail) -> DetailBody:
    """Store a big text. When this route answers, it is on disk. The text is stored unchanged; credentials are removed
    from its description and metadata."""
    return _body(memory.details.store(**dict(body)))


def _body(detail: Detail) -> DetailBody:
    return DetailBody.of(detail, memory_key=detail.key, reference=reference(detail.key, detail.description))


@router.get("/details", scope=READ)
def list_details(memory: CurrentAgent, filters: Annotated[DetailFilter, Query()]) -> DetailList:
    """List details, newest first; with `q`, by the number of its words they have."""
    if filters.q.strip():
        return _search(memory, filters)
    listed = partial(memory.details.list, session_id=filters.session_id, is_active=VISIBLE[filters.visible])
    found, cursor = LISTING.read(listed, filters)
    return DetailList(items=[_body(each) for each in found], next_cursor=cursor)


def _search(memory: AgentMemory, filters: DetailFilter) -> DetailList:
    """Return a page of a search; the cursor counts the items before it."""
    search = partial(memory.details.search, filters.q, session_id=filters.session_id)
    found, cursor = SEARCH.read(lambda after, limit: enumerate(search(offset=after, limit=limit), after + 1), filters)
    return DetailList(items=[_body(each) for _, each in found], next_cursor=cursor)


@router.get("/details/{key}", scope=READ)
def read_detail(memory: CurrentAgent, key: Key, filters: Annotated[PartFilter, Query()]) -> PartBody:
    """Return a part of a big text: a range of characters or lines, its head or tail, matches, or values of its JSON."""
    return PartBody.of(memory.details.read(key, **dict(filters)), memory_key=key)


@router.get("/details/{key}/record", scope=READ)
def get_detail(memory: CurrentAgent, key: Key) -> DetailBody:
    """Return what is known about a big text, even a hidden one, without its content."""
    return _body(memory.details.get(key))


@router.patch("/details/{key}", scope=WRITE)
def hide_detail(memory: CurrentAgent, key: Key, body: DetailPatch) -> DetailBody:
    """Hide a big text, so that it is neither found nor read, or show it again."""
    if "is_active" not in body.model_fields_set:
        return _body(memory.details.get(key))
    return _body(memory.details.hide(key, is_hidden=not body.is_active))


@router.delete("/details/{key}", scope=WRITE, status_code=204)
def delete_detail(memory: CurrentAgent, key: Key) -> None:
    """Delete a big text permanently."""
    memory.details.delete(key)


@router.post("/capture", scope=WRITE)
def capture(memory: CurrentAgent, body: CaptureBody) -> CapturedBody:
    """Store an output that is too long for a prompt. When this route answers, it is on disk."""
    kept = memory.details.capture_output(**dict(body))
    return CapturedBody(text=kept.text, captured=kept.is_captured, memory_key=kept.memory_key)
