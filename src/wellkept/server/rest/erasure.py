"""Erasure without a trace: `/api/erase`, for admins."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from wellkept.server.http.auth import CurrentTenant
from wellkept.server.http.routes import Router
from wellkept.server.http.routing import ADMIN
from wellkept.server.rest.shapes import RecordBody, RequestBody

router = Router(prefix="/api", tags=["erasure"])


class EraseBody(RequestBody):
    """The subject to erase."""

    subject: Annotated[
        str,
        Field(
            description="user:ID, agent:ID, session:ID, memory:AGENT/ID, tenant:ID for everything, or text:WORDS for "
            "all that mentions them. Without a kind, an existing id is meant, otherwise a text.",
            examples=["text:Mara Lindqvist"],
        ),
    ]
    dry_run: Annotated[bool, Field(description="Only list what would be erased.")] = False
    compact: Annotated[
        bool | None,
        Field(
            description="Rewrite the database files. Takes an operator's key, because every tenant waits meanwhile. "
            "null: overwrite unused parts of SQLite's."
        ),
    ] = None
    with_agents: Annotated[
        bool | None,
        Field(
            description="Delete agents whose ids are made from the words of a text, or keep them. null: delete them "
            "for several words, and answer 409 for a single one."
        ),
    ] = None


class FindingBody(RecordBody):
    """An item that a dry run found."""

    table: str
    agent: Annotated[str, Field(description="Its agent; empty: none.")]
    id: str
    is_cleared: Annotated[bool, Field(description="It stays, with a mark instead of its text.")]
    excerpt: str


class ReceiptBody(RecordBody):
    """Receipt of an erasure. It holds nothing of what was erased."""

    tenant: str
    subject: Annotated[str, Field(description="Such as agent:atlas; the words of a text are left out.")]
    subject_hash: str
    at: datetime
    is_dry_run: bool
    removed: Annotated[dict[str, int], Field(description="Rows by table.")]
    cleared: Annotated[dict[str, int], Field(description="Rows that stay, with a mark instead of their text.")]
    found: Annotated[list[FindingBody], Field(description="What would be erased, the first 1,000; only for a dry run.")]
    remains: Annotated[list[str], Field(description="What stays by design.")]
    remnants: Annotated[list[str], Field(description="Where bytes may remain, and until when.")]
    events: Annotated[list[int], Field(description="Its events in the audit log.")]
    hash: Annotated[str, Field(description="Hash of the receipt, without the findings.")]


@router.post("/erase", scope=ADMIN)
def erase(tenant: CurrentTenant, body: EraseBody) -> ReceiptBody:
    """Erase a subject permanently from every table, file and cache, and return a receipt."""
    return ReceiptBody.of(tenant.erase(**dict(body)))
