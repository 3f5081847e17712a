"""What agents did together, step by step: `/api/workflows`."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query

from recollect.server.auth import CurrentTenant
from recollect.server.paging import READ_LARGE_AT_ONCE, read_page
from recollect.server.rest import cursor
from recollect.server.rest.bodies import Paging
from recollect.server.rest.history_shapes import NewStep, NewWorkflow, StepBody, StepPage, WorkflowBody, WorkflowPage

LISTING, STEPS = "workflows", "steps"

router = APIRouter(prefix="/api/workflows", tags=["workflows"])
WorkflowId = Annotated[str, Path(description="The workflow's id.", examples=["refund-run"])]


@router.get("")
def list_workflows(tenant: CurrentTenant, paging: Annotated[Paging, Query()]) -> WorkflowPage:
    """All workflows, by id."""
    after = cursor.decode(LISTING, paging.cursor) if paging.cursor else ""
    page = read_page(
        lambda after, limit: tenant.list_workflows(after=after, limit=limit),
        attrgetter("id"),
        after,
        limit=paging.limit,
    )
    items = [WorkflowBody.model_validate(each) for each in page.items]
    return WorkflowPage(items=items, next_cursor=cursor.encode_next(LISTING, page.end))


@router.post("", status_code=201)
def create_workflow(tenant: CurrentTenant, body: NewWorkflow) -> WorkflowBody:
    """Begin a workflow. Its id is made of its name."""
    return WorkflowBody.model_validate(tenant.add_workflow(body.name))


@router.get("/{id}")
def get_workflow(tenant: CurrentTenant, id: WorkflowId) -> WorkflowBody:
    """One workflow."""
    return WorkflowBody.model_validate(tenant.get_workflow(id))


@router.get("/{id}/steps")
def list_steps(tenant: CurrentTenant, id: WorkflowId, paging: Annotated[Paging, Query()]) -> StepPage:
    """A workflow's steps, in order."""
    after = cursor.decode_number(STEPS, paging.cursor) if paging.cursor else 0
    page = read_page(
        lambda after, limit: tenant.list_steps(id, after=after, limit=limit),
        attrgetter("position"),
        after,
        limit=paging.limit,
        at_once=READ_LARGE_AT_ONCE,
    )
    items = [StepBody.model_validate(each) for each in page.items]
    return StepPage(items=items, next_cursor=cursor.encode_next(STEPS, page.end))


@router.post("/{id}/steps", status_code=201)
def record_step(tenant: CurrentTenant, id: WorkflowId, body: NewStep) -> StepBody:
    """Record a step and what came out of it. Every agent of the tenant finds it by recall."""
    step = tenant.record_step(
        workflow=id, step=body.step, output=body.output, agent=body.agent_id, status=body.status, is_new=False
    )
    return StepBody.model_validate(step)
