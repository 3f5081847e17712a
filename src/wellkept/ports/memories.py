"""Protocols for agents, memories, embeddings and maintenance."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from wellkept.memory.rules_categories import LIFETIMES, Lifetimes
from wellkept.model import (
    NO_USER,
    Agent,
    ClusterNode,
    Kind,
    Match,
    Memory,
    MemoryVersion,
    Owner,
    State,
    TenantStats,
    UserCount,
)
from wellkept.ports.providers import Vector, Vectors

if TYPE_CHECKING:
    from wellkept.memory.rules_conditions import Condition
    from wellkept.recall.rules_similarity import Evidence


class AgentStore(Protocol):
    """Agents and their settings."""

    def add_agent(self, agent: Agent) -> Agent:
        """Add an agent. Raises: Conflict when the tenant has an agent with that id."""

    def get_agent(self, owner: Owner) -> Agent:
        """Return one agent. Raises: NotFound."""

    def find_agent(self, owner: Owner) -> Agent | None: ...

    def list_agents(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Agent]:
        """List agents by id, starting after `after`."""

    def update_agent(self, agent: Agent) -> Agent:
        """Replace the stored fields of an agent. Raises: NotFound."""

    def delete_agent(self, owner: Owner) -> None:
        """Delete the agent and everything it owns. Raises: NotFound."""

    def count_memories(self, owner: Owner) -> Mapping[Kind, int]:
        """Count memories that are not archived, for every kind."""

    def count_memories_by_agent(self, tenant: str, agents: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        """Count them for many agents in one query; the result has an entry for each agent."""

    def count_days(self, tenant: str, *, since: datetime, now: datetime, expiring: int) -> TenantStats:
        """Count memories, events, prompts, recalls and what users wrote of each day from `since`, and what waits; list
        what expires next.

        Notes of a workspace's file are left out.
        """

    def count_users(
        self, tenant: str, *, agents: Collection[str] = (), after: str = "", limit: int = 100
    ) -> Sequence[UserCount]:
        """Count the memories and sessions of each end user, by id, starting after the id `after`.

        `agents` limits the count to these agents.
        """


class MemorySummary(NamedTuple):
    """Fields of a memory that ranking needs. Whole records are built only for the few that are returned."""

    seq: int
    text: str
    importance: float
    created_at: datetime
    since: datetime  # when it became true
    whole: Callable[[], Memory]
    has_ended: bool = False  # by a correction, whatever the clock says


class EncodedMemory(NamedTuple):
    """Values of the columns of a new memory and of its index entry; the number is missing."""

    row: dict[str, Any]
    entry: Mapping[str, Any]


Encoded: TypeAlias = "EncodedMemory | Vector | None"
"""Memory that was encoded, or only its vector."""


class MemoryStore(Protocol):
    """Memories of every kind, their history and their search index."""

    def add_memory(self, memory: Memory, vector: Vector | None = None) -> Memory:
        """Add a memory and return it with its id.

        The agent is created if necessary. A memory without a vector waits for embedding.
        """

    def encode_memories(self, memories: Sequence[Memory], vectors: Vectors = ()) -> Sequence[Encoded]:
        """Prepare memories before their transaction; return what `add_memories` takes instead of the vectors."""

    def add_memories(self, memories: Sequence[Memory], vectors: Sequence[Encoded]) -> Sequence[Memory]:
        """Add memories of one owner in one transaction."""

    def get_memory(self, owner: Owner, id: str) -> Memory:
        """Return one memory. Raises: NotFound."""

    def find_memories(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Memory]:
        """Return the existing ones of these memories, by number."""

    def find_summaries(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, MemorySummary]:
        """Return the ranking fields of the existing ones of these memories, by number."""

    def list_memories(
        self,
        owner: Owner,
        *,
        kind: Kind | None = None,
        needle: str = "",
        where: Condition | None = None,
        state: State | None = State.LIVE,
        now: datetime,
        is_past: bool = False,
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[Memory]:
        """List memories that meet the condition `where`, newest first.

        `needle` matches anywhere in the text, ignoring case; `state` None means any; `is_past` leaves out what was not
        yet true at `now`; `before` starts after that number.
        """

    def list_for_review(self, owner: Owner, *, limit: int = 100) -> Sequence[Memory]:
        """List held and flagged memories, newest first."""

    def approve_notes(self, owner: Owner) -> int:
        """Trust the notes that came with a workspace file like the user's own; return how many there were.

        Raises: Invalid when the agent has no such file.
        """

    def find_same_memory(self, owner: Owner, kind: Kind, text: str, *, now: datetime) -> Memory | None:
        """Return the newest live memory of a kind (not an episode) with the same text, ignoring case and white space.

        Inside a transaction, it also keeps other writers from adding one before that transaction ends.
        """

    def find_last_episode(self, owner: Owner, session_id: str) -> Memory | None:
        """Return the newest episode of a session, if it is among the agent's last few hundred memories."""

    def update_memory(
        self, memory: Memory, vector: Vector | None = None, *, replaced_at: datetime, whole: str | None = None
    ) -> Memory:
        """Replace the stored version that `memory` was made from (`memory.version`), and keep that one as history.

        `whole` is the text that a gist stands for: it stays indexed by the words and the vector of that.

        Raises: NotFound; Conflict when it has been edited since.
        """

    def list_versions(
        self, owner: Owner, id: str, *, before: int | None = None, limit: int | None = None
    ) -> Sequence[MemoryVersion]:
        """List earlier versions of a memory, newest first, starting after version `before`; `limit` None returns all.

        Raises: NotFound.
        """

    def delete_memory(self, owner: Owner, id: str) -> None:
        """Delete the memory, its history and its index entries. Raises: NotFound."""

    def prune_memories(self, owner: Owner, kind: Kind, *, keep: int, is_low_trust: bool = False) -> Sequence[str]:
        """Delete the oldest memories of a kind beyond `keep` and return their ids.

        `is_low_trust` deletes only those that came from neither the user nor an agent, which may be too few.
        """

    def search_memories(
        self, owner: Owner, query: str, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        """Find live memories that share words with `query`, ranked by BM25."""

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        """Find live memories by cosine similarity to `vector`, nearest first."""

    def sample_vectors(self, owner: Owner, *, limit: int) -> tuple[Sequence[int], Sequence[Vector]]:
        """Return the numbers and vectors of memories in the search index, evenly spread if there are more than `limit`.

        For one user, that many of the user and that many of nobody. Notes of a workspace's file are left out.
        """

    def weigh_memories(
        self,
        owner: Owner,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        kinds: Collection[Kind],
        now: datetime,
        is_past: bool = False,
        where: Condition | None = None,
    ) -> Evidence:
        """Return the evidence about every live memory for a question with these `terms` and this `vector`.

        `is_past` leaves out what was not yet true at `now`. `where` limits the memories that may be found; the others
        still count for comparison.
        """


class ItemStore(Protocol):
    """Memories that are items. `path` is a namespace as `memory.rules_items` joins it."""

    def find_item(self, owner: Owner, path: str, key: str) -> Memory | None:
        """Return the memory with this key of the owner's user, or else of no user; it may have expired."""

    def hold_items(self, owner: Owner, *, now: datetime) -> None:
        """Keep all others from writing items of the agent until this transaction ends."""

    def set_item_end(self, memory: Memory) -> None:
        """Store `expires_at` and `ttl_seconds`. This is no edit, so no version is kept."""

    def find_item_numbers(
        self, owner: Owner, where: Condition | None, *, now: datetime, limit: int, offset: int = 0
    ) -> Sequence[int]:
        """Return the numbers of the live items that meet a condition, the last written first."""

    def list_item_paths(self, owner: Owner, first: str, last: str, *, now: datetime, limit: int) -> Sequence[str]:
        """List the different paths of live items from `first` to before `last`, in order."""

    def archive_expired_items(self, owner: Owner, *, now: datetime, limit: int) -> int:
        """Archive expired items and return how many."""

    def delete_ended_items(self, owner: Owner, *, before: datetime, limit: int) -> int:
        """Delete items that had expired when they were archived, up to `before`; return how many."""


@dataclass(frozen=True, slots=True)
class Aging:
    """Fields that decide how long an episode lives."""

    seq: int
    importance: float
    created_at: datetime
    last_retrieved_at: datetime | None
    expires_at: datetime | None
    valid_to: datetime | None = None
    category: str | None = None
    user: str = NO_USER
    has_ended: bool = False  # by a correction, whatever the clock says


class StoreTotals(NamedTuple):
    """Values about the whole store."""

    bytes: int
    waiting: int  # texts that were queued without a vector; those deleted since count until the queue is settled
    records: Mapping[str, tuple[str, datetime]]


class MaintenanceStore(Protocol):
    """Archiving, recall marks and leases."""

    def list_aging(self, owner: Owner, *, after: int = 0, limit: int = 1000) -> Sequence[Aging]:
        """List episodes that are not archived, by number, starting after `after`."""

    def count_aging(self, owner: Owner, *, now: datetime) -> tuple[int, int]:
        """Count the episodes that are live at `now`, and those that have expired but are not archived."""

    def count_states(self, owner: Owner, *, now: datetime) -> Mapping[tuple[Kind, State], int]:
        """Count the memories by kind and state at `now`. Reads all of them."""

    def archive_memories(self, owner: Owner, seqs: Sequence[int], *, now: datetime) -> int:
        """Archive memories: remove them from every search without deleting them; return how many."""

    def mark_retrieved(
        self, owner: Owner, seqs: Sequence[int], *, at: datetime, lifetimes: Lifetimes = LIFETIMES
    ) -> None:
        """Record that memories were recalled, and move the ends of episodes. This is no edit, so no version is kept."""

    def list_due_tenants(self, now: datetime) -> Sequence[str]:
        """List the tenants that maintenance has to visit, the longest due first."""

    def mark_all_due(self) -> None:
        """Have maintenance visit every tenant with its next run."""

    def begin_visit(self, tenant: str) -> tuple[bool, datetime]:
        """Begin a visit of maintenance; return True if the tenant changed since the last one, and its due date."""

    def end_visit(self, tenant: str, due_before: datetime, *, due_at: datetime, counts: Mapping[str, int]) -> None:
        """Set the next visit, unless the tenant has changed since this one began, and keep the counts."""

    def find_first_ends(self, tenant: str) -> tuple[datetime | None, datetime | None]:
        """Return the first end of an item of the tenant, and the time of its oldest kept answer."""

    def sum_counts(self) -> Mapping[str, int]:
        """Return the sums of the counts that the last visits of all tenants kept."""

    def count_recalls(self, owner: Owner, days: Mapping[date, int]) -> None:
        """Add to the number of recalls of each day; nothing is added for an agent that does not exist."""

    def take_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        """Acquire or renew an exclusive lease; return False while another holder has it."""

    def end_lease(self, name: str, holder: str) -> None:
        """Release a lease."""

    def end_old_leases(self, *, before: datetime) -> None:
        """Remove the leases of processes that died, if they ended before a time, and buckets that are full again."""

    def put_record(self, name: str, value: str, *, at: datetime) -> None:
        """Store a value about the whole store under a name that no lease has, such as the last maintenance run."""

    def find_record(self, name: str) -> tuple[str, datetime] | None:
        """Return the value under a name, and its time."""

    def count_bytes(self) -> int:
        """Return the size of the whole database."""

    def read_totals(self, names: Sequence[str]) -> StoreTotals:
        """Read the size of the database, its waiting texts and the named records, with one statement."""

    def check_nodes(self) -> Sequence[ClusterNode]:
        """Ask the other nodes of a database cluster, if it is one, within the last seconds or now."""


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A memory or chunk without a vector."""

    owner: Owner  # of a chunk: the tenant, with no agent
    seq: int
    version: int
    text: str


SOON = datetime(2000, 1, 1, tzinfo=UTC)
"""Due date of what is done with the next run."""


class EmbeddingStore(Protocol):
    """The embedder of the stored vectors, and the texts that still wait for one."""

    def use_embedder(self, name: str, dimensions: int, *, replaces: Collection[str] = ()) -> None:
        """Set the embedder whose vectors are written and searched; the first one is recorded.

        If the stored vectors come from one that it `replaces`, they are dropped, as `change_embedder` does.

        Raises: SchemaMismatch when they come from another.
        """

    def change_embedder(self, name: str, dimensions: int) -> None:
        """Drop the vectors of all other embedders, so that every text waits for this one."""

    def list_tenants(self) -> Sequence[str]: ...

    def list_unembedded(
        self, tenant: str, *, after: Unembedded | None = None, limit: int = 100
    ) -> Sequence[Unembedded]:
        """List memories by agent and number, then chunks; `after` (the last one of a page) continues a listing."""

    def list_unembedded_of(self, owner: Owner, *, limit: int) -> Sequence[Unembedded]:
        """List memories of an agent, the newest first, then chunks of its tenant."""

    def count_unembedded(self, tenant: str) -> int: ...

    def list_waiting_tenants(self, until: datetime) -> Sequence[str]:
        """List the tenants with texts in the queue that are due at `until`."""

    def list_queue(self, tenant: str) -> Sequence[int]:
        """List the ids of a tenant's rows in the queue. Call it before reading the texts, for `settle_queue`."""

    def settle_queue(self, tenant: str, ids: Sequence[int], *, due_at: datetime = SOON) -> int:
        """Remove rows from the queue; queue the texts that still wait, if any, until `due_at`, and return how many."""

    def set_vectors(self, tenant: str, embedded: Sequence[tuple[Unembedded, Vector]]) -> int:
        """Fill in missing vectors and return how many were set; skip texts edited or deleted since."""
