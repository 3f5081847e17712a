"""The audit log, `/api/audit`, and workflows with their steps, `/api/workflows`."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from wellkept.history.rules_history import COMPLETED
from wellkept.model import AuditEvent, AuditHead, AuditReport, Workflow, WorkflowStep
from wellkept.server.http.auth import CurrentTenant
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import READ_LARGE_AT_ONCE, PagedList, decode_cursor, decode_number
from wellkept.server.rest import shapes
from wellkept.server.rest.shapes import RecordBody, RequestBody, describes, field


class EventFilter(shapes.Paging):
    """Filter for audit events."""

    q: str = field("", "Only events with this in the message, ignoring case.")
    where: shapes.WhereText = ""


class NewEvent(RequestBody):
    """An event to record permanently."""

    action: str = field(description="A stable word with a dot.", example="order.refund")
    message: str = field(minLength=1, example="Refund of 30 euro approved")
    agent_id: str | None = field(None, "The agent that did it.")
    meta: dict[str, Any] = Field(default_factory=dict, description="Further data.")


@describes(AuditEvent)
class EventBody(RecordBody):
    """An audit event; it never holds the text it is about."""

    actor: str = field(description="Id of the key, or name of the program; empty: unknown.")


class EventPage(shapes.Page[EventBody]):
    """Audit events, newest first."""


@describes(AuditHead)
class HeadBody(RecordBody):
    """The last event of the audit log."""


@describes(AuditReport)
class VerifyAnswer(RecordBody):
    """Result of a verification."""


LISTING = PagedList[int | None]("audit", decode_number, attrgetter("id"), None, direction="before")

router = Router(prefix="/api")


@router.get("/audit", scope=READ, tags=["audit"])
def list_events(tenant: CurrentTenant, filters: Annotated[EventFilter, Query()]) -> EventPage:
    """List audit events, newest first."""
    search = partial(tenant.audit.search, filters.q, where=filters.where)
    found, cursor = LISTING.read(search, filters)
    return EventPage(items=[EventBody.of(each) for each in found], next_cursor=cursor)


@router.post("/audit", scope=WRITE, tags=["audit"], status_code=201)
def record_event(tenant: CurrentTenant, body: NewEvent) -> EventBody:
    """Record an event permanently. Agents find it by recall."""
    return EventBody.of(tenant.audit.record(body.action, body.message, agent=body.agent_id, meta=body.meta))


@router.get("/audit/verify", queue="upkeep", scope=READ, tags=["audit"])
def verify_audit(tenant: CurrentTenant) -> VerifyAnswer:
    """Verify the whole log: find events that were changed or are missing."""
    report = tenant.audit.verify()
    return VerifyAnswer.of(report, ok=report.is_intact)


class NewWorkflow(RequestBody):
    """A new workflow."""

    name: str = field(minLength=1, maxLength=200, example="Refund run")


class NewStep(RequestBody):
    """A step and its output."""

    step: str = field(minLength=1, maxLength=200, example="check receipt")
    output: str = field("", "At most 100,000 characters.", example="Receipt found")
    agent_id: str | None = field(None, "The agent that did it.", example="billing")
    status: str = field(COMPLETED, "Outcome: completed, failed, or another word.")
    is_new: bool = field(False, "The path may have a name, and an unknown workflow is started.")


@describes(Workflow)
class WorkflowBody(RecordBody):
    """A workflow."""


class WorkflowPage(shapes.Page[WorkflowBody]):
    """Workflows by id."""


@describes(WorkflowStep)
class StepBody(RecordBody):
    """A step of a workflow."""

    id: str = field(description="The id that recall returns.", example="refund-run/1")


class StepPage(shapes.Page[StepBody]):
    """The steps of a workflow, in order."""


WORKFLOWS = PagedList("workflows", decode_cursor, attrgetter("id"), "")
STEPS = PagedList("steps", decode_number, attrgetter("position"), 0, READ_LARGE_AT_ONCE)

WorkflowId = Annotated[str, Path(description="The workflow's id.", examples=["refund-run"])]


@router.get("/workflows", scope=READ, tags=["workflows"])
def list_workflows(tenant: CurrentTenant, paging: Annotated[shapes.Paging, Query()]) -> WorkflowPage:
    """List all workflows, by id."""
    found, cursor = WORKFLOWS.read(tenant.workflows.list, paging)
    return WorkflowPage(items=[WorkflowBody.of(each) for each in found], next_cursor=cursor)


@router.post("/workflows", scope=WRITE, tags=["workflows"], status_code=201)
def create_workflow(tenant: CurrentTenant, body: NewWorkflow) -> WorkflowBody:
    """Start a workflow. Its id is derived from its name."""
    return WorkflowBody.of(tenant.workflows.create(body.name))


@router.get("/workflows/{id}", scope=READ, tags=["workflows"])
def get_workflow(tenant: CurrentTenant, id: WorkflowId) -> WorkflowBody:
    """Return a workflow."""
    return WorkflowBody.of(tenant.workflows.get(id))


@router.get("/workflows/{id}/steps", scope=READ, tags=["workflows"])
def list_steps(tenant: CurrentTenant, id: WorkflowId, paging: Annotated[shapes.Paging, Query()]) -> StepPage:
    """List the steps of a workflow, in order."""
    found, cursor = STEPS.read(partial(tenant.workflows.steps, id), paging)
    return StepPage(items=[StepBody.of(each) for each in found], next_cursor=cursor)


@router.post("/workflows/{id}/steps", scope=WRITE, tags=["workflows"], status_code=201)
def record_step(tenant: CurrentTenant, id: WorkflowId, body: NewStep) -> StepBody:
    """Record a step and its output. Every agent of the tenant finds it by recall."""
    step = tenant.workflows.record(
        workflow=id, step=body.step, output=body.output, agent=body.agent_id, status=body.status, is_new=body.is_new
    )
    return StepBody.of(step)
