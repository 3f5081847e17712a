"""Erasure without a trace: `/api/erase`, for admins."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wellkept.model import ErasureFinding, Receipt
from wellkept.server.http.auth import CurrentTenant
from wellkept.server.http.routing import ADMIN, Router
from wellkept.server.rest.shapes import RecordBody, RequestBody, describes

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


@describes(ErasureFinding)
class FindingBody(RecordBody):
    """An item that a dry run found."""


@describes(Receipt)
class ReceiptBody(RecordBody):
    """Receipt of an erasure. It holds nothing of what was erased."""


@router.post("/erase", queue="upkeep", scope=ADMIN)
def erase(tenant: CurrentTenant, body: EraseBody) -> ReceiptBody:
    """Erase a subject permanently from every table, file and cache, and return a receipt."""
    return ReceiptBody.of(tenant.data.erase(**dict(body)))
