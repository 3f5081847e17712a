"""What all agents of a tenant know: its documents, and what each was cut into."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page
from recollect.server.auth import CurrentTenant

DOCUMENTS = 50
PASSAGES = 50

router = APIRouter(prefix=f"{PATH}/documents", include_in_schema=False)


@router.get("")
def list_documents(
    request: Request,
    tenant: CurrentTenant,
    category: Annotated[str, Query()] = "",
    after: Annotated[str, Query()] = "",
) -> Response:
    """By id; only those of a category if one is named."""
    found = tenant.list_documents(category=category, after=after, limit=DOCUMENTS + 1)
    shown = found[:DOCUMENTS]
    more = shown[-1].id if len(found) > DOCUMENTS else ""
    return page(request, "documents.html", documents=shown, category=category, more=more, is_first=not after)


@router.get("/{id}")
def show_document(
    request: Request,
    tenant: CurrentTenant,
    id: Annotated[str, Path()],
    begin: Annotated[int, Query(ge=0, lt=10**9)] = 0,
) -> Response:
    """A document's passages as they are found, in order, some at a time."""
    document, passages = tenant.get_document(id), tenant.list_passages(id)
    more = begin + PASSAGES if len(passages) > begin + PASSAGES else 0
    return page(
        request,
        "document.html",
        document=document,
        passages=passages[begin : begin + PASSAGES],
        count=len(passages),
        more=more,
        begin=begin,
    )
