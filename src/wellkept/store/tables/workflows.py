"""Rows of workflows and their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wellkept.errors import Conflict, NotFound
from wellkept.history.rules_history import MAX_SEARCHED, history_terms, step_words
from wellkept.model import Match, Workflow, WorkflowStep
from wellkept.store.engine import Row, Unit
from wellkept.store.search.words import HistoryShelf, WordSearchRows, encode_words
from wellkept.store.tables.rows import step_from, step_values, workflow_from, workflow_values

SHELF = "workflow"
NO_SUCH_WORKFLOW = "There is no such workflow."


class WorkflowRows(WordSearchRows):
    """Workflows and their steps, readable by every agent of the tenant.

    The tenant's shelf row numbers the steps; adding one locks it until commit.
    """

    def add_workflow(self, workflow: Workflow) -> Workflow:
        """Add a workflow. Raises: Conflict when the tenant has a workflow with that id."""

        def add(unit: Unit) -> int:
            unit.put("add_tenant", tenant=workflow.tenant, now=workflow.created_at)
            return unit.run("add_workflow", **workflow_values(workflow))

        if not self.write(workflow.tenant, add):
            raise Conflict(f"Workflow {workflow.id!r} already exists.")
        return workflow

    def get_workflow(self, tenant: str, id: str) -> Workflow:
        """Return one workflow. Raises: NotFound."""
        row = self.read(tenant, lambda unit: unit.one("find_workflow", tenant=tenant, id=id))
        if row is None:
            raise NotFound(NO_SUCH_WORKFLOW)
        return workflow_from(row)

    def find_workflow(self, tenant: str, name: str) -> Workflow | None:
        """Return the workflow with this id, or else the newest with this name."""

        def find(unit: Unit) -> Row | None:
            by_id = unit.one("find_workflow", tenant=tenant, id=name)
            return by_id if by_id is not None else unit.one("find_workflow_named", tenant=tenant, name=name)

        row = self.read(tenant, find)
        return None if row is None else workflow_from(row)

    def list_workflows(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Workflow]:
        """List workflows by id, starting after `after`."""
        rows = self.read(tenant, lambda unit: unit.all("list_workflows", tenant=tenant, after=after, limit=limit))
        return [workflow_from(row) for row in rows]

    def add_step(self, step: WorkflowStep) -> WorkflowStep:
        """Append a step to its workflow and return it with its position.

        Raises: NotFound when there is no such workflow.
        """
        tenant, words = step.tenant, encode_words(history_terms(step_words(step)))

        def add(unit: Unit) -> WorkflowStep:
            workflow = unit.one("find_workflow", tenant=tenant, id=step.workflow_id)
            if workflow is None:
                raise NotFound(NO_SUCH_WORKFLOW)
            unit.put("add_shelf", tenant=tenant, shelf=SHELF)
            number = unit.one("take_shelf_numbers", tenant=tenant, shelf=SHELF, count=1)
            last = unit.one("last_step", tenant=tenant, workflow_id=step.workflow_id)
            assert number is not None
            assert last is not None
            placed = replace(step, position=last[0] + 1, workflow_name=workflow_from(workflow).name)
            # Steps are searched by words, never by substring.
            unit.put("add_step", **step_values(placed), folded="")
            place = {"tenant_id": tenant, "workflow_id": step.workflow_id, "position": placed.position}
            unit.put("index_step", **place, seq=number[0], terms=words)
            return placed

        return self.write(tenant, add)

    def list_steps(self, tenant: str, workflow_id: str, *, after: int = 0, limit: int = 100) -> Sequence[WorkflowStep]:
        """List steps in order, starting after the position `after`. Raises: NotFound."""

        def read(unit: Unit) -> Sequence[Row]:
            if unit.one("find_workflow", tenant=tenant, id=workflow_id) is None:
                raise NotFound(NO_SUCH_WORKFLOW)
            return unit.all("list_steps", tenant=tenant, workflow_id=workflow_id, after=after, limit=limit)

        return [step_from(row) for row in self.read(tenant, read)]

    def find_steps(self, tenant: str, seqs: Sequence[int]) -> Mapping[int, WorkflowStep]:
        """Return the existing ones of these steps, by number."""
        if not seqs:
            return {}
        numbers = self._engine.numbers(seqs)
        rows = self.read(tenant, lambda unit: unit.all("find_steps", tenant=tenant, seqs=numbers))
        return {row[0]: step_from(row[1:]) for row in rows}

    def search_steps(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        """Find steps that share words with `query` among the newest `history.rules_history.MAX_SEARCHED`, best first.

        Scored like events.
        """
        return self._search_words(tenant, STEPS, history_terms(query), limit=limit)


def _last_step(unit: Unit) -> int:
    head = unit.one("steps_head", tenant=unit.tenant)
    return 0 if head is None else int(head[0])


def _steps_after(unit: Unit, seq: int, limit: int) -> Sequence[tuple[int, bytes]]:
    rows = unit.all("step_words_after", tenant=unit.tenant, seq=seq, limit=limit)
    return [(number, bytes(terms)) for number, terms in rows]


STEPS = HistoryShelf(SHELF, _last_step, _steps_after, MAX_SEARCHED)
