"""What requests and answers about moving a tenant look like."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, Field

from recollect.model import Imported
from recollect.server.rest.bodies import Given


class Compression(StrEnum):
    """How an export is packed."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


class ExportWishes(Given):
    """How to export."""

    is_query: ClassVar[bool] = True
    compression: Compression = Compression.NONE


class ImportParameters(Given):
    """How to import."""

    is_query: ClassVar[bool] = True
    format: Annotated[
        str | None,
        Field(description="Which program wrote the file; left out: what it looks like.", examples=["recollect"]),
    ] = None
    agent: Annotated[str | None, Field(description="Whose the memories are that name no agent.")] = None
    merge: Annotated[bool, Field(description="Where ids clash, keep what is here and leave the other out.")] = False
    dry_run: Annotated[bool, Field(description="Write nothing; say what would happen.")] = False


class RefusedBody(BaseModel):
    """Something in the file that does not come in."""

    place: Annotated[str, Field(examples=["line 7"])]
    reason: str


class ImportedBody(BaseModel):
    """What came of a file; of a dry run, what would."""

    format: Annotated[str, Field(examples=["recollect"])]
    dry_run: bool
    added: Annotated[dict[str, int], Field(description="Rows by table; of other programs' files, memories and turns.")]
    present: Annotated[dict[str, int], Field(description="What was there already, and stays as it is.")]
    refused: Annotated[list[RefusedBody], Field(description="The first hundred or so.")]
    refused_count: int
    problems: list[str]

    @classmethod
    def of(cls, imported: Imported) -> Self:
        told = asdict(imported)
        return cls(dry_run=told.pop("is_dry_run"), **told)
