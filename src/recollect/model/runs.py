"""Records of an agent at work: what it is asked, what happens meanwhile, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from recollect.model.records import Owner


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
