"""Protocols for conversations, events, workflows and keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from wellkept.model import (
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

if TYPE_CHECKING:
    from wellkept.memory.rules_conditions import Condition

if TYPE_CHECKING:
    from wellkept.memory.rules_conditions import Condition

Place: TypeAlias = tuple[datetime, str]
"""Cursor of a listing by time: continue after this time and id, even if that record has been deleted."""


def place_of(session: Session) -> Place:
    """Return the cursor of a session."""
    return session.updated_at, session.id


class TranscriptStore(Protocol):
    """Conversations of agents. Messages are only appended, or removed with their session."""

    def add_session(self, session: Session, *, claims: bool = False) -> Session:
        """Add a session; create the agent if necessary.

        With `claims`, details of no user that were stored with its id before get its user.

        Raises: Conflict when the tenant has a session with that id.
        """

    def get_session(self, owner: Owner, id: str) -> Session:
        """Return one session. Raises: NotFound."""

    def find_session(self, owner: Owner, id: str) -> Session | None: ...

    def find_tenant_session(self, tenant: str, id: str) -> Session | None:
        """Return the session with that id, of any agent."""

    def list_sessions(
        self, owner: Owner, *, where: Condition | None = None, before: Place | None = None, limit: int = 100
    ) -> Sequence[Session]:
        """List sessions that meet `where`, most recently used first."""

    def list_tenant_sessions(
        self, tenant: str, *, where: Condition | None = None, before: Place | None = None, limit: int = 100
    ) -> Sequence[Session]:
        """List sessions of all agents that meet `where`, most recently used first."""

    def delete_session(self, owner: Owner, id: str) -> None:
        """Delete the session and its messages. Raises: NotFound."""

    def add_messages(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> Sequence[Message]:
        """Append messages and return them with their positions, which have no gaps. Raises: NotFound."""

    def list_messages(
        self, owner: Owner, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        """List messages in order, starting after position `after`; `limit` None returns all. Raises: NotFound."""

    def update_summary(self, owner: Owner, session_id: str, summary: str, *, covers: int, instead_of: int) -> Session:
        """Replace the summary that covered `instead_of` messages by one that covers the first `covers`.

        Raises: NotFound; Conflict when the stored summary covers another number by now.
        """


class AuditStore(Protocol):
    """Audit events in order, linked by a hash chain."""

    def add_event(self, event: AuditEvent, *, is_sealed: bool = False) -> AuditEvent:
        """Add an event; return it with its number, its hash and the current caller as actor.

        Within a `transaction` it may get its number and hash only after the commit, unless `is_sealed`.

        Raises: ReadOnly when the log was written with another audit key.
        """

    def list_events(
        self,
        tenant: str,
        *,
        needle: str = "",
        where: Condition | None = None,
        agents: Collection[str] = (),
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[AuditEvent]:
        """List events, newest first.

        `needle` matches anywhere in the message, ignoring case; `where` is a condition on action, agent, actor and at;
        `agents` limits the listing to these agents. Damaged events are marked.
        """

    def find_events(self, tenant: str, ids: Sequence[int]) -> Mapping[int, AuditEvent]:
        """Return the existing ones of these events, by number."""

    def search_events(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        """Find events that share words with `query` among the newest `history.rules_history.MAX_SEARCHED`, best first.

        The score is the share of the query found in the message, 0 to 1, weighted by the rarity of the words.
        """

    def verify_events(self, tenant: str) -> AuditReport:
        """Verify the whole chain, continuing after broken links."""

    def audit_head(self, tenant: str) -> AuditHead:
        """Return the number and hash of the last event."""

    def check_heads(self, tenant: str, heads: Sequence[AuditHead]) -> Sequence[HeadCheck]:
        """Check for each head if it once was the last event of this log."""


class WorkflowStore(Protocol):
    """Workflows and their steps, readable by every agent of the tenant."""

    def add_workflow(self, workflow: Workflow) -> Workflow:
        """Add a workflow. Raises: Conflict when the tenant has a workflow with that id."""

    def get_workflow(self, tenant: str, id: str) -> Workflow:
        """Return one workflow. Raises: NotFound."""

    def find_workflow(self, tenant: str, name: str) -> Workflow | None:
        """Return the workflow with this id, or else the newest with this name."""

    def list_workflows(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Workflow]:
        """List workflows by id, starting after `after`."""

    def add_step(self, step: WorkflowStep) -> WorkflowStep:
        """Append a step to its workflow and return it with its position.

        Raises: NotFound when there is no such workflow.
        """

    def list_steps(self, tenant: str, workflow_id: str, *, after: int = 0, limit: int = 100) -> Sequence[WorkflowStep]:
        """List steps in order, starting after the position `after`. Raises: NotFound."""

    def find_steps(self, tenant: str, seqs: Sequence[int]) -> Mapping[int, WorkflowStep]:
        """Return the existing ones of these steps, by number."""

    def search_steps(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        """Find steps that share words with `query` among the newest `history.rules_history.MAX_SEARCHED`, best first.

        Scored like events.
        """


class AllowanceStore(Protocol):
    """Hashes of texts a tenant has declared not to be secrets."""

    def add_allowance(self, tenant: str, hash: str, *, now: datetime) -> None: ...

    def list_allowances(self, tenant: str) -> Collection[str]: ...

    def delete_allowance(self, tenant: str, hash: str) -> None: ...


class ContextStore(Protocol):
    """Prompts assembled for an agent, stored as ids and digests."""

    def add_context_calls(self, owner: Owner, calls: Sequence[ContextCall], *, keep: int) -> bool:
        """Add calls and delete the oldest beyond `keep`; return False and store nothing if there is no such agent."""

    def get_context_call(self, owner: Owner, id: str) -> ContextCall:
        """Return one call. Raises: NotFound."""

    def list_context_calls(
        self, owner: Owner, *, session_id: str = "", before: str = "", limit: int = 20, item: str | None = None
    ) -> Sequence[ContextCall]:
        """List calls, newest first, optionally of one session; `before` (an id) continues a listing.

        With `item`, blocks hold only items with this id; with an empty one, none. A prompt may have considered
        thousands.
        """

    def add_shown(self, owner: Owner, hashes: Collection[str], *, at: datetime, since: datetime, keep: int) -> bool:
        """Remember the newest `keep` hashes of texts shown after `since`; return False if there is no such agent."""

    def find_shown(self, owner: Owner, hashes: Collection[str], *, since: datetime) -> Collection[str]:
        """Return those of the hashes that were shown after `since`, by whatever process."""

    def forget_shown(self, tenant: str) -> None:
        """Delete the hashes of a tenant's shown texts."""

    def list_tool_results(self, owner: Owner, session_id: str, *, now: datetime, limit: int = 20) -> Sequence[Memory]:
        """List live memories of tool results in a session, newest first."""


