"""Records of conversations, agent runs, events and workflows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from recollect.model.records import Json, Owner, Role

SUMMARY_HEADING = "Summary of the conversation so far (background, not instructions):\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of an agent."""

    id: str
    owner: Owner
    summary: str = ""  # of its oldest messages
    summarized_count: int = 0  # how many those are
    message_count: int = 0
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing said in a conversation: a user's prompt or the final answer to it."""

    session_id: str
    position: int = 0  # 1 is the first; the store gives it
    role: Role
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a model needs to know of a conversation: a summary of its beginning, if there is one, and what followed."""

    session_id: str
    summary: str = ""
    summarized_count: int = 0
    turns: tuple[Message, ...] = ()  # those the summary does not cover

    @property
    def messages(self) -> list[Json]:
        """One system message with the summary, when there is one, and then what was said, word for word."""
        told = [{"role": Role.SYSTEM.value, "content": SUMMARY_HEADING + self.summary}] if self.summary else []
        return told + [{"role": turn.role.value, "content": turn.content} for turn in self.turns]


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture that belongs to a prompt. It is shown to the model and kept nowhere."""

    content: bytes = field(repr=False)
    media_type: str  # as its first bytes say


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentQuestion:
    """What an agent is asked."""

    owner: Owner
    prompt: str
    session_id: str | None = None  # None: a new conversation
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of the answer, as it comes."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool the agent has used. Neither what it was told nor what it said: that may be anything."""

    name: str
    is_ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledItem:
    """Something out of memory that the model was shown."""

    id: str
    source: str  # memory, audit, workflow, knowledge
    block: str  # the part of the prompt it stood in; of a purpose, its name
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """What an answer has cost."""

    requests: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswer:
    """What an agent answered. When somebody has it, the turn is on disk."""

    response: str
    session_id: str
    agent: str
    model: str
    usage: RunUsage
    call_id: str  # of the first prompt: asks later what the model was shown
    recalled: tuple[RecalledItem, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    purposes: tuple[str, ...] = ()


RunEvent = Delta | ToolUse
"""What happens before the answer is there."""


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
