"""The whiteboard: what all agents of a tenant read. Each area of it is a document of the category `whiteboard`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from recollect.errors import Invalid, NotFound
from recollect.model import Chunk, Document
from recollect.policy.documents import WHITEBOARD
from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page, place
from recollect.server.auth import CurrentTenant
from recollect.server.paging import read_page

AREAS = 50
PREFIX = "Whiteboard: "
"""Documents are known by their titles: an area never takes the place of another document."""

router = APIRouter(prefix=f"{PATH}/whiteboard", include_in_schema=False)


@router.get("")
def show_whiteboard(request: Request, tenant: CurrentTenant, after: Annotated[str, Query()] = "") -> Response:
    """Every area with what stands in it."""
    return _board(request, tenant, after=after)


@router.post("")
def write(
    request: Request,
    tenant: CurrentTenant,
    title: Annotated[str, Form()] = "",
    text: Annotated[str, Form()] = "",
) -> Response:
    """Writes an area; what stood in one of this title is wiped."""
    try:
        if not title.strip():
            raise Invalid("Say what it is about: an area of the whiteboard has a title.")
        tenant.ingest_text(text, title=f"{PREFIX}{title.strip().removeprefix(PREFIX)}", category=WHITEBOARD)
    except Invalid as error:
        return _board(request, tenant, problem=str(error), title=title, text=text)
    return RedirectResponse(place("whiteboard"), status_code=303)


@router.post("/{id}/wipe")
def wipe(tenant: CurrentTenant, id: Annotated[str, Path()]) -> Response:
    """Deletes an area; other documents are not on the whiteboard.

    Raises: NotFound.
    """
    if tenant.get_document(id).category != WHITEBOARD:
        raise NotFound("There is no such area on the whiteboard.")
    tenant.delete_document(id)
    return RedirectResponse(place("whiteboard"), status_code=303)


def _board(
    request: Request, tenant: CurrentTenant, *, after: str = "", problem: str = "", title: str = "", text: str = ""
) -> Response:
    def areas(after: str, limit: int) -> Iterator[tuple[Document, Sequence[Chunk]]]:
        for each in tenant.list_documents(category=WHITEBOARD, after=after, limit=limit):
            yield each, tenant.list_passages(each.id)

    shown = read_page(areas, lambda area: area[0].id, after, limit=AREAS)
    return page(
        request,
        "whiteboard.html",
        status=400 if problem else 200,
        areas=shown.items,
        more=shown.end or "",
        prefix=PREFIX,
        problem=problem,
        title=title,
        text=text,
    )
