"""What was done, and what a tenant has allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from recollect.model import AuditEvent, AuditHead, AuditReport, HeadCheck, Match, Workflow, WorkflowStep


class AuditStore(Protocol):
    """What was done, in order, with a hash chain over it."""

    def add_event(self, event: AuditEvent) -> AuditEvent:
        """The event with its number, its hash and the current caller as its actor.

        Raises: ReadOnly when the log is keyed with another key than ours.
        """

    def list_events(
        self,
        tenant: str,
        *,
        needle: str = "",
        agents: Collection[str] = (),
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[AuditEvent]:
        """Newest first; `needle` matches anywhere in the message, ignoring case; only events of `agents`, if any are
        named. What was damaged is marked."""

    def find_events(self, tenant: str, ids: Sequence[int]) -> Mapping[int, AuditEvent]:
        """Those that exist, by number."""

    def search_events(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        """Of the newest events (`policy.history.MAX_SEARCHED`) those that share words with `query`, best first; the
        score is how much of the question a message holds, 0 to 1, rare words counting more."""

    def verify_events(self, tenant: str) -> AuditReport:
        """Walk the chain from its first event to its last, also behind what is broken."""

    def audit_head(self, tenant: str) -> AuditHead:
        """The last event's number and hash."""

    def check_heads(self, tenant: str, heads: Sequence[AuditHead]) -> Sequence[HeadCheck]:
        """Whether each of these was the log's last event once."""


class WorkflowStore(Protocol):
    """What agents did together, step by step; every agent of the tenant may read it."""

    def add_workflow(self, workflow: Workflow) -> Workflow:
        """Raises: Conflict when the tenant has a workflow of that id."""

    def get_workflow(self, tenant: str, id: str) -> Workflow:
        """Raises: NotFound."""

    def find_workflow(self, tenant: str, name: str) -> Workflow | None:
        """The one with this id, or else the newest with this name."""

    def list_workflows(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Workflow]:
        """By id, beginning behind `after`."""

    def add_step(self, step: WorkflowStep) -> WorkflowStep:
        """The step with its position, behind all others of its workflow.

        Raises: NotFound when there is no such workflow.
        """

    def list_steps(self, tenant: str, workflow_id: str, *, after: int = 0, limit: int = 100) -> Sequence[WorkflowStep]:
        """In order, beginning behind the position `after`.

        Raises: NotFound.
        """

    def find_steps(self, tenant: str, seqs: Sequence[int]) -> Mapping[int, WorkflowStep]:
        """Those that exist, by the number a search gave."""

    def search_steps(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        """Of the newest steps (`policy.history.MAX_SEARCHED`) those that share words with `query`, best first, scored
        as events are."""


class AllowanceStore(Protocol):
    """What a tenant has said is no secret, by hash."""

    def add_allowance(self, tenant: str, hash: str, *, now: datetime) -> None: ...

    def list_allowances(self, tenant: str) -> Collection[str]: ...

    def delete_allowance(self, tenant: str, hash: str) -> None: ...
