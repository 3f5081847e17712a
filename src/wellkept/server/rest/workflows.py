"""Workflows and their steps: `/api/workflows`."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from wellkept.history.rules_history import COMPLETED
from wellkept.model import Workflow, WorkflowStep
from wellkept.server.http.auth import CurrentTenant
from wellkept.server.http.routing import READ, WRITE, Router
from wellkept.server.paging import READ_LARGE_AT_ONCE, PagedList, decode_cursor, decode_number
from wellkept.server.rest.shapes import Page, Paging, RecordBody, RequestBody, describes


class NewWorkflow(RequestBody):
    """A new workflow."""

    name: Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": 200}, examples=["Refund run"])]


class NewStep(RequestBody):
    """A step and its output."""

    step: Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": 200}, examples=["check receipt"])]
    output: Annotated[str, Field(description="At most 100,000 characters.", examples=["Receipt found"])] = ""
    agent_id: Annotated[str | None, Field(description="The agent that did it.", examples=["billing"])] = None
    status: Annotated[str, Field(description="Outcome: completed, failed, or another word.")] = COMPLETED
    is_new: Annotated[bool, Field(description="The path may have a name, and an unknown workflow is started.")] = False


@describes(Workflow)
class WorkflowBody(RecordBody):
    """A workflow."""


class WorkflowPage(Page[WorkflowBody]):
    """Workflows by id."""


@describes(WorkflowStep)
class StepBody(RecordBody):
    """A step of a workflow."""

    id: Annotated[str, Field(description="The id that recall returns.", examples=["refund-run/1"])]


class StepPage(Page[StepBody]):
    """The steps of a workflow, in order."""


LISTING = PagedList("workflows", decode_cursor, "")
STEPS = PagedList("steps", decode_number, 0, READ_LARGE_AT_ONCE)

router = Router(prefix="/api/workflows", tags=["workflows"])
WorkflowId = Annotated[str, Path(description="The workflow's id.", examples=["refund-run"])]


@router.get("", scope=READ)
def list_workflows(tenant: CurrentTenant, paging: Annotated[Paging, Query()]) -> WorkflowPage:
    """List all workflows, by id."""
    found, cursor = LISTING.read(
        lambda after, limit: tenant.workflows.list(after=after, limit=limit), attrgetter("id"), paging
    )
    return WorkflowPage(items=[WorkflowBody.of(each) for each in found], next_cursor=cursor)


@router.post("", scope=WRITE, status_code=201)
def create_workflow(tenant: CurrentTenant, body: NewWorkflow) -> WorkflowBody:
    """Start a workflow. Its id is derived from its name."""
    return WorkflowBody.of(tenant.workflows.create(body.name))


@router.get("/{id}", scope=READ)
def get_workflow(tenant: CurrentTenant, id: WorkflowId) -> WorkflowBody:
    """Return a workflow."""
    return WorkflowBody.of(tenant.workflows.get(id))


@router.get("/{id}/steps", scope=READ)
def list_steps(tenant: CurrentTenant, id: WorkflowId, paging: Annotated[Paging, Query()]) -> StepPage:
    """List the steps of a workflow, in order."""
    found, cursor = STEPS.read(
        lambda after, limit: tenant.workflows.steps(id, after=after, limit=limit), attrgetter("position"), paging
    )
    return StepPage(items=[StepBody.of(each) for each in found], next_cursor=cursor)


@router.post("/{id}/steps", scope=WRITE, status_code=201)
def record_step(tenant: CurrentTenant, id: WorkflowId, body: NewStep) -> StepBody:
    """Record a step and its output. Every agent of the tenant finds it by recall."""
    step = tenant.workflows.record(
        workflow=id, step=body.step, output=body.output, agent=body.agent_id, status=body.status, is_new=body.is_new
    )
    return StepBody.of(step)
