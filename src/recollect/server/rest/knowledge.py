"""A tenant's documents: `/api/kb`.

A document arrives as JSON or as an uploaded file (`multipart/form-data` with the fields `file`, and if wanted `title`,
`category` and `is_published`), on the same route.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import UploadFile

from recollect.errors import Invalid
from recollect.server.auth import CurrentTenant
from recollect.server.errors import located
from recollect.server.paging import read_page
from recollect.server.rest import cursor
from recollect.server.rest.knowledge_shapes import (
    DocumentBody,
    DocumentFilter,
    DocumentPage,
    DocumentPatch,
    FoundPassages,
    IngestedBody,
    KnowledgeQuestion,
    NewDocument,
    PassageBody,
    PassageHit,
    WholeDocument,
)
from recollect.server.threads import BodyReader
from recollect.services.knowledge.report import Ingested

LISTING = "documents"
FORM = "multipart/form-data"
FORM_FIELDS = ("file", "title", "category", "is_published")
NO_FILE = "The form has no file; send it as the field `file`, with its name."

router = APIRouter(prefix="/api/kb", tags=["knowledge"])
DocumentId = Annotated[str, Path(description="The document's id.", examples=["d-0f343b0931126a20"])]
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewDocument.model_json_schema()},
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "title": {"type": "string"},
                        "category": {"type": "string"},
                        "is_published": {"type": "boolean"},
                    },
                }
            },
        },
    }
}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent, with its name and what is said about it."""

    content: bytes
    name: str
    wishes: dict[str, Any]


async def _submitted(request: Request) -> NewDocument | Upload:
    """Raises: Invalid, RequestValidationError."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM:
        async with request.form(max_files=1, max_fields=len(FORM_FIELDS)) as form:
            return await _upload(dict(form))
    try:
        body = await request.body()
        reader: BodyReader = request.app.state.reader
        return await reader.read(body, partial(NewDocument.model_validate_json, body))
    except ValidationError as error:
        raise RequestValidationError(located(error)) from error


async def _upload(form: dict[str, Any]) -> Upload:
    for name in form:
        if name not in FORM_FIELDS:
            raise Invalid(f"There is no field {name[:40]!r}; there are: {', '.join(FORM_FIELDS)}.")
    file = form.pop("file", None)
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid(NO_FILE)
    if not all(isinstance(value, str) for value in form.values()):
        raise Invalid("Only the field `file` is a file.")
    if "is_published" in form:
        try:
            form["is_published"] = TypeAdapter(bool).validate_python(form["is_published"])
        except ValidationError as error:
            raise Invalid("is_published is true or false.") from error
    return Upload(await file.read(), file.filename, form)


@router.post(
    "/documents",
    status_code=201,
    response_model=IngestedBody,
    responses={200: {"model": IngestedBody, "description": "There was one already."}},
    openapi_extra=_BODY,
)
def create_document(
    tenant: CurrentTenant, response: Response, submitted: Annotated[Any, Depends(_submitted)]
) -> IngestedBody:
    """Take in a document: Markdown or text as JSON, or an uploaded file (Markdown, text, HTML, PDF). What has the same
    file name, or as JSON the same title, takes the old one's place (200); the very same again changes nothing (200)."""
    ingested = _ingested(tenant, submitted).documents[0]
    if ingested.change != "added":
        response.status_code = 200
    return IngestedBody.of(ingested)


def _ingested(tenant: CurrentTenant, submitted: NewDocument | Upload) -> Ingested:
    if isinstance(submitted, Upload):
        return tenant.ingest_bytes(submitted.content, submitted.name, **submitted.wishes)
    return tenant.ingest_text(
        submitted.text, title=submitted.title, category=submitted.category, is_published=submitted.is_published
    )


@router.get("/documents")
def list_documents(tenant: CurrentTenant, wanted: Annotated[DocumentFilter, Query()]) -> DocumentPage:
    """Documents, by id."""
    after = cursor.decode(LISTING, wanted.cursor) if wanted.cursor else ""
    page = read_page(
        lambda after, limit: tenant.list_documents(category=wanted.category, after=after, limit=limit),
        attrgetter("id"),
        after,
        limit=wanted.limit,
    )
    items = [DocumentBody.model_validate(each) for each in page.items]
    return DocumentPage(items=items, next_cursor=cursor.encode_next(LISTING, page.end))


@router.get("/documents/{id}")
def get_document(tenant: CurrentTenant, id: DocumentId) -> WholeDocument:
    """One document, with its passages."""
    told = DocumentBody.model_validate(tenant.get_document(id)).model_dump()
    return WholeDocument(**told, passages=[PassageBody.model_validate(each) for each in tenant.list_passages(id)])


@router.patch("/documents/{id}")
def update_document(tenant: CurrentTenant, id: DocumentId, body: DocumentPatch) -> DocumentBody:
    """Change a document's title or category, publish it or take it back."""
    return DocumentBody.model_validate(tenant.update_document(id, **body.model_dump(exclude_unset=True)))


@router.delete("/documents/{id}", status_code=204)
def delete_document(tenant: CurrentTenant, id: DocumentId) -> None:
    """Delete a document and its passages for good."""
    tenant.delete_document(id)


@router.post("/search")
def search_knowledge(tenant: CurrentTenant, body: KnowledgeQuestion) -> FoundPassages:
    """The passages of published documents that fit a question best, by words and by meaning."""
    hits = tenant.search_knowledge(body.query, categories=body.categories, limit=body.limit)
    return FoundPassages(hits=[PassageHit.of(hit) for hit in hits])
