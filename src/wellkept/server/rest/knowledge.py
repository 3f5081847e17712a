"""Documents of a tenant, `/api/kb`, and skills, `/api/skills`.

A document is sent as JSON or as an uploaded file (`multipart/form-data` with the field `file` and optionally `title`,
`category` and `is_published`), on the same route.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal, Self

from fastapi import Depends, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile

from wellkept.errors import Invalid
from wellkept.knowledge.ingest import DocumentChange, IngestReport, RemovedSecret
from wellkept.knowledge.rules_chunking import MAX_CATEGORY_CHARS, MAX_TITLE_CHARS
from wellkept.language.values import MAX_LIMIT
from wellkept.model import Chunk, Document, Hit, Skill, Source
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept, readable_agent
from wellkept.server.http.errors import located
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import PagedList, decode_cursor
from wellkept.server.rest import shapes
from wellkept.server.rest.shapes import Flag, RecordBody, RequestBody, describes, field
from wellkept.server.threads import BodyReader

Title = Annotated[str, field(minLength=1, maxLength=MAX_TITLE_CHARS)]
Category = Annotated[str, field(maxLength=MAX_CATEGORY_CHARS, example="policy")]


class NewDocument(RequestBody):
    """A new document: Markdown or plain text. It replaces the document of the same title."""

    text: str = field(minLength=1, example="Refunds are paid within 14 days.")
    title: Title | None = field(None, "null: its first heading, or its first words")
    category: Category | None = None
    is_published: Flag | None = None
    metadata: shapes.Metadata | None = None
    secrets: Literal["redact", "reject"] | None = field(
        None, "Handling of what seems to be a secret: store the document without it (default), or refuse."
    )


class DocumentFilter(shapes.Paging):
    """Filter for documents."""

    category: str = field("", "Only documents of this category; empty: all.")
    where: shapes.WhereText = ""


class DocumentPatch(shapes.Patch):
    """Changes to a document; omitted fields stay."""

    title: Title = ""
    category: Category = ""
    is_published: Flag = field(True, "Only published documents are found.")
    metadata: shapes.Metadata = field({}, "Replaces all of its metadata.")


class KnowledgeQuestion(RequestBody):
    """A search in the documents."""

    query: str = field(minLength=1, example="refund policy")
    categories: tuple[str, ...] = field((), "Only documents of these; empty: all.")
    agent: str = field("", "Only documents that this agent may read; empty: all.")
    records: bool = field(False, "Also return the document of each passage.")
    where: shapes.Where = None
    limit: int = field(5, strict=True, minimum=1, maximum=MAX_LIMIT)
    min_relevance: float | None = field(None, "Least relevance of each passage; null: no limit.", minimum=0, maximum=1)


@describes(Document)
class DocumentBody(RecordBody):
    """A document, without its text."""


@describes(RemovedSecret)
class RemovedSecretBody(RecordBody):
    """A secret that was removed from a document."""


class IngestedBody(DocumentBody):
    """A document that was ingested."""

    change: DocumentChange = field(description="unchanged: the same document existed.")
    passages: int = field(description="Number of passages.")
    removed_secrets: list[RemovedSecretBody] = field(description="What was replaced by a mark.")


@describes(Chunk)
class PassageBody(RecordBody):
    """A passage, with the headings above it."""


class WholeDocument(DocumentBody):
    """A document with its passages, in order."""

    passages: list[PassageBody]


class DocumentPage(shapes.Page[DocumentBody]):
    """Documents by id."""


class PassageHit(BaseModel):
    """A passage that matches a search."""

    source: Source
    id: str = field(description="The document's id and the passage's position.")
    text: str
    score: float = field(description="Probability that a person would call the passage relevant, 0 to 1.")
    relevance: float = field(description="Chance, 0 to 1, that it helps with the question.")
    weak: bool = field(description="It is only the nearest there is, and probably no answer.")
    parts: dict[str, float]
    document_id: str
    title: str
    heading: str = field(description="Headings above the passage, without the title.", example="Fees > EU")
    page: int | None = field(description="Page of a PDF on which the passage begins.")
    category: str

    @classmethod
    def of(cls, hit: Hit) -> Self:
        assert hit.document is not None
        document: dict[str, Any] = {"document_id": hit.document.id, "category": hit.document.category}
        document["document"] = DocumentBody.of(hit.document)
        return cls.model_validate(document | {n: getattr(hit, n) for n in cls.model_fields if n not in document})


class WholePassage(PassageHit):
    """A passage with its document, for requests with `records`."""

    weights: dict[str, float]
    created_at: datetime
    document: DocumentBody


class SearchAnswer(BaseModel):
    """Matching passages, best first."""

    hits: list[WholePassage | PassageHit]


class SkillFilter(shapes.Query):
    """Filter for skills."""

    agent: str = field("", "Only skills of this agent.", example="atlas")


@describes(Skill)
class SkillBody(RecordBody):
    """A skill: instructions from one file."""


class SkillPage(shapes.Page[SkillBody]):
    """Skills by name."""

    problems: list[str] = field(description="Problems of the files; the last valid versions stay in use.")


LISTING = PagedList("documents", decode_cursor, attrgetter("id"), "")
FORM_FIELDS = ("file", "title", "category", "is_published", "metadata", "secrets")

router = Router(prefix="/api", tags=["knowledge"])
DocumentId = Annotated[str, Path(description="The document's id.", examples=["d-0f343b0931126a20"])]
_BODY = shapes.describe_form(
    {
        "file": shapes.FILE_FIELD,
        "title": shapes.TEXT_FIELD,
        "category": shapes.TEXT_FIELD,
        "is_published": shapes.FLAG_FIELD,
        "metadata": {**shapes.TEXT_FIELD, "description": "A JSON object."},
        "secrets": {**shapes.TEXT_FIELD, "enum": ["redact", "reject"]},
    },
    ["file"],
    {"application/json": {"schema": NewDocument.model_json_schema()}},
)


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file, with its name and the other fields of the form."""

    content: bytes
    name: str
    fields: dict[str, Any]


