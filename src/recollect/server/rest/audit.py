"""What was done, and whether the record of it is whole: `/api/audit`."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Query

from recollect.server.auth import CurrentTenant
from recollect.server.paging import read_page
from recollect.server.rest import cursor
from recollect.server.rest.answers import EventBody, EventPage
from recollect.server.rest.bodies import EventFilter
from recollect.server.rest.history_shapes import NewEvent, Verified

LISTING = "audit"

router = APIRouter(prefix="/api/audit", tags=["audit"])


@router.get("")
def list_events(tenant: CurrentTenant, wanted: Annotated[EventFilter, Query()]) -> EventPage:
    """What was done, newest first."""
    before = cursor.decode_number(LISTING, wanted.cursor) if wanted.cursor else None
    page = read_page(
        lambda before, limit: tenant.audit.search(wanted.q, before=before, limit=limit),
        attrgetter("id"),
        before,
        limit=wanted.limit,
    )
    return EventPage(
        items=[EventBody.of(each) for each in page.items], next_cursor=cursor.encode_next(LISTING, page.end)
    )


@router.post("", status_code=201)
def record_event(tenant: CurrentTenant, body: NewEvent) -> EventBody:
    """Put an event of your own into the log, for good. Agents find it by recall."""
    return EventBody.of(tenant.audit.record(body.action, body.message, agent=body.agent_id, meta=body.meta))


@router.get("/verify")
def verify_audit(tenant: CurrentTenant) -> Verified:
    """Walks the whole log: whether an event was changed after it was written, or one is missing."""
    return Verified.of(tenant.audit.verify())
