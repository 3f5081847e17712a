"""History of a tenant: the audit log, filtered and verified, and workflows with their steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import Depends, Path, Query
from fastapi.responses import Response

from wellkept.errors import Invalid
from wellkept.language.values import MAX_PLACE
from wellkept.memory.rules_filters import EQUAL, Comparison, Condition, join_conditions
from wellkept.model import AuditEvent
from wellkept.server.console.pages import AtTenant, fit_bytes, page_router, place
from wellkept.server.http.routing import READ

EVENTS = 50
WORKFLOWS = 100
STEPS = 50
IDS = re.compile(r"\b(m-[0-9]+|d-[0-9a-f]{16})\b")
"""Ids in the message of an event that have a page."""

GONE = (".delete", ".forget", ".prune")
"""Ends of actions after which an id has no page any more."""

router = page_router()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """Filters of the audit log, as typed; days are in UTC."""

    q: Annotated[str, Query()] = ""
    agent: Annotated[str, Query()] = ""
    action: Annotated[str, Query()] = ""
    actor: Annotated[str, Query()] = ""
    since: Annotated[str, Query()] = ""
    until: Annotated[str, Query()] = ""

    @property
    def is_narrowed(self) -> bool:
        return self != EventQuery()

    def address(self, **changes: object) -> str:
        """Return the address of the same listing with some filters changed."""
        names = ("q", "agent", "action", "actor", "since", "until")
        return place("audit", **{name: getattr(self, name) for name in names} | changes)

    def parse(self) -> Condition | None:
        """Return the filters other than the text as one condition. Raises: Invalid."""
        exact = (("agent", self.agent), ("action", self.action), ("actor", self.actor))
        parts: list[Condition] = [Comparison(name, EQUAL, value.strip()) for name, value in exact if value.strip()]
        if self.since:
            parts.append(Comparison("at", ">=", _parse_day(self.since)))
        if self.until:
            parts.append(Comparison("at", "<", _parse_day(self.until) + timedelta(days=1)))
        return join_conditions(*parts)


@router.get("/audit", scope=READ)
def list_events(
    visit: AtTenant,
    query: Annotated[EventQuery, Depends()],
    before: Annotated[int | None, Query(ge=1, le=MAX_PLACE)] = None,
) -> Response:
    """Show audit events, newest first."""
    try:
        found = visit.tenant.audit.search(query.q, where=query.parse(), before=before, limit=EVENTS + 1)
    except Invalid as error:
        return _audit_page(visit, query, problem=str(error))
    listed = found[:EVENTS]
    older = listed[-1].id if len(found) > EVENTS else None
    return _audit_page(visit, query, events=[(each, link_ids(each)) for each in listed], older=older)


@router.get("/audit/verify", queue="upkeep", scope=READ)
def verify_audit(visit: AtTenant) -> Response:
    """Verify the whole log."""
    return _audit_page(visit, EventQuery(), report=visit.tenant.audit.verify())


def _audit_page(visit: AtTenant, query: EventQuery, **values: Any) -> Response:
    shown = {"events": [], "older": None, "report": None} | values
    return visit.page("audit.html", query=query, head=visit.tenant.audit.head(), **shown)


def link_ids(event: AuditEvent) -> list[tuple[str, str]]:
    """Return the message of an event in pieces, each with the address of its page; empty if it has none.

    >>> event = AuditEvent(tenant="t", at=datetime(2026, 1, 1, tzinfo=UTC), action="memory.add", agent_id="ann",
    ...     message="Stored m-7.")
    >>> link_ids(event)
    [('Stored ', ''), ('m-7', '/admin/agents/ann/memories/m-7'), ('.', '')]
    """
    pieces = IDS.split(event.message)
    # Every second piece is an id.
    linked = [(piece, _find_page(event, piece) if number % 2 else "") for number, piece in enumerate(pieces)]
    return [(piece, address) for piece, address in linked if piece]


def _find_page(event: AuditEvent, id: str) -> str:
    if event.action.endswith(GONE):
        return ""
    if id.startswith("m-"):
        return place("agents", event.agent_id, "memories", id) if event.agent_id else ""
    return place("documents", id)


def _parse_day(text: str) -> datetime:
    """Raises: Invalid."""
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise Invalid("A day is written like 2026-01-31.") from None


@router.get("/workflows", scope=READ)
def list_workflows(visit: AtTenant, after: Annotated[str, Query()] = "") -> Response:
    """Show workflows by id."""
    found = visit.tenant.workflows.list(after=after, limit=WORKFLOWS + 1)
    more = found[WORKFLOWS - 1].id if len(found) > WORKFLOWS else ""
    return visit.page("workflows.html", workflows=found[:WORKFLOWS], more=more, is_first=not after)


@router.get("/workflows/{id}", scope=READ)
def show_workflow(
    visit: AtTenant, id: Annotated[str, Path()], after: Annotated[int, Query(ge=0, le=MAX_PLACE)] = 0
) -> Response:
    """Show the steps of a workflow and their output, in order."""
    workflow = visit.tenant.workflows.get(id)
    found = visit.tenant.workflows.steps(id, after=after, limit=STEPS + 1)
    listed = fit_bytes(found[:STEPS], lambda step: step.output)
    more = listed[-1].position if len(listed) < len(found) else 0
    return visit.page("workflow.html", workflow=workflow, steps=listed, more=more, after=after)
