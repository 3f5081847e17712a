"""Details of an agent: the long texts that prompts refer to, listed, read in parts, searched and downloaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import Form, Path, Query
from fastapi.responses import Response, StreamingResponse

from wellkept.details.rules_keys import MAX_CHARS
from wellkept.errors import Invalid
from wellkept.model import Detail, DetailPage
from wellkept.server.console.pages import AtAgent, describe_bytes, page_router, parse_place
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import READ, WRITE

DETAILS = 50
READ_CHARS = 15_000
"""Characters of a text on one page."""

HIDDEN = "It is hidden: no agent finds or reads it. Show it again to read it here."

router = page_router("/agents/{agent}/details")
DetailKey = Annotated[str, Path()]


@router.get("", scope=READ)
def list_details(
    visit: AtAgent,
    q: Annotated[str, Query()] = "",
    session: Annotated[str, Query()] = "",
    at: Annotated[str, Query()] = "",
    id: Annotated[str, Query()] = "",
) -> Response:
    """Show details, newest first, or those with most of the words; `at` and `id` are the end of the previous page."""
    found: Sequence[Detail]
    if q.strip():
        found = visit.memory.details.search(q, session_id=session or None, limit=DETAILS)
    else:
        before = parse_place(at, id)
        found = visit.memory.details.list(session_id=session or None, is_active=None, before=before, limit=DETAILS + 1)
    listed = found[:DETAILS]
    return visit.page(
        "details.html",
        details=[(each, describe_bytes(each.size)) for each in listed],
        q=q,
        session=session,
        older=listed[-1] if len(found) > DETAILS else None,
        is_first=not (at or id),
    )


@router.get("/{id}", scope=READ)
def show_detail(
    visit: AtAgent,
    id: DetailKey,
    offset: Annotated[int, Query(ge=0, lt=10**12)] = 0,
    grep: Annotated[str, Query()] = "",
) -> Response:
    """Show a part of a text: a page of it, or the lines that match."""
    detail, problem = visit.memory.details.get(id), ""
    part: DetailPage | None = None
    try:
        if detail.is_active:
            part = visit.memory.details.read(id, offset=offset, limit=READ_CHARS, grep=grep or None)
    except Invalid as error:
        problem = str(error)
    return visit.page(
        "detail.html",
        detail=detail,
        size=describe_bytes(detail.size),
        part=part,
        offset=offset,
        grep=grep,
        problem=problem or ("" if detail.is_active else HIDDEN),
    )


@router.get("/{id}/text", scope=READ)
def download_detail(visit: AtAgent, id: DetailKey) -> Response:
    """Return the whole text as a file."""
    detail = visit.memory.details.get(id)
    headers = {"Content-Disposition": f'attachment; filename="{detail.key}.txt"'}
    # The first part is read here, so that a failure is answered as one.
    first = visit.memory.details.read(id, limit=MAX_CHARS)
    return StreamingResponse(_iter_parts(visit.memory, first), media_type="text/plain; charset=utf-8", headers=headers)


@router.post("/{id}/hide", scope=WRITE)
def hide_detail(visit: AtAgent, id: DetailKey, hidden: Annotated[str, Form()] = "") -> Response:
    """Hide a text from search and reading, or show it again."""
    visit.memory.details.hide(id, is_hidden=bool(hidden))
    return visit.go("details", id)


@router.get("/{id}/delete", scope=WRITE)
def ask_to_delete_detail(visit: AtAgent, id: DetailKey) -> Response:
    """Show what would be deleted, and ask for confirmation."""
    detail = visit.memory.details.get(id)
    return visit.page("detail_delete.html", detail=detail, size=describe_bytes(detail.size))


@router.post("/{id}/delete", scope=WRITE)
def delete_detail(visit: AtAgent, id: DetailKey) -> Response:
    """Delete a text permanently."""
    visit.memory.details.delete(id)
    return visit.go("details")


def _iter_parts(memory: CurrentAgent, part: DetailPage) -> Iterator[bytes]:
    yield part.content.encode(errors="replace")
    while part.next_offset is not None:
        part = memory.details.read(part.key, offset=part.next_offset, limit=MAX_CHARS)
        yield part.content.encode(errors="replace")
