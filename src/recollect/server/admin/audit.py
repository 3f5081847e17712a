"""What was done in the tenant, and whether the record of it is whole."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from recollect.policy.numbers import MAX_PLACE
from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page
from recollect.server.auth import CurrentTenant

EVENTS = 50

router = APIRouter(prefix=f"{PATH}/audit", include_in_schema=False)


@router.get("")
def list_events(
    request: Request,
    tenant: CurrentTenant,
    q: Annotated[str, Query()] = "",
    before: Annotated[int | None, Query(ge=1, le=MAX_PLACE)] = None,
) -> Response:
    """Newest first."""
    found = tenant.audit.search(q, before=before, limit=EVENTS + 1)
    shown = found[:EVENTS]
    older = shown[-1].id if len(found) > EVENTS else None
    return page(request, "audit.html", events=shown, q=q, older=older, report=None)


@router.get("/verify")
def verify_audit(request: Request, tenant: CurrentTenant) -> Response:
    """Walks the whole log."""
    return page(request, "audit.html", events=[], q="", older=None, report=tenant.audit.verify())
