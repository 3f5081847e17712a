"""Leaving no trace: `/api/erase`, for admins."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from recollect.server.auth import CurrentTenant
from recollect.server.rest.bodies import Given

router = APIRouter(prefix="/api", tags=["erasure"])


class Erasing(Given):
    """What to erase."""

    subject: Annotated[
        str,
        Field(
            description="agent:ID, session:ID, memory:AGENT/ID, tenant:ID for everything, or text:WORDS for all that "
            "mentions them. Without a kind, an id means what it names, and other words a text.",
            examples=["text:Mara Lindqvist"],
        ),
    ]
    dry_run: Annotated[bool, Field(description="Only list what would go.")] = False
    compact: Annotated[
        bool | None,
        Field(
            description="Write the database's files anew, for an operator's key; every tenant waits meanwhile. "
            "null: unused parts of SQLite's are overwritten."
        ),
    ] = None


class FindingBody(BaseModel):
    """One thing a dry run found."""

    model_config = ConfigDict(from_attributes=True)

    table: str
    agent: Annotated[str, Field(description="Whose it is; empty: nobody's.")]
    id: str
    is_cleared: Annotated[bool, Field(description="It stays, with a mark in place of its text.")]
    excerpt: str


class ReceiptBody(BaseModel):
    """What an erasure did. It holds nothing of what was erased."""

    model_config = ConfigDict(from_attributes=True)

    tenant: str
    subject: Annotated[str, Field(description="Such as agent:atlas; of a text only that it was one.")]
    subject_hash: str
    at: datetime
    is_dry_run: bool
    removed: Annotated[dict[str, int], Field(description="Rows by table.")]
    cleared: Annotated[dict[str, int], Field(description="Rows that stay, with a mark in place of their text.")]
    found: Annotated[list[FindingBody], Field(description="What would go, the first 1,000; only of a dry run.")]
    remains: Annotated[list[str], Field(description="What is kept by design.")]
    remnants: Annotated[list[str], Field(description="Where bytes may be left, and until when.")]
    events: Annotated[list[int], Field(description="The events of the audit log that tell of it.")]
    hash: Annotated[str, Field(description="Of all this, without what a dry run found.")]


@router.post("/erase")
def erase(tenant: CurrentTenant, body: Erasing) -> ReceiptBody:
    """Remove everything about a subject, for good, from every table, file and cache, and answer a receipt."""
    return ReceiptBody.model_validate(tenant.erase(body.subject, dry_run=body.dry_run, compact=body.compact))
