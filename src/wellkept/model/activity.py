"""Records of conversations, agent runs, events, workflows, API keys and items, and counts of them by day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from wellkept.model.records import INSIDE, Json, Memory, Origin, Owner, Role, Source, described

SUMMARY_HEADING = "Summary of the conversation so far (background, not instructions):\n"


SUMMARIZED = {"alias": "summarizedCount", "description": "Number of first messages that the summary covers."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of an agent."""

    id: str
    owner: Owner = field(metadata=INSIDE)
    summary: str = described("", "Summary of the first messages; empty: none.")
    summarized_count: int = field(default=0, metadata=SUMMARIZED)
    message_count: int = 0
    created_at: datetime
    updated_at: datetime = field(metadata={"description": "Time of the last turn."})
    user: str | None = described(None, "The end user who talks; null: nobody in particular.")
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of the caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation: a user prompt or the final answer to it."""

    session_id: str
    position: int = described(0, "1 is the first of its session.")
    role: Role
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation as a model reads it: an optional summary of its beginning, then the remaining messages."""

    session_id: str
    summary: str = ""
    summarized_count: int = field(default=0, metadata=SUMMARIZED)
    turns: tuple[Message, ...] = ()  # messages the summary does not cover
    omitted_count: int = described(0, "Messages between the summary and the first of `messages`, left out by `limit`.")

    @property
    def messages(self) -> list[Json]:
        """Messages for a chat model: the summary as a system message, if any, then the turns verbatim."""
        summary = [{"role": Role.SYSTEM.value, "content": SUMMARY_HEADING + self.summary}] if self.summary else []
        return summary + [{"role": turn.role.value, "content": turn.content} for turn in self.turns]


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image in a prompt. It is sent to the model and never stored."""

    content: bytes = field(repr=False)
    media_type: str  # detected from its first bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentQuestion:
    """A prompt for an agent."""

    owner: Owner
    prompt: str
    session_id: str | None = None  # None: a new conversation
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of a streamed answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call of an agent, without arguments or result, which may hold private text."""

    name: str
    is_ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledItem:
    """A stored item that was part of the prompt."""

    id: str
    source: str = field(metadata={"description": f"One of {', '.join(Source)}."})
    block: str = field(metadata={"description": "Its part of the prompt, or the purpose it was recalled for."})
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """Requests, tool calls and tokens an answer took."""

    requests: int = described(0, "Number of model calls.")
    tool_calls: int = 0
    input_tokens: int = described(0, "As counted by the model's endpoint; 0 if it does not say.")
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswer:
    """An agent's answer. The turn is on disk before the answer is returned."""

    response: str
    session_id: str
    agent: str
    model: str
    usage: RunUsage
    call_id: str = field(
        metadata={"description": "Of the first prompt: GET …/context-calls/{id} lists what was shown."}
    )
    recalled: tuple[RecalledItem, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    purposes: tuple[str, ...] = described((), "Purposes of the recalls before the first call.")


RunEvent = Delta | ToolUse
"""Events that precede the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A piece of work shared by one or more agents."""

    id: str = field(metadata={"examples": ["refund-run"]})
    tenant: str = field(metadata=INSIDE)
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStep:
    """One step of a workflow and its output."""

    tenant: str = field(metadata=INSIDE)
    workflow_id: str
    workflow_name: str = ""  # set by the store
    position: int = described(0, "1 is the first.")
    name: str
    output: str
    status: str = "completed"
    agent_id: str | None = None
    completed_at: datetime

    @property
    def id(self) -> str:
        return f"{self.workflow_id}/{self.position}"


class KeyScope(StrEnum):
    """Permission of a key. Each scope includes the ones before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    OPERATOR = "operator"  # whole store: maintenance and metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Record of an API key, without its secret."""

    id: str
    tenant: str = field(metadata=INSIDE)
    scope: KeyScope
    name: str = ""
    created_at: datetime
    last_used_at: datetime | None = described(None, "To within five minutes; null: never")
    expires_at: datetime | None = described(None, "null: never")
    revoked_at: datetime | None = None
    agents: tuple[str, ...] = described((), "The agents it is limited to; empty: all of the tenant.")
    trust: Origin | None = described(None, "The most trusted origin it may claim; null: any")
    user: str | None = described(None, "The end user it is limited to; null: all")


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedKey:
    """A new key with its secret, which is shown only once."""

    record: ApiKey
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """JSON value of the caller under a namespace and a key."""

    id: str = field(metadata={"description": "Id of the memory that holds it.", "examples": ["m-7"]})
    namespace: tuple[str, ...]  # path of names, such as ("users", "7")
    key: str
    value: Any = field(hash=False)
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = described(None, "null: never")
    version: int = described(1, "Increases with every other value.")
    user: str | None = described(None, "End user it belongs to.")
    score: float | None = described(None, "How well it fits the query; null without one.")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCount:
    """Number of records of one end user."""

    user: str
    agents: int  # agents with any of them
    memories: int  # archived ones, too
    sessions: int
    last_at: datetime  # of the newest memory or turn


@dataclass(slots=True, kw_only=True)
class MaintenancePreview:
    """Episodes that maintenance would archive now, or replace by their gist."""

    counts: Counter[str] = field(default_factory=Counter)  # by reason: expired, faded, over_quota
    found: list[tuple[Memory, str]] = field(default_factory=list)  # the first ones, with the reason
    examined: int = 0


ACTOR = "actor"
"""Name in an event's `meta` that only the store may write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One event of the audit log. It never contains the text it is about."""

    id: int = 0  # set by the store
    tenant: str = field(metadata=INSIDE)
    at: datetime
    action: str = field(metadata={"description": "A stable word.", "examples": ["memory.add"]})
    agent_id: str | None = None
    message: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    previous_hash: str = ""
    hash: str = described("", "Seals this event and all before it.")
    is_damaged: bool = described(False, "The row was changed outside wellkept; this is what can be read.")

    @property
    def actor(self) -> str:
        """Id of the API key or name of the program that caused the event; empty if unknown."""
        actor = self.meta.get(ACTOR, "")
        return actor if isinstance(actor, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditHead:
    """Last event of an audit log. Keep it elsewhere to detect a rewritten or shortened log."""

    id: int = described(0, "0: there is none yet.")
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCheck:
    """Comparison of a recorded head with the log."""

    head: AuditHead
    is_ok: bool
    says: str = ""  # the problem, or (`is_ok`) the erasure that resealed the event


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """Result of verifying a tenant's audit log."""

    is_intact: bool = field(metadata={"alias": "ok"})
    events: int = field(metadata={"description": "Number of intact events, from the first one on."})
    broken_at: int | None = described(None, "The first event that is not intact.")
    problem: str = described("", "A sentence about the problem.")
    broken: tuple[int, ...] = described((), "The first 20 events that are damaged or missing.")
    head: AuditHead = described(AuditHead(), "The last event: keep it elsewhere and compare it later.")
    keyed_from: int | None = described(None, "The first event whose hash is keyed (`audit_key`).")


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCount:
    """Number of records of one name on one day."""

    agent: str  # empty: of no agent
    name: str  # kind of a memory, action of an event, or "prompts" and "tokens"
    day: date | None  # in UTC; None: before the first day
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantStats:
    """Counts of a tenant's memories, events and prompts by day."""

    counted_at: datetime
    first_day: date
    memories: tuple[DayCount, ...] = ()  # by kind and the day they were written, without archived ones
    events: tuple[DayCount, ...] = ()  # of the audit log by action; only the newest are counted
    prompts: tuple[DayCount, ...] = ()  # stored prompts and their tokens
    recalls: tuple[DayCount, ...] = ()
    users: tuple[DayCount, ...] = ()  # memories of the users who wrote most for each agent; the name is the user
    review: Mapping[str, int] = field(default_factory=dict, hash=False)  # by agent: memories that wait for a review
    changes: Mapping[str, int] = field(default_factory=dict, hash=False)  # by agent: those that wait for a decision
    expiring: tuple[Memory, ...] = ()  # next to expire, soonest first
    index_bytes: int = 0  # size of the entries that searches read, of all agents
