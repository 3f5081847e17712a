"""Details of an agent: the long texts that prompts refer to, listed, read in parts, searched and downloaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse

from wellkept.details.rules_keys import MAX_CHARS
from wellkept.errors import Invalid
from wellkept.model import Detail, DetailPage
from wellkept.server.console.charts import describe_bytes
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.http.auth import CurrentAgent, CurrentTenant
from wellkept.server.http.routing import READ, WRITE

DETAILS = 50
READ_CHARS = 15_000
"""Characters of a text on one page."""

NO_PAGE = "There is no such page; start with the first one."
HIDDEN = "It is hidden: no agent finds or reads it. Show it again to read it here."

router = page_router("/agents/{agent}/details")
DetailKey = Annotated[str, Path()]


@router.get("", scope=READ)
def list_details(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    q: Annotated[str, Query()] = "",
    session: Annotated[str, Query()] = "",
    at: Annotated[str, Query()] = "",
    id: Annotated[str, Query()] = "",
) -> Response:
    """Show details, newest first, or those with most of the words; `at` and `id` are the end of the previous page."""
    found: Sequence[Detail]
    if q.strip():
        found = memory.details.search(q, session_id=session or None, limit=DETAILS)
    else:
        before = (_parse_time(at), id) if at or id else None
        found = memory.details.list(session_id=session or None, is_active=None, before=before, limit=DETAILS + 1)
    listed = found[:DETAILS]
    return page(
        request,
        "details.html",
        agent=tenant.agents.get(memory.owner.agent),
        details=[(each, describe_bytes(each.size)) for each in listed],
        q=q,
        session=session,
        older=listed[-1] if len(found) > DETAILS else None,
        is_first=not (at or id),
    )


@router.get("/{id}", scope=READ)
def show_detail(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    id: DetailKey,
    offset: Annotated[int, Query(ge=0, lt=10**12)] = 0,
    grep: Annotated[str, Query()] = "",
) -> Response:
    """Show a part of a text: a page of it, or the lines that match."""
    detail, problem = memory.details.get(id), ""
    part: DetailPage | None = None
    try:
        if detail.is_active:
            part = memory.details.read(id, offset=offset, limit=READ_CHARS, grep=grep or None)
    except Invalid as error:
        problem = str(error)
    return page(
        request,
        "detail.html",
        status=400 if problem else 200,
        agent=tenant.agents.get(memory.owner.agent),
        detail=detail,
        size=describe_bytes(detail.size),
        part=part,
        offset=offset,
        grep=grep,
        problem=problem or ("" if detail.is_active else HIDDEN),
    )


@router.get("/{id}/text", scope=READ)
def download_detail(memory: CurrentAgent, id: DetailKey) -> Response:
    """Return the whole text as a file."""
    detail = memory.details.get(id)
    headers = {"Content-Disposition": f'attachment; filename="{detail.key}.txt"'}
    # The first part is read here, so that a failure is answered as one.
    first = memory.details.read(id, limit=MAX_CHARS)
    return StreamingResponse(_iter_parts(memory, first), media_type="text/plain; charset=utf-8", headers=headers)


@router.post("/{id}/hide", scope=WRITE)
def hide_detail(memory: CurrentAgent, id: DetailKey, hidden: Annotated[str, Form()] = "") -> Response:
    """Hide a text from search and reading, or show it again."""
    memory.details.hide(id, is_hidden=bool(hidden))
    return RedirectResponse(place("agents", memory.owner.agent, "details", id), status_code=303)


@router.get("/{id}/delete", scope=WRITE)
def ask_to_delete_detail(request: Request, tenant: CurrentTenant, memory: CurrentAgent, id: DetailKey) -> Response:
    """Show what would be deleted, and ask for confirmation."""
    detail = memory.details.get(id)
    agent = tenant.agents.get(memory.owner.agent)
    return page(request, "detail_delete.html", agent=agent, detail=detail, size=describe_bytes(detail.size))


@router.post("/{id}/delete", scope=WRITE)
def delete_detail(memory: CurrentAgent, id: DetailKey) -> Response:
    """Delete a text permanently."""
    memory.details.delete(id)
    return RedirectResponse(place("agents", memory.owner.agent, "details"), status_code=303)


def _iter_parts(memory: CurrentAgent, part: DetailPage) -> Iterator[bytes]:
    yield part.content.encode(errors="replace")
    while part.next_offset is not None:
        part = memory.details.read(part.key, offset=part.next_offset, limit=MAX_CHARS)
        yield part.content.encode(errors="replace")


def _parse_time(text: str) -> datetime:
    """Raises: Invalid."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(NO_PAGE) from None
    if moment.tzinfo is None:
        raise Invalid(NO_PAGE)
    return moment
