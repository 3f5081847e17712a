"""Knowledge that the agents of a tenant share: documents, skills, and a whiteboard.

Each area of the whiteboard is a document of the category `whiteboard`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Form, Path, Query, Request
from fastapi.responses import Response
from starlette.datastructures import UploadFile

from wellkept.errors import Conflict, Forbidden, Invalid, NotFound, SecretRejected
from wellkept.knowledge.rules_chunking import WHITEBOARD
from wellkept.model import Chunk, Document
from wellkept.server.console.pages import AtTenant, clip, fit_bytes, go, page_router
from wellkept.server.http.routing import READ, WRITE
from wellkept.server.paging import read_page
from wellkept.server.rest.shapes import NO_FILE

DOCUMENTS = 50
PASSAGES = 50
HITS = 10
PREVIEW_BYTES = 500
"""Bytes of the text shown before it is deleted."""

AREAS = 50
PREFIX = "Whiteboard: "
"""Prefix of titles, so that an area of the whiteboard never replaces another document."""

MAX_FILES = 20
MAX_FIELDS = 4

router = page_router()
DocumentId = Annotated[str, Path()]


Sent = tuple[Sequence[tuple[str, bytes]], str]
"""Names and contents of uploaded files, and their category."""


@dataclass(frozen=True, slots=True)
class UploadResult:
    """One uploaded file: the document it became, or why it was refused."""

    name: str
    id: str = ""
    says: str = ""


async def _receive_form(request: Request) -> Sent:
    async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS) as form:
        sent = [each for each in form.getlist("file") if isinstance(each, UploadFile) and each.filename]
        category = form.get("category", "")
        files = [(each.filename or "", await each.read()) for each in sent]
    return files, category.strip() if isinstance(category, str) else ""


@router.get("/documents", scope=READ)
def list_documents(
    visit: AtTenant,
    category: Annotated[str, Query()] = "",
    q: Annotated[str, Query()] = "",
    title: Annotated[str, Query()] = "",
    after: Annotated[str, Query()] = "",
) -> Response:
    """Show documents by title, of one category if it is given, and the passages that answer a question.

    `title` and `after` are those of the last document of the previous page.
    """
    return _list_page(visit, category=category, q=q, after=(title, after))


@router.post("/documents", queue="documents", scope=WRITE)
def upload(visit: AtTenant, sent: Annotated[Sent, Depends(_receive_form)]) -> Response:
    """Ingest uploaded files; each is reported by itself."""
    files, category = sent
    if not files:
        return _list_page(visit, category=category, problem=NO_FILE)
    results = [_ingest(visit, name, content, category) for name, content in files]
    return _list_page(visit, category=category, results=results)


def _ingest(visit: AtTenant, name: str, content: bytes, category: str) -> UploadResult:
    try:
        (made,) = visit.tenant.knowledge.ingest_bytes(content, name, category=category or None).documents
    except (Invalid, SecretRejected, Conflict, Forbidden) as error:
        return UploadResult(name, says=str(error))
    removed = len(made.removed_secrets)
    also = f", without {removed} {'secret' if removed == 1 else 'secrets'}" if removed else ""
    passages = f"{made.passages:,} passage{'' if made.passages == 1 else 's'}"
    return UploadResult(name, made.document.id, f"{made.change}, {passages}{also}")


def _list_page(
    visit: AtTenant,
    *,
    category: str = "",
    q: str = "",
    after: tuple[str, str] = ("", ""),
    problem: str = "",
    results: Sequence[UploadResult] = (),
) -> Response:
    found = visit.tenant.knowledge.browse(category=category, after=after, limit=DOCUMENTS + 1)
    listed = found[:DOCUMENTS]
    hits = visit.tenant.knowledge.search(q, limit=HITS, categories=(category,) if category else ()) if q.strip() else ()
    return visit.page(
        "documents.html",
        documents=listed,
        categories=visit.tenant.knowledge.count_categories(),
        category=category,
        q=q,
        hits=hits,
        more=listed[-1].document if len(found) > DOCUMENTS else None,
        is_first=after == ("", ""),
        problem=problem,
        results=results,
    )


@router.get("/documents/{id}", scope=READ)
def show_document(visit: AtTenant, id: DocumentId, begin: Annotated[int, Query(ge=0, lt=10**9)] = 0) -> Response:
    """Show the passages of a document, in order, a page at a time."""
    return _document_page(visit, id, begin=begin)


@router.post("/documents/{id}", scope=WRITE)
def edit_document(
    visit: AtTenant,
    id: DocumentId,
    title: Annotated[str, Form()] = "",
    category: Annotated[str, Form()] = "",
    is_published: Annotated[str, Form()] = "",
) -> Response:
    """Change the title, the category and the publication of a document."""
    try:
        visit.tenant.knowledge.update(id, title=title, category=category.strip(), is_published=bool(is_published))
    except (Invalid, SecretRejected, Conflict, Forbidden) as error:
        return _document_page(visit, id, problem=str(error))
    return go("documents", id)


@router.get("/documents/{id}/delete", scope=WRITE)
def ask_to_delete_document(visit: AtTenant, id: DocumentId) -> Response:
    """Show what would be deleted, and ask for confirmation."""
    document, passages = visit.tenant.knowledge.get(id), visit.tenant.knowledge.passages(id)
    return visit.page(
        "document_delete.html",
        document=document,
        count=len(passages),
        chars=sum(len(each.text) for each in passages),
        beginning=clip(passages[0].text, PREVIEW_BYTES) if passages else "",
    )


@router.post("/documents/{id}/delete", scope=WRITE)
def delete_document(visit: AtTenant, id: DocumentId) -> Response:
    """Delete a document and its passages permanently."""
    category = visit.tenant.knowledge.get(id).category
    visit.tenant.knowledge.delete(id)
    return go("documents", category=category)


def _document_page(visit: AtTenant, id: str, *, begin: int = 0, problem: str = "") -> Response:
    document, passages = visit.tenant.knowledge.get(id), visit.tenant.knowledge.passages(id)
    listed = fit_bytes(passages[begin : begin + PASSAGES], lambda each: each.text)
    return visit.page(
        "document.html",
        document=document,
        passages=listed,
        count=len(passages),
        chars=sum(len(each.text) for each in passages),
        more=begin + len(listed) if len(passages) > begin + len(listed) else 0,
        begin=begin,
        problem=problem,
    )


@router.get("/skills", scope=READ)
def list_skills(visit: AtTenant) -> Response:
    """Show all skills by name, and problems of their files."""
    return visit.page("skills.html", skills=visit.wellkept.skills(), problems=visit.wellkept.skill_problems())


@router.get("/whiteboard", scope=READ)
def show_whiteboard(visit: AtTenant, after: Annotated[str, Query()] = "") -> Response:
    """Show all areas with their text."""
    return _board(visit, after=after)


@router.post("/whiteboard", scope=WRITE)
def write(visit: AtTenant, title: Annotated[str, Form()] = "", text: Annotated[str, Form()] = "") -> Response:
    """Write an area; it replaces the area of the same title."""
    try:
        if not title.strip():
            raise Invalid("A title is required for an area of the whiteboard.")
        named = f"{PREFIX}{title.strip().removeprefix(PREFIX)}"
        visit.tenant.knowledge.ingest_text(text, title=named, category=WHITEBOARD, secrets="reject")
    except Invalid as error:
        return _board(visit, problem=str(error), title=title, text=text)
    return go("whiteboard")


@router.post("/whiteboard/{id}/wipe", scope=WRITE)
def wipe(visit: AtTenant, id: Annotated[str, Path()]) -> Response:
    """Delete an area; other documents are refused. Raises: NotFound."""
    if visit.tenant.knowledge.get(id).category != WHITEBOARD:
        raise NotFound("There is no such area on the whiteboard.")
    visit.tenant.knowledge.delete(id)
    return go("whiteboard")


def _board(visit: AtTenant, *, after: str = "", problem: str = "", title: str = "", text: str = "") -> Response:
    def areas(after: str, limit: int) -> Iterator[tuple[Document, Sequence[Chunk]]]:
        for each in visit.tenant.knowledge.list(category=WHITEBOARD, after=after, limit=limit):
            yield each, visit.tenant.knowledge.passages(each.id)

    listed = read_page(areas, lambda area: area[0].id, after, limit=AREAS)
    return visit.page(
        "whiteboard.html",
        areas=listed.items,
        more=listed.end or "",
        prefix=PREFIX,
        problem=problem,
        title=title,
        text=text,
    )
