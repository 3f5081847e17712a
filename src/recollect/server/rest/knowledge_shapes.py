"""What requests and answers about documents and skills look like."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, Strict

from recollect.model import Hit, Source
from recollect.policy.documents import MAX_CATEGORY_CHARS, MAX_TITLE_CHARS
from recollect.server.rest.bodies import Given, Paging, Patch
from recollect.services.knowledge.report import Change, IngestedDocument
from recollect.services.recall.recall import MAX_LIMIT

Title = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_TITLE_CHARS})]
Category = Annotated[str, Field(json_schema_extra={"maxLength": MAX_CATEGORY_CHARS}, examples=["policy"])]


class NewDocument(Given):
    """A document to be taken in: Markdown or plain text. One of the same title takes the old one's place."""

    text: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["Refunds are paid within 14 days."])]
    title: Annotated[Title | None, Field(description="null: its first heading, or its first words")] = None
    category: Category | None = None
    is_published: Annotated[bool, Strict()] | None = None


class DocumentFilter(Paging):
    """Which documents to list."""

    category: Annotated[str, Field(description="Only documents of this category; empty: all.")] = ""


class DocumentPatch(Patch):
    """What to change about a document; what is left out stays."""

    title: Title = ""
    category: Category = ""
    is_published: Annotated[bool, Strict(), Field(description="Only published documents are found.")] = True


class KnowledgeQuestion(Given):
    """What to look for in the documents."""

    query: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["refund policy"])]
    categories: Annotated[tuple[str, ...], Field(description="Only documents of these; empty: all.")] = ()
    limit: Annotated[int, Strict(), Field(json_schema_extra={"minimum": 1, "maximum": MAX_LIMIT})] = 5


class DocumentBody(BaseModel):
    """A document, without its text."""

    model_config = ConfigDict(from_attributes=True)

    id: Annotated[str, Field(examples=["d-0f343b0931126a20"])]
    title: str
    category: str
    source: Annotated[str, Field(description="The path or file name it came from; empty: it was sent as text.")]
    is_published: bool
    created_at: datetime
    updated_at: datetime
    flag: Annotated[str | None, Field(description="Why somebody should look at it.")]


class IngestedBody(DocumentBody):
    """A document that was taken in."""

    change: Annotated[Change, Field(description="unchanged: the same was there already.")]
    passages: Annotated[int, Field(description="How many it was cut into.")]

    @classmethod
    def of(cls, ingested: IngestedDocument) -> Self:
        told = DocumentBody.model_validate(ingested.document).model_dump()
        return cls(**told, change=ingested.change, passages=ingested.passages)


class PassageBody(BaseModel):
    """One passage, headed by where it stands."""

    model_config = ConfigDict(from_attributes=True)

    position: Annotated[int, Field(description="0 is the first.")]
    text: str


class WholeDocument(DocumentBody):
    """A document with its passages, in order."""

    passages: list[PassageBody]


class DocumentPage(BaseModel):
    """Documents by id."""

    items: list[DocumentBody]
    next_cursor: str | None


class PassageHit(BaseModel):
    """A passage that fits a question."""

    source: Source
    id: Annotated[str, Field(description="The document's id and the passage's position.")]
    text: str
    score: Annotated[float, Field(description="How well it fits, 0 to 1; the best of a search has 1.")]
    parts: dict[str, float]
    document_id: str
    title: str
    category: str

    @classmethod
    def of(cls, hit: Hit) -> Self:
        assert hit.document is not None
        document = {"document_id": hit.document.id, "title": hit.document.title, "category": hit.document.category}
        found = {"source": hit.source, "id": hit.id, "text": hit.text, "score": hit.score, "parts": dict(hit.parts)}
        return cls.model_validate(found | document)


class FoundPassages(BaseModel):
    """What fits a question best, best first."""

    hits: list[PassageHit]


class SkillFilter(Given):
    """Which skills to list."""

    is_query: ClassVar[bool] = True
    agent: Annotated[str, Field(description="Only what this agent gets.", examples=["atlas"])] = ""


class SkillBody(BaseModel):
    """What agents are taught by one file."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    description: str
    body: Annotated[str, Field(description="All of it: a skill is never cut.")]
    agents: Annotated[list[str], Field(description="Who gets it; empty: everybody.")]
    meta: Annotated[dict[str, Any], Field(description="What else the file's front matter says.")]


class SkillPage(BaseModel):
    """Skills by name."""

    items: list[SkillBody]
    next_cursor: str | None = None
    problems: Annotated[list[str], Field(description="What is wrong with the files; the last good ones stay in use.")]