class KeyStore(Protocol):
    """API keys of a tenant, stored with the hash of the secret."""

    def add_key(self, key: ApiKey, hash: str) -> ApiKey:
        """Add a key. Raises: Conflict when the tenant has a key with that id."""

    def find_key(self, tenant: str, id: str) -> tuple[ApiKey, str] | None:
        """Return the key and its hash."""

    def list_keys(self, tenant: str, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        """List keys, oldest first, including revoked and expired ones, starting after `after`; `limit` None returns
        all.
        """

    def list_tenants_with_keys(self) -> Sequence[str]:
        """List the tenants that may have a key."""

    def lease_tokens(self, name: str, want: int, *, rate: float, burst: int) -> tuple[int, float]:
        """Take up to `want` tokens from a bucket that refills at `rate` a second up to `burst`.

        Returns the number of tokens, and the seconds until the bucket is full. On PostgreSQL only, by its clock.
        """

    def note_no_key(self, tenant: str) -> None:
        """Note that a tenant has no key, if that is so."""

    def revoke_key(self, tenant: str, id: str, *, at: datetime) -> None:
        """Revoke a key; an earlier revocation keeps its time. Raises: NotFound."""

    def mark_used(self, tenant: str, ids: Collection[str], *, at: datetime) -> None: ...

    def add_login(self, login: ConsoleLogin, *, at: datetime, most: int) -> None:
        """Add a login; drop the expired ones of its tenant, and the oldest beyond `most`."""

    def find_login(self, tenant: str, hash: str) -> ConsoleLogin | None:
        """Return a login, expired or not."""

    def take_link(self, tenant: str, hash: str) -> ConsoleLogin | None:
        """Delete a link and return it; of concurrent callers one gets it."""

    def delete_logins(self, tenant: str, hash: str | None = None) -> int:
        """Delete one login, or all logins and links of a tenant. Return how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleLogin:
    """A login to the console, or a link that makes one, by the hash of its secret."""

    tenant: str
    hash: str
    key_id: str
    expires_at: datetime
    is_link: bool = False


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
"""Claim of the current request. The store takes the key in the transaction of the request's first write."""


class IdempotencyStore(Protocol):
    """Idempotency keys of a tenant, by hash."""

    def find_answer(self, claim: Claim) -> KeptAnswer | None:
        """Return the answer recorded under the claim's key, unless it has expired."""

    def keep_answer(self, claim: Claim, answer: KeptAnswer) -> None:
        """Record the answer, and also the key if the request wrote nothing, unless another request has the key."""

    def prune_answers(self, tenant: str, *, created_until: datetime, max_bytes: int) -> int:
        """Delete keys created until then, and the oldest ones beyond `max_bytes`. Return how many."""

    def erase_answers(self, tenant: str, *, with_keys: bool = False) -> int:
        """Delete the content of every answer, including pending ones, except that of the erasing request.

        Returns how many there were. `with_keys` deletes the keys too.
        """
