"""What agents did together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A piece of work that several agents may have a hand in."""

    id: str
    tenant: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStep:
    """One step of a workflow, and what came out of it."""

    tenant: str
    workflow_id: str
    workflow_name: str = ""  # the store fills it in
    position: int = 0  # 1 is the first; the store gives it
    name: str
    output: str
    status: str = "completed"
    agent_id: str | None = None
    completed_at: datetime

    @property
    def id(self) -> str:
        return f"{self.workflow_id}/{self.position}"
