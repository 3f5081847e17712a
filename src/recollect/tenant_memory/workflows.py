"""What a tenant's agents did together."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.agent_memory import MAX_PAGE, PAGE
from recollect.caller import current_caller
from recollect.model import Workflow, WorkflowStep
from recollect.policy.history import COMPLETED
from recollect.policy.numbers import checked_whole
from recollect.policy.text import checked_text
from recollect.services.recall import checked_limit
from recollect.tenant_memory.view import TenantView


class Workflows(TenantView):
    """The verbs on workflows and their steps. Agents find the steps by recall."""

    def add_workflow(self, name: str) -> Workflow:
        """Begin a workflow; its id is made of its name.

        Raises: Invalid, SecretRejected.
        """
        return self._services.workflows.begin(self.id, name)

    def record_step(
        self,
        *,
        workflow: str,
        step: str,
        output: str = "",
        agent: str | None = None,
        status: str = COMPLETED,
        is_new: bool = True,
    ) -> WorkflowStep:
        """Add a step, and what came out of it, to the workflow with this id, or else the newest with this name. One
        that is not there is begun, unless `is_new` is false: then `workflow` is an id.

        Raises: Invalid, SecretRejected, NotFound, Forbidden.
        """
        agent = current_caller().own_agent(agent)
        if agent is not None:
            self._owner(agent)
        return self._services.workflows.record(
            self.id, workflow=workflow, step=step, output=output, agent=agent, status=status, is_new=is_new
        )

    def get_workflow(self, id: str) -> Workflow:
        """Raises: NotFound."""
        return self._store.get_workflow(self.id, checked_text(id, what="id"))

    def list_workflows(self, *, after: str = "", limit: int = PAGE) -> Sequence[Workflow]:
        """By id, beginning behind `after`.

        Raises: Invalid.
        """
        limit = checked_limit(limit, most=MAX_PAGE)
        return self._store.list_workflows(self.id, after=checked_text(after, what="after"), limit=limit)

    def list_steps(self, workflow: str, *, after: int = 0, limit: int = PAGE) -> Sequence[WorkflowStep]:
        """The steps of a workflow (its id) in order, beginning behind the position `after`.

        Raises: NotFound, Invalid.
        """
        limit, id, caller = checked_limit(limit, most=MAX_PAGE), checked_text(workflow, what="id"), current_caller()
        after = checked_whole(after, "`after` (a position)")
        found: list[WorkflowStep] = []
        while page := self._store.list_steps(self.id, id, after=after, limit=limit):
            found += [each for each in page if each.agent_id is None or caller.is_allowed(each.agent_id)]
            if len(found) >= limit or not caller.agents:
                break
            after = page[-1].position
        return found[:limit]
