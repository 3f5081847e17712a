"""What requests and answers about workflows, steps and recorded events look like."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from recollect.model import AuditReport
from recollect.policy.history import COMPLETED
from recollect.server.rest.bodies import Given


class NewEvent(Given):
    """Something a program wants to have on record, for good."""

    action: Annotated[str, Field(description="A stable word with a dot.", examples=["order.refund"])]
    message: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["Refund of 30 euro approved"])]
    agent_id: Annotated[str | None, Field(description="Who did it.")] = None
    meta: Annotated[dict[str, Any], Field(default_factory=dict, description="What else is worth knowing.")]


class HeadBody(BaseModel):
    """The last event of the audit log."""

    id: Annotated[int, Field(description="0: there is none yet.")]
    hash: str


class Verified(BaseModel):
    """Whether the audit log is whole."""

    ok: bool
    events: Annotated[int, Field(description="How many fit, from the first one on.")]
    broken_at: Annotated[int | None, Field(description="The first event that does not fit.")]
    problem: Annotated[str, Field(description="What is wrong with it, as a sentence.")]
    broken: Annotated[list[int], Field(description="The first 20 events that do not fit or are missing.")]
    head: Annotated[HeadBody, Field(description="The last event: keep it elsewhere, and compare it later.")]
    keyed_from: Annotated[int | None, Field(description="The first event whose hash is keyed (`audit_key`).")]

    @classmethod
    def of(cls, report: AuditReport) -> Self:
        told = asdict(report)
        return cls(ok=told.pop("is_intact"), **told)


class NewWorkflow(Given):
    """A workflow to be begun."""

    name: Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": 200}, examples=["Refund run"])]


class NewStep(Given):
    """One step, and what came out of it."""

    step: Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": 200}, examples=["check receipt"])]
    output: Annotated[str, Field(description="At most 100,000 characters.", examples=["Receipt found"])] = ""
    agent_id: Annotated[str | None, Field(description="Who did it.", examples=["billing"])] = None
    status: Annotated[str, Field(description="How it ended: completed, failed, or a word of your own.")] = COMPLETED


class WorkflowBody(BaseModel):
    """A workflow."""

    model_config = ConfigDict(from_attributes=True)

    id: Annotated[str, Field(examples=["refund-run"])]
    name: str
    created_at: datetime


class WorkflowPage(BaseModel):
    """Workflows by id."""

    items: list[WorkflowBody]
    next_cursor: str | None


class StepBody(BaseModel):
    """One step of a workflow."""

    model_config = ConfigDict(from_attributes=True)

    id: Annotated[str, Field(description="As recall names it.", examples=["refund-run/1"])]
    workflow_id: str
    workflow_name: str
    position: Annotated[int, Field(description="1 is the first.")]
    name: str
    output: str
    status: str
    agent_id: str | None
    completed_at: datetime


class StepPage(BaseModel):
    """The steps of a workflow, in order."""

    items: list[StepBody]
    next_cursor: str | None
