"""What services need of a store of memories."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from recollect.model import Agent, Kind, Match, Memory, MemoryVersion, Owner, Proposal, ProposalState, State
from recollect.ports.providers import Vector

if TYPE_CHECKING:
    from recollect.policy.recall.similarity import Evidence


class AgentStore(Protocol):
    """Agents and their settings."""

    def add_agent(self, agent: Agent) -> Agent:
        """Raises: Conflict when the tenant has an agent of that id."""

    def get_agent(self, owner: Owner) -> Agent:
        """Raises: NotFound."""

    def find_agent(self, owner: Owner) -> Agent | None: ...

    def list_agents(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Agent]:
        """By id, beginning behind `after`."""

    def update_agent(self, agent: Agent) -> Agent:
        """Raises: NotFound."""

    def delete_agent(self, owner: Owner) -> None:
        """Remove the agent and all it owns.

        Raises: NotFound.
        """

    def count_memories(self, owner: Owner) -> Mapping[Kind, int]:
        """How many memories of each kind are not archived; every kind is named."""

    def count_memories_by_agent(self, tenant: str, agents: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        """The same for many agents, such as those of one page, in one question; every one of them is named."""


class Glimpse(NamedTuple):
    """What ranking looks at of a memory. Of many that are ranked few are shown, and only of those the whole is made."""

    seq: int
    text: str
    importance: float
    created_at: datetime
    since: datetime  # when it became true
    whole: Callable[[], Memory]


class MemoryStore(Protocol):
    """Memories of every kind, their history, and the index that finds them."""

    def add_memory(self, memory: Memory, vector: Vector | None = None) -> Memory:
        """The memory with its id. The agent is made if this is its first; without a vector it waits for embedding."""

    def add_memories(self, memories: Sequence[Memory], vectors: Sequence[Vector | None]) -> Sequence[Memory]:
        """All of them in one transaction; they must have one owner."""

    def get_memory(self, owner: Owner, id: str) -> Memory:
        """Raises: NotFound."""

    def find_memories(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Memory]:
        """Those that exist, by number."""

    def find_glimpses(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Glimpse]:
        """Of those that exist, what ranking looks at, by number."""

    def list_memories(
        self,
        owner: Owner,
        *,
        kind: Kind | None = None,
        needle: str = "",
        tag: str = "",
        state: State | None = State.LIVE,
        now: datetime,
        is_past: bool = False,
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[Memory]:
        """Newest first. `needle` matches anywhere in the text and `tag` a whole tag, both ignoring case; `state` None
        means any; `is_past` leaves out what was not yet true at `now`; `before` continues behind that number."""

    def list_for_review(self, owner: Owner, *, limit: int = 100) -> Sequence[Memory]:
        """Memories that are held or flagged, newest first."""

    def approve_notes(self, owner: Owner) -> int:
        """Trust the notes that came with a workspace's file like the user's own; how many they were.

        Raises: Invalid when the agent has no such file.
        """

    def find_same_memory(self, owner: Owner, kind: Kind, text: str, *, now: datetime) -> Memory | None:
        """The newest live memory of a kind (not an episode) that says the same, up to case and white space.

        Asked inside a transaction, it also keeps everybody else from adding one before that transaction ends.
        """

    def update_memory(self, memory: Memory, vector: Vector | None = None, *, replaced_at: datetime) -> Memory:
        """Write `memory` over the stored version it was made from (`memory.version`) and keep the old one as history.

        Raises: NotFound; Conflict when someone else edited it since.
        """

    def list_versions(
        self, owner: Owner, id: str, *, before: int | None = None, limit: int | None = None
    ) -> Sequence[MemoryVersion]:
        """What the memory said before, newest first, beginning behind version `before`; None: all.

        Raises: NotFound.
        """

    def delete_memory(self, owner: Owner, id: str) -> None:
        """Remove the memory, its history and its index entries.

        Raises: NotFound.
        """

    def prune_memories(self, owner: Owner, kind: Kind, *, keep: int, is_low_trust: bool = False) -> Sequence[str]:
        """Delete the oldest memories of a kind beyond `keep` and return their ids; with `is_low_trust`, only those that
        came from neither the user nor an agent, which may be too few.
        """

    def search_memories(
        self, owner: Owner, query: str, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        """Live memories that share words with `query`, best (BM25) first."""

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        """Live memories by cosine to `vector`, nearest first."""

    def weigh_memories(
        self,
        owner: Owner,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        kinds: Collection[Kind],
        now: datetime,
        is_past: bool = False,
    ) -> Evidence:
        """What is known of every live memory with regard to a question of these `terms` and this `vector`.

        `is_past` leaves out what was not yet true at `now`.
        """


@dataclass(frozen=True, slots=True)
class Aging:
    """What decides how long an episode lives."""

    seq: int
    importance: float
    created_at: datetime
    last_retrieved_at: datetime | None
    expires_at: datetime | None
    valid_to: datetime | None = None


class MaintenanceStore(Protocol):
    """What is needed to let memories fade."""

    def list_aging(self, owner: Owner, *, after: int = 0, limit: int = 1000) -> Sequence[Aging]:
        """Episodes that are not archived, by number, beginning behind `after`."""

    def archive_memories(self, owner: Owner, seqs: Sequence[int], *, now: datetime) -> int:
        """Take memories out of every search without deleting them; how many that were."""

    def mark_retrieved(self, owner: Owner, seqs: Sequence[int], *, at: datetime) -> None:
        """Note that memories were recalled; not an edit, so no version is kept."""

    def take_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        """Become, or stay, the only one who does a thing; False while somebody else is."""

    def end_lease(self, name: str, holder: str) -> None: ...

    def count_bytes(self) -> int:
        """How large the whole database is."""


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A memory or a chunk whose vector is still missing."""

    owner: Owner  # of a chunk: the tenant, with no agent
    seq: int
    version: int
    text: str


class EmbeddingStore(Protocol):
    """Which embedder the vectors come from, and what still waits for one."""

    def use_embedder(self, name: str, dimensions: int) -> None:
        """Say whose vectors will be written and searched; the first one to come is taken down.

        Raises: SchemaMismatch when the stored vectors come from another.
        """

    def change_embedder(self, name: str, dimensions: int) -> None:
        """Drop all vectors of other embedders, so that everything waits for this one."""

    def list_tenants(self) -> Sequence[str]: ...

    def list_unembedded(
        self, tenant: str, *, after: Unembedded | None = None, limit: int = 100
    ) -> Sequence[Unembedded]:
        """Memories by agent and number, then chunks; `after` goes on behind the last one of a page."""

    def count_unembedded(self, tenant: str) -> int: ...

    def set_vectors(self, tenant: str, embedded: Sequence[tuple[Unembedded, Vector]]) -> int:
        """Fill in missing vectors; what was edited or deleted meanwhile is left alone. How many were set."""


class ProposalStore(Protocol):
    """What was proposed to an agent, and what became of it."""

    def add_proposals(self, owner: Owner, proposals: Sequence[Proposal]) -> Sequence[Proposal]:
        """Those of which no memory is taken in by an open proposal yet, with their ids."""

    def get_proposal(self, owner: Owner, id: str) -> Proposal:
        """Raises: NotFound."""

    def list_proposals(
        self, owner: Owner, *, state: ProposalState | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[Proposal]:
        """Newest first, beginning behind the number `before`; without a state: all."""

    def decide_proposal(self, proposal: Proposal, *, was: ProposalState) -> Proposal:
        """Write down what became of it.

        Raises: NotFound; Conflict when it is no longer in the state it `was` in.
        """
