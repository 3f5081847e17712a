"""Knowledge that the agents of a tenant share besides documents: skills and the whiteboard.

Each area of the whiteboard is a document of the category `whiteboard`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from wellkept.errors import Invalid, NotFound
from wellkept.knowledge.rules_chunking import WHITEBOARD
from wellkept.model import Chunk, Document
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.routing import READ, WRITE
from wellkept.server.paging import read_page

router = page_router()


@router.get("/skills", scope=READ)
def list_skills(request: Request, wellkept: CurrentWellkept) -> Response:
    """Show all skills by name, and problems of their files."""
    return page(request, "skills.html", skills=wellkept.skills(), problems=wellkept.skill_problems())


AREAS = 50
PREFIX = "Whiteboard: "
"""Prefix of titles, so that an area never replaces another document."""


@router.get("/whiteboard", scope=READ)
def show_whiteboard(request: Request, tenant: CurrentTenant, after: Annotated[str, Query()] = "") -> Response:
    """Show all areas with their text."""
    return _board(request, tenant, after=after)


@router.post("/whiteboard", scope=WRITE)
def write(
    request: Request, tenant: CurrentTenant, title: Annotated[str, Form()] = "", text: Annotated[str, Form()] = ""
) -> Response:
    """Write an area; it replaces the area of the same title."""
    try:
        if not title.strip():
            raise Invalid("A title is required for an area of the whiteboard.")
        named = f"{PREFIX}{title.strip().removeprefix(PREFIX)}"
        tenant.knowledge.ingest_text(text, title=named, category=WHITEBOARD, secrets="reject")
    except Invalid as error:
        return _board(request, tenant, problem=str(error), title=title, text=text)
    return RedirectResponse(place("whiteboard"), status_code=303)


@router.post("/whiteboard/{id}/wipe", scope=WRITE)
def wipe(tenant: CurrentTenant, id: Annotated[str, Path()]) -> Response:
    """Delete an area; other documents are refused. Raises: NotFound."""
    if tenant.knowledge.get(id).category != WHITEBOARD:
        raise NotFound("There is no such area on the whiteboard.")
    tenant.knowledge.delete(id)
    return RedirectResponse(place("whiteboard"), status_code=303)


def _board(
    request: Request, tenant: CurrentTenant, *, after: str = "", problem: str = "", title: str = "", text: str = ""
) -> Response:
    def areas(after: str, limit: int) -> Iterator[tuple[Document, Sequence[Chunk]]]:
        for each in tenant.knowledge.list(category=WHITEBOARD, after=after, limit=limit):
            yield each, tenant.knowledge.passages(each.id)

    listed = read_page(areas, lambda area: area[0].id, after, limit=AREAS)
    return page(
        request,
        "whiteboard.html",
        status=400 if problem else 200,
        areas=listed.items,
        more=listed.end or "",
        prefix=PREFIX,
        problem=problem,
        title=title,
        text=text,
    )
