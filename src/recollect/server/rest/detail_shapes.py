"""What requests and answers about details look like."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field, Strict

from recollect.model import Detail, DetailPage, Json
from recollect.policy.details.keys import MAX_CHARS, MAX_CONTEXT_LINES, MAX_DESCRIPTION_CHARS, PAGE_CHARS, PART_CHARS
from recollect.policy.details.references import reference
from recollect.server.rest.bodies import Given, Paging, Patch


class NewDetail(Given):
    """A big text to be kept."""

    content: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["added 212 packages\n"])]
    description: Annotated[
        str,
        Field(
            description="One line for the reference; empty: what the text seems to be.",
            json_schema_extra={"maxLength": MAX_DESCRIPTION_CHARS},
            examples=["npm install"],
        ),
    ] = ""
    type: Annotated[str, Field(description="command_output, file_content, api_response …")] = "text"
    session_id: str | None = None
    metadata: Annotated[
        dict[str, Any] | None,
        Field(description="Such as source, status, duration.", examples=[{"source": "npm install"}]),
    ] = None


class DetailPatch(Patch):
    """Whether a detail is found and read."""

    is_active: Annotated[bool, Strict()] = True


class DetailFilter(Paging):
    """Which details to list."""

    q: Annotated[str, Field(description="Words; those details first that have most of them.")] = ""
    session_id: Annotated[str | None, Field(description="Only those of this session.")] = None


class PartWanted(Given):
    """Which part of a text to answer with; besides offset and limit at most one of them."""

    is_query: ClassVar[bool] = True
    offset: Annotated[int, Field(description="From this character on.", json_schema_extra={"minimum": 0})] = 0
    limit: Annotated[
        int | None,
        Field(
            description=f"Characters at most; default {PAGE_CHARS:,}, with one of the others {PART_CHARS:,}.",
            json_schema_extra={"minimum": 1, "maximum": MAX_CHARS},
        ),
    ] = None
    lines: Annotated[str | None, Field(description="Such as 120-180, 120 or 120-.", examples=["120-180"])] = None
    head: Annotated[int | None, Field(description="So many first lines.")] = None
    tail: Annotated[int | None, Field(description="So many last lines.")] = None
    grep: Annotated[
        str | None, Field(description="Lines that hold this, ignoring case; between slashes a regular expression.")
    ] = None
    context: Annotated[
        int,
        Field(
            description="Lines shown around each match.", json_schema_extra={"minimum": 0, "maximum": MAX_CONTEXT_LINES}
        ),
    ] = 2
    json_path: Annotated[str | None, Field(description="RFC 9535.", examples=["$.items[*].name"])] = None


class DetailBody(BaseModel):
    """What is known about a big text."""

    memory_key: str
    reference: Annotated[str, Field(description="What stands for the text in a prompt.")]
    type: str
    description: str
    summary: str
    session_id: str | None
    metadata: dict[str, Any]
    size: Annotated[int, Field(description="Bytes as UTF-8.")]
    chars: int
    lines: int
    is_active: bool
    created_at: datetime

    @classmethod
    def of(cls, detail: Detail) -> Self:
        named: Json = {"memory_key": detail.key, "reference": reference(detail.key, detail.description)}
        return cls(**named, **{name: getattr(detail, name) for name in cls.model_fields if name not in named})


class DetailList(BaseModel):
    """Details: the best first when words were given, else the newest."""

    items: list[DetailBody]
    next_cursor: str | None


class PartBody(BaseModel):
    """A part of a big text, and what remains of it."""

    memory_key: str
    content: str
    offset: Annotated[int, Field(description="Where in the text it begins, in characters.")]
    total: Annotated[int, Field(description="Characters of the text; with json_path, of the answer.")]
    next_offset: Annotated[int | None, Field(description="Where to go on; null: nothing follows.")]
    first_line: Annotated[int | None, Field(description="Of the content, counted from 1; null: it is no run of lines.")]
    last_line: int | None
    total_lines: int
    matches: Annotated[int | None, Field(description="With grep and json_path, how many are in the content.")]
    remaining: Annotated[str, Field(description="What there is besides, and how to ask for it.")]

    @classmethod
    def of(cls, page: DetailPage) -> Self:
        return cls(memory_key=page.key, **{n: getattr(page, n) for n in cls.model_fields if n != "memory_key"})
