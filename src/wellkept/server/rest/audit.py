"""The audit log: `/api/audit`."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from wellkept.model import AuditEvent, AuditHead, AuditReport
from wellkept.server.http.auth import CurrentTenant
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import PagedList, decode_number
from wellkept.server.rest.shapes import Page, Paging, RecordBody, RequestBody, WhereText, describes


class EventFilter(Paging):
    """Filter for audit events."""

    q: Annotated[str, Field(description="Only events with this in the message, ignoring case.")] = ""
    where: WhereText = ""


class NewEvent(RequestBody):
    """An event to record permanently."""

    action: Annotated[str, Field(description="A stable word with a dot.", examples=["order.refund"])]
    message: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["Refund of 30 euro approved"])]
    agent_id: Annotated[str | None, Field(description="The agent that did it.")] = None
    meta: Annotated[dict[str, Any], Field(default_factory=dict, description="Further data.")]


@describes(AuditEvent)
class EventBody(RecordBody):
    """An audit event; it never holds the text it is about."""

    actor: Annotated[str, Field(description="Id of the key, or name of the program; empty: unknown.")]


class EventPage(Page[EventBody]):
    """Audit events, newest first."""


@describes(AuditHead)
class HeadBody(RecordBody):
    """The last event of the audit log."""


@describes(AuditReport)
class VerifyAnswer(RecordBody):
    """Result of a verification."""


LISTING = PagedList[int | None]("audit", decode_number, None)

router = Router(prefix="/api/audit", tags=["audit"])


@router.get("", scope=READ)
def list_events(tenant: CurrentTenant, filters: Annotated[EventFilter, Query()]) -> EventPage:
    """List audit events, newest first."""
    search = partial(tenant.audit.search, filters.q, where=filters.where)
    found, cursor = LISTING.read(lambda before, limit: search(before=before, limit=limit), attrgetter("id"), filters)
    return EventPage(items=[EventBody.of(each) for each in found], next_cursor=cursor)


@router.post("", scope=WRITE, status_code=201)
def record_event(tenant: CurrentTenant, body: NewEvent) -> EventBody:
    """Record an event permanently. Agents find it by recall."""
    return EventBody.of(tenant.audit.record(body.action, body.message, agent=body.agent_id, meta=body.meta))


@router.get("/verify", queue="upkeep", scope=READ)
def verify_audit(tenant: CurrentTenant) -> VerifyAnswer:
    """Verify the whole log: find events that were changed or are missing."""
    report = tenant.audit.verify()
    return VerifyAnswer.of(report, ok=report.is_intact)
