"""What services need of a store of conversations, events, workflows and keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from recollect.model import (
    ApiKey,
    AuditEvent,
    AuditHead,
    AuditReport,
    ContextCall,
    HeadCheck,
    Match,
    Memory,
    Message,
    Owner,
    Session,
    Workflow,
    WorkflowStep,
)

Place: TypeAlias = tuple[datetime, str]
"""Where a listing by time goes on: behind what has that time and that id, whether or not it is still there."""


def place_of(session: Session) -> Place:
    """Where a session stands in a listing."""
    return session.updated_at, session.id


class TranscriptStore(Protocol):
    """Conversations, each of one agent. Messages are only ever added at the end, or removed with their session."""

    def add_session(self, session: Session) -> Session:
        """The agent is made if need be.

        Raises: Conflict when the tenant has a session of that id.
        """

    def get_session(self, owner: Owner, id: str) -> Session:
        """Raises: NotFound."""

    def find_session(self, owner: Owner, id: str) -> Session | None: ...

    def find_tenant_session(self, tenant: str, id: str) -> Session | None:
        """The session of that id, whichever agent's it is."""

    def list_sessions(self, owner: Owner, *, before: Place | None = None, limit: int = 100) -> Sequence[Session]:
        """The one used last comes first."""

    def list_tenant_sessions(self, tenant: str, *, before: Place | None = None, limit: int = 100) -> Sequence[Session]:
        """The same of every agent."""

    def delete_session(self, owner: Owner, id: str) -> None:
        """Remove the session and its messages.

        Raises: NotFound.
        """

    def add_messages(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages with their positions, which follow each other and those before without a gap.

        Raises: NotFound.
        """

    def list_messages(
        self, owner: Owner, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        """In order, beginning behind position `after`; no limit means all.

        Raises: NotFound.
        """

    def update_summary(self, owner: Owner, session_id: str, summary: str, *, covers: int, instead_of: int) -> Session:
        """Write a summary of the first `covers` messages over the one that covered `instead_of`.

        Raises: NotFound; Conflict when the stored one covers another number by now.
        """


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


class ContextStore(Protocol):
    """The prompts that were put together for an agent, by ids and digests."""

    def add_context_calls(self, owner: Owner, calls: Sequence[ContextCall], *, keep: int) -> bool:
        """Keep these and forget the oldest beyond `keep`; False, and nothing is kept, when there is no such agent."""

    def get_context_call(self, owner: Owner, id: str) -> ContextCall:
        """Raises: NotFound."""

    def list_context_calls(
        self, owner: Owner, *, session_id: str = "", before: str = "", limit: int = 20
    ) -> Sequence[ContextCall]:
        """Newest first, of one session if one is named; `before` (an id) continues a listing."""

    def list_tool_results(self, owner: Owner, session_id: str, *, now: datetime, limit: int = 20) -> Sequence[Memory]:
        """Live memories of what tools said in a session, newest first."""


class KeyStore(Protocol):
    """A tenant's API keys, each with the hash of what its holder sends."""

    def add_key(self, key: ApiKey, hash: str) -> ApiKey:
        """Raises: Conflict when the tenant has a key of that id."""

    def find_key(self, tenant: str, id: str) -> tuple[ApiKey, str] | None:
        """The key and its hash."""

    def list_keys(self, tenant: str, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        """Oldest first, also those that no longer open anything, beginning behind `after`; None: all."""

    def revoke_key(self, tenant: str, id: str, *, at: datetime) -> None:
        """What was revoked before stays revoked since then.

        Raises: NotFound.
        """

    def mark_used(self, tenant: str, ids: Collection[str], *, at: datetime) -> None: ...


@dataclass(slots=True, kw_only=True)
class Claim:
    """One request's claim to an idempotency key, committed with the first write of the request."""

    tenant: str
    key_hash: str
    holder: str  # tells this request from others with the same key
    at: datetime
    expires_at: datetime
    is_written: bool = False  # the row is in the database
    is_lost: bool = False  # another request with the same key wrote first
    is_over: bool = False  # the request has ended; a thread that inherited the claim must not use it


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """The answer to a request that carried an idempotency key."""

    at: datetime
    request_hash: str = ""
    status: int | None = None  # None: not answered yet, or the server stopped before it could answer
    content_type: str = ""
    body: bytes | None = None  # None: not kept


CLAIM: ContextVar[Claim | None] = ContextVar("CLAIM", default=None)
"""The claim of the request at work. The store takes the key in the transaction of the first write it does for it."""


class IdempotencyStore(Protocol):
    """A tenant's idempotency keys, by their hash."""

    def find_answer(self, claim: Claim) -> KeptAnswer | None:
        """Return what is recorded under the claim's key, unless it has expired."""

    def keep_answer(self, claim: Claim, answer: KeptAnswer) -> None:
        """Record the answer, and the key too if the request wrote nothing, unless another request has the key."""

    def renew_key(self, claim: Claim, *, at: datetime, expires_at: datetime) -> None:
        """Record that the request is still at work, unless its answer is there or erased."""

    def prune_answers(self, tenant: str, *, created_until: datetime, max_bytes: int) -> int:
        """Delete keys as old as that, and the oldest ones beyond `max_bytes`. Return how many."""

    def erase_answers(self, tenant: str, *, with_keys: bool = False) -> int:
        """Delete the content of every answer, also of those still being worked out, apart from the one to the request
        that erases. Return how many those were. `with_keys` deletes the keys too."""