async def _parse_request(request: Request) -> NewDocument | Upload:
    """Return the document of a request. Raises: Invalid, RequestValidationError."""
    if shapes.is_form(request):
        async with request.form(max_files=1, max_fields=len(FORM_FIELDS)) as form:
            return await _parse_form(dict(form))
    try:
        body = await request.body()
        reader: BodyReader = request.app.state.reader
        return await reader.read(body, partial(NewDocument.model_validate_json, body))
    except ValidationError as error:
        raise RequestValidationError(located(error)) from error


async def _parse_form(form: dict[str, Any]) -> Upload:
    fields = shapes.check_form(form, FORM_FIELDS, file="file", flag="is_published")
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid(shapes.NO_FILE)
    if "metadata" in fields:
        try:
            fields["metadata"] = json.loads(fields["metadata"])
        except (ValueError, RecursionError) as error:
            raise Invalid("metadata is a JSON object, as text.") from error
    return Upload(await file.read(), file.filename, fields)


@router.post(
    "/kb/documents",
    queue="documents",
    scope=WRITE,
    status_code=201,
    response_model=IngestedBody,
    responses={200: {"model": IngestedBody, "description": "The document existed."}},
    openapi_extra=_BODY,
)
def create_document(
    tenant: CurrentTenant, response: Response, submitted: Annotated[Any, Depends(_parse_request)]
) -> IngestedBody:
    """Ingest a document: Markdown or text as JSON, or an uploaded file (Markdown, text, HTML, PDF). A document with the
    same file name, or as JSON the same title, is replaced (200); an identical one changes nothing (200)."""
    ingested = _ingest(tenant, submitted).documents[0]
    if ingested.change != "added":
        response.status_code = 200
    return IngestedBody.of(ingested, **dict(DocumentBody.of(ingested.document)))


def _ingest(tenant: CurrentTenant, submitted: NewDocument | Upload) -> IngestReport:
    if isinstance(submitted, Upload):
        return tenant.knowledge.ingest_bytes(submitted.content, submitted.name, **submitted.fields)
    return tenant.knowledge.ingest_text(**dict(submitted))


@router.get("/kb/documents", scope=READ)
def list_documents(tenant: CurrentTenant, filters: Annotated[DocumentFilter, Query()]) -> DocumentPage:
    """List documents, by id."""
    listed = partial(tenant.knowledge.list, category=filters.category, where=filters.where)
    found, cursor = LISTING.read(listed, filters)
    return DocumentPage(items=[DocumentBody.of(each) for each in found], next_cursor=cursor)


@router.get("/kb/documents/{id}", scope=READ)
def get_document(tenant: CurrentTenant, id: DocumentId) -> WholeDocument:
    """Return a document with its passages."""
    return WholeDocument.of(tenant.knowledge.get(id), passages=tenant.knowledge.passages(id))


@router.patch("/kb/documents/{id}", scope=WRITE)
def update_document(tenant: CurrentTenant, id: DocumentId, body: DocumentPatch) -> DocumentBody:
    """Change the title, category or metadata of a document, publish or unpublish it."""
    return DocumentBody.of(tenant.knowledge.update(id, **body.model_dump(exclude_unset=True)))


@router.delete("/kb/documents/{id}", scope=WRITE, status_code=204)
def delete_document(tenant: CurrentTenant, id: DocumentId) -> None:
    """Delete a document and its passages permanently."""
    tenant.knowledge.delete(id)


@router.post("/kb/search", scope=READ)
def search_knowledge(tenant: CurrentTenant, body: KnowledgeQuestion) -> SearchAnswer:
    """Search the passages of published documents, by words and by meaning."""
    view = readable_agent(tenant, body.agent) if body.agent else tenant
    hits = view.knowledge.search(**{name: value for name, value in body if name not in ("agent", "records")})
    return SearchAnswer(hits=[(WholePassage if body.records else PassageHit).of(hit) for hit in hits])


@router.get("/skills", scope=READ)
def list_skills(
    wellkept: CurrentWellkept, tenant: CurrentTenant, filters: Annotated[SkillFilter, Query()]
) -> SkillPage:
    """List all skills by name, with their text; with `agent`, those of this agent. Changed files are read again."""
    found = readable_agent(tenant, filters.agent).knowledge.skills() if filters.agent else wellkept.skills()
    return SkillPage(items=[SkillBody.of(each) for each in found], problems=list(wellkept.skill_problems()))
