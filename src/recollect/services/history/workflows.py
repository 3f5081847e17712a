"""Recording what agents do together, step by step."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import replace

from recollect.errors import Conflict, Invalid, SecretRejected
from recollect.model import AuditEvent, Workflow, WorkflowStep
from recollect.policy.history import COMPLETED
from recollect.policy.names import checked_agent
from recollect.policy.text import checked_text, fold
from recollect.ports import Clock, Store
from recollect.services.memories.secrets import SecretGuard

MAX_NAME_CHARS = 200
MAX_OUTPUT_CHARS = 100_000
MAX_ID_CHARS = 60
_STATUS = re.compile("[a-z][a-z_-]{0,39}")
_NOT_IN_IDS = re.compile("[^a-z0-9]+")


class Workflows:
    """The one way workflows and steps are written."""

    def __init__(self, store: Store, guard: SecretGuard, now: Clock) -> None:
        self._store = store
        self._guard = guard
        self._now = now

    def begin(self, tenant: str, name: str) -> Workflow:
        """A new workflow, with an id made of its name.

        Raises: Invalid, SecretRejected.
        """
        name = self._name(tenant, name, "workflow's name")
        return self._store.transaction(tenant, lambda: self._begun(tenant, name))

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
        """Add a step to the workflow of this id, or else the newest of this name, which is made if there is none
        (unless not `is_new`).

        Raises: Invalid, SecretRejected; NotFound when there is no such workflow and none is to be made.
        """
        name = self._name(tenant, workflow, "workflow's name")
        drafted = WorkflowStep(
            tenant=tenant,
            workflow_id="",
            name=self._name(tenant, step, "step's name"),
            output=self._output(tenant, output),
            status=_checked_status(status),
            agent_id=None if agent is None else checked_agent(agent),
            completed_at=self._now(),
        )

        def write() -> WorkflowStep:
            found = self._store.find_workflow(tenant, name) if is_new else self._store.get_workflow(tenant, name)
            return self._added(drafted, found or self._begun(tenant, name, is_shared=True))

        return self._store.transaction(tenant, write)

    def _begun(self, tenant: str, name: str, *, is_shared: bool = False) -> Workflow:
        """A new workflow; `is_shared`: or the one of that name which somebody else began at this moment."""
        slug = _NOT_IN_IDS.sub("-", fold(name)).strip("-")[:MAX_ID_CHARS].strip("-") or "workflow"
        workflow = Workflow(id=slug, tenant=tenant, name=name, created_at=self._now())
        try:
            self._store.add_workflow(workflow)
        except Conflict:  # another one is called so already
            other = self._store.find_workflow(tenant, name) if is_shared else None
            if other is not None:
                return other
            workflow = self._store.add_workflow(replace(workflow, id=f"{slug}-{uuid.uuid4().hex[:8]}"))
        self._tell(tenant, "workflow.add", f"Workflow {workflow.id} was begun.", {"workflow": workflow.id}, None)
        return workflow

    def _added(self, drafted: WorkflowStep, workflow: Workflow) -> WorkflowStep:
        step = self._store.add_step(replace(drafted, workflow_id=workflow.id, workflow_name=workflow.name))
        message = f"Step {step.position} of workflow {workflow.id} was recorded: {step.status}."
        meta = {"workflow": workflow.id, "position": step.position, "status": step.status}
        self._tell(step.tenant, "workflow.step", message, meta, step.agent_id)
        return step

    def _name(self, tenant: str, name: str, what: str) -> str:
        name = " ".join(checked_text(name, what=what).split())
        if not 1 <= len(name) <= MAX_NAME_CHARS:
            raise Invalid(f"A {what} has 1 to {MAX_NAME_CHARS} characters.")
        if self._guard.findings(tenant, name):
            self._refused(tenant, "its name")
            raise SecretRejected("name appears to contain a secret — not stored")
        return name

    def _output(self, tenant: str, output: str) -> str:
        output = checked_text(output, what="output")
        if len(output) > MAX_OUTPUT_CHARS:
            most = f"A step's output has at most {MAX_OUTPUT_CHARS:,} characters"
            raise Invalid(f"{most}; store a longer one as a detail, and record the reference to it.")
        try:
            return self._guard.checked_text(tenant, output)
        except SecretRejected:
            self._refused(tenant, "its output")
            raise

    def _refused(self, tenant: str, what: str) -> None:
        self._tell(tenant, "workflow.refuse", f"A step was refused: {what} seems to hold a secret.", {}, None)

    def _tell(self, tenant: str, action: str, message: str, meta: Mapping[str, object], agent: str | None) -> None:
        event = AuditEvent(tenant=tenant, at=self._now(), action=action, agent_id=agent, message=message, meta=meta)
        self._store.add_event(event)


def _checked_status(status: object) -> str:
    if not isinstance(status, str) or not _STATUS.fullmatch(status):
        raise Invalid("A status is a word in lower case, such as completed or failed.")
    return status
