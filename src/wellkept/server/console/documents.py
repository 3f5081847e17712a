"""Documents: upload, list by title and category, search, edit and delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import UploadFile

from wellkept.errors import Conflict, Forbidden, Invalid, SecretRejected
from wellkept.server.console.pages import clip, fit_bytes, page, page_router, place
from wellkept.server.http.auth import CurrentTenant
from wellkept.server.http.routing import READ, WRITE
from wellkept.server.rest.shapes import NO_FILE

DOCUMENTS = 50
PASSAGES = 50
HITS = 10
PREVIEW_BYTES = 500
"""Bytes of the text shown before it is deleted."""

MAX_FILES = 20
MAX_FIELDS = 4

router = page_router()
DocumentId = Annotated[str, Path()]


@dataclass(frozen=True, slots=True)
class UploadForm:
    """Files of the form, read into memory, and their category."""

    files: Sequence[tuple[str, bytes]]
    category: str


@dataclass(frozen=True, slots=True)
class UploadResult:
    """One uploaded file: the document it became, or why it was refused."""

    name: str
    id: str = ""
    says: str = ""


async def _receive_form(request: Request) -> UploadForm:
    async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS) as form:
        sent = [each for each in form.getlist("file") if isinstance(each, UploadFile) and each.filename]
        category = form.get("category", "")
        files = [(each.filename or "", await each.read()) for each in sent]
    return UploadForm(files, category.strip() if isinstance(category, str) else "")


@router.get("/documents", scope=READ)
def list_documents(
    request: Request,
    tenant: CurrentTenant,
    category: Annotated[str, Query()] = "",
    q: Annotated[str, Query()] = "",
    title: Annotated[str, Query()] = "",
    after: Annotated[str, Query()] = "",
) -> Response:
    """Show documents by title, of one category if it is given, and the passages that answer a question.

    `title` and `after` are those of the last document of the previous page.
    """
    return _list_page(request, tenant, category=category, q=q, after=(title, after))


@router.post("/documents", queue="documents", scope=WRITE)
def upload(request: Request, tenant: CurrentTenant, sent: Annotated[UploadForm, Depends(_receive_form)]) -> Response:
    """Ingest uploaded files; each is reported by itself."""
    if not sent.files:
        return _list_page(request, tenant, category=sent.category, problem=NO_FILE)
    results = [_ingest(tenant, name, content, sent.category) for name, content in sent.files]
    return _list_page(request, tenant, category=sent.category, results=results)


def _ingest(tenant: CurrentTenant, name: str, content: bytes, category: str) -> UploadResult:
    try:
        (made,) = tenant.knowledge.ingest_bytes(content, name, category=category or None).documents
    except (Invalid, SecretRejected, Conflict, Forbidden) as error:
        return UploadResult(name, says=str(error))
    removed = len(made.removed_secrets)
    also = f", without {removed} {'secret' if removed == 1 else 'secrets'}" if removed else ""
    passages = f"{made.passages:,} passage{'' if made.passages == 1 else 's'}"
    return UploadResult(name, made.document.id, f"{made.change}, {passages}{also}")


def _list_page(
    request: Request,
    tenant: CurrentTenant,
    *,
    category: str = "",
    q: str = "",
    after: tuple[str, str] = ("", ""),
    problem: str = "",
    results: Sequence[UploadResult] = (),
) -> Response:
    found = tenant.knowledge.browse(category=category, after=after, limit=DOCUMENTS + 1)
    listed = found[:DOCUMENTS]
    hits = tenant.knowledge.search(q, limit=HITS, categories=(category,) if category else ()) if q.strip() else ()
    return page(
        request,
        "documents.html",
        status=400 if problem else 200,
        documents=listed,
        categories=tenant.knowledge.count_categories(),
        category=category,
        q=q,
        hits=hits,
        more=listed[-1].document if len(found) > DOCUMENTS else None,
        is_first=after == ("", ""),
        problem=problem,
        results=results,
    )


@router.get("/documents/{id}", scope=READ)
def show_document(
    request: Request, tenant: CurrentTenant, id: DocumentId, begin: Annotated[int, Query(ge=0, lt=10**9)] = 0
) -> Response:
    """Show the passages of a document, in order, a page at a time."""
    return _document_page(request, tenant, id, begin=begin)


@router.post("/documents/{id}", scope=WRITE)
def edit_document(
    request: Request,
    tenant: CurrentTenant,
    id: DocumentId,
    title: Annotated[str, Form()] = "",
    category: Annotated[str, Form()] = "",
    is_published: Annotated[str, Form()] = "",
) -> Response:
    """Change the title, the category and the publication of a document."""
    try:
        tenant.knowledge.update(id, title=title, category=category.strip(), is_published=bool(is_published))
    except (Invalid, SecretRejected, Conflict, Forbidden) as error:
        return _document_page(request, tenant, id, problem=str(error))
    return RedirectResponse(place("documents", id), status_code=303)


@router.get("/documents/{id}/delete", scope=WRITE)
def ask_to_delete_document(request: Request, tenant: CurrentTenant, id: DocumentId) -> Response:
    """Show what would be deleted, and ask for confirmation."""
    document, passages = tenant.knowledge.get(id), tenant.knowledge.passages(id)
    return page(
        request,
        "document_delete.html",
        document=document,
        count=len(passages),
        chars=sum(len(each.text) for each in passages),
        beginning=clip(passages[0].text, PREVIEW_BYTES) if passages else "",
    )


@router.post("/documents/{id}/delete", scope=WRITE)
def delete_document(tenant: CurrentTenant, id: DocumentId) -> Response:
    """Delete a document and its passages permanently."""
    category = tenant.knowledge.get(id).category
    tenant.knowledge.delete(id)
    return RedirectResponse(place("documents", category=category), status_code=303)


def _document_page(request: Request, tenant: CurrentTenant, id: str, *, begin: int = 0, problem: str = "") -> Response:
    document, passages = tenant.knowledge.get(id), tenant.knowledge.passages(id)
    listed = fit_bytes(passages[begin : begin + PASSAGES], lambda each: each.text)
    return page(
        request,
        "document.html",
        status=400 if problem else 200,
        document=document,
        passages=listed,
        count=len(passages),
        chars=sum(len(each.text) for each in passages),
        more=begin + len(listed) if len(passages) > begin + len(listed) else 0,
        begin=begin,
        problem=problem,
    )
