"""Record history: the steps of workflows that agents complete together, and events that accompany a read."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from wellkept.errors import Conflict, Invalid, ReadOnly, SecretRejected
from wellkept.extension import Clock
from wellkept.history.rules_history import COMPLETED
from wellkept.language.names import check_agent
from wellkept.language.text import fold
from wellkept.model import AuditEvent, Workflow, WorkflowStep
from wellkept.secrets.check import SecretGuard

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


MAX_NAME_CHARS = 200
MAX_OUTPUT_CHARS = 100_000
MAX_ID_CHARS = 60
_STATUS = re.compile("[a-z][a-z_-]{0,39}")
_NOT_IN_IDS = re.compile("[^a-z0-9]+")


class RecordWorkflows:
    """Service for every change to workflows and steps."""

    def __init__(self, store: SqlStore, guard: SecretGuard, now: Clock) -> None:
        self._store = store
        self._guard = guard
        self._now = now

    def begin(self, tenant: str, name: str) -> Workflow:
        """Start a workflow with an id made of its name. Raises: Invalid, SecretRejected."""
        name = self._check_name(tenant, name, "workflow's name")
        return self._store.transaction(tenant, lambda: self._start(tenant, name))

    def record(
        self,
        tenant: str,
        *,
        workflow: str,
        step: str,
        output: str = "",
        agent: str | None = None,
        status: str = COMPLETED,
        is_new: bool = True,
    ) -> WorkflowStep:
        """Add a step to the workflow with this id, or else to the newest with this name.

        If there is none and `is_new` is set, start one.

        Raises: Invalid, SecretRejected; NotFound when there is no such workflow and `is_new` is not set.
        """
        name = self._check_name(tenant, workflow, "workflow's name")
        draft = WorkflowStep(
            tenant=tenant,
            workflow_id="",
            name=self._check_name(tenant, step, "step's name"),
            output=self._check_output(tenant, output),
            status=_check_status(status),
            agent_id=None if agent is None else check_agent(agent),
            completed_at=self._now(),
        )

        def write() -> WorkflowStep:
            found = self._store.find_workflow(tenant, name) if is_new else self._store.get_workflow(tenant, name)
            return self._add_step(draft, found or self._start(tenant, name, is_shared=True))

        return self._store.transaction(tenant, write)

    def _start(self, tenant: str, name: str, *, is_shared: bool = False) -> Workflow:
        """Add a workflow; with `is_shared`, return the one with that name if a concurrent call started it."""
        slug = _NOT_IN_IDS.sub("-", fold(name)).strip("-")[:MAX_ID_CHARS].strip("-") or "workflow"
        workflow = Workflow(id=slug, tenant=tenant, name=name, created_at=self._now())
        try:
            self._store.add_workflow(workflow)
        # The id is taken.
        except Conflict:
            other = self._store.find_workflow(tenant, name) if is_shared else None
            if other is not None:
                return other
            workflow = self._store.add_workflow(replace(workflow, id=f"{slug}-{uuid.uuid4().hex[:8]}"))
        self._record(tenant, "workflow.add", f"Workflow {workflow.id} was begun.", {"workflow": workflow.id}, None)
        return workflow

    def _add_step(self, draft: WorkflowStep, workflow: Workflow) -> WorkflowStep:
        step = self._store.add_step(replace(draft, workflow_id=workflow.id, workflow_name=workflow.name))
        message = f"Step {step.position} of workflow {workflow.id} was recorded: {step.status}."
        meta = {"workflow": workflow.id, "position": step.position, "status": step.status}
        self._record(step.tenant, "workflow.step", message, meta, step.agent_id)
        return step

    def _check_name(self, tenant: str, name: str, what: str) -> str:
        name = " ".join(name.split())
        if not 1 <= len(name) <= MAX_NAME_CHARS:
            raise Invalid(f"A {what} has 1 to {MAX_NAME_CHARS} characters.")
        if found := self._guard.findings(tenant, name):
            self._record_refusal(tenant, "its name")
            raise self._guard.refuse("name appears to contain a secret — not stored", rule=found[0].rule)
        return name

    def _check_output(self, tenant: str, output: str) -> str:
        if len(output) > MAX_OUTPUT_CHARS:
            most = f"A step's output has at most {MAX_OUTPUT_CHARS:,} characters"
            raise Invalid(f"{most}; store a longer one as a detail and record its reference.")
        try:
            return self._guard.check_text(tenant, output)
        except SecretRejected:
            self._record_refusal(tenant, "its output")
            raise

    def _record_refusal(self, tenant: str, what: str) -> None:
        self._record(tenant, "workflow.refuse", f"A step was refused: {what} seems to hold a secret.", {}, None)

    def _record(self, tenant: str, action: str, message: str, meta: Mapping[str, object], agent: str | None) -> None:
        event = AuditEvent(tenant=tenant, at=self._now(), action=action, agent_id=agent, message=message, meta=meta)
        self._store.add_event(event)


def _check_status(status: str) -> str:
    if not _STATUS.fullmatch(status):
        raise Invalid("A status must be a word in lower case, such as completed or failed.")
    return status


log = logging.getLogger("wellkept")


def record_event(store: SqlStore, event: AuditEvent) -> None:
    """Add an event to the audit log; if the store is read-only, log a warning instead."""
    try:
        store.add_event(event)
    except ReadOnly as error:
        log.warning("Event not added to the audit log (%s): %s", error, event.action)
