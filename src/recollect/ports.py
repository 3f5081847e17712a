"""What the services need from outside: stores to keep records in, an embedder to compare meanings with.

Every store call names an `Owner` or a tenant, and sees nothing of anybody else: a foreign id is answered exactly like a
missing one. `get_` raises NotFound, `find_` may return None. All of them raise StoreError when the database fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from recollect.model import (
    Agent,
    AuditEvent,
    AuditReport,
    Chunk,
    Document,
    Kind,
    Match,
    Memory,
    MemoryVersion,
    Owner,
    State,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
Vector: TypeAlias = "NDArray[np.float32]"
"""One text's place in the space of meanings, of length 1."""

EmbedTexts: TypeAlias = "Callable[[Sequence[str]], Sequence[Vector | None]]"
"""A vector for each text; None where it has to come later."""

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time, aware and in UTC."""


class Embedder(Protocol):
    """Turns texts into vectors. Texts that mean the same lie close together."""

    @property
    def name(self) -> str:
        """Changes whenever the same text would get another vector."""

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 for each text.

        Raises: ModelError.
        """


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A memory or a chunk whose vector is still missing."""

    owner: Owner  # of a chunk: the tenant, with no agent
    seq: int
    version: int
    text: str


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

    def find_same_memory(self, owner: Owner, kind: Kind, text: str, *, now: datetime) -> Memory | None:
        """The newest live memory of a kind (not an episode) that says the same, up to case and white space.

        Asked inside a transaction, it also keeps everybody else from adding one before that transaction ends.
        """

    def update_memory(self, memory: Memory, vector: Vector | None = None, *, replaced_at: datetime) -> Memory:
        """Write `memory` over the stored version it was made from (`memory.version`) and keep the old one as history.

        Raises: NotFound; Conflict when someone else edited it since.
        """

    def list_versions(self, owner: Owner, id: str) -> Sequence[MemoryVersion]:
        """What the memory said before, newest first.

        Raises: NotFound.
        """

    def delete_memory(self, owner: Owner, id: str) -> None:
        """Remove the memory, its history and its index entries.

        Raises: NotFound.
        """

    def prune_memories(self, owner: Owner, kind: Kind, *, keep: int) -> int:
        """Delete the oldest memories of a kind beyond `keep`; how many went."""

    def search_memories(
        self, owner: Owner, query: str, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        """Live memories that share words with `query`, best (BM25) first."""

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        """Live memories by cosine to `vector`, nearest first."""


class KnowledgeStore(Protocol):
    """A tenant's documents and their passages."""

    def put_document(self, document: Document, texts: Sequence[str], vectors: Sequence[Vector | None]) -> Document:
        """Add the document, or replace the one of the same id, passages and all, in one transaction."""

    def get_document(self, tenant: str, id: str) -> Document:
        """Raises: NotFound."""

    def list_documents(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Document]:
        """By id, beginning behind `after`."""

    def delete_document(self, tenant: str, id: str) -> None:
        """Raises: NotFound."""

    def find_chunks(self, tenant: str, seqs: Sequence[int]) -> Mapping[int, Chunk]:
        """Those that exist, by number."""

    def search_chunks(
        self, tenant: str, query: str, *, categories: Collection[str] = (), limit: int = 10
    ) -> Sequence[Match]:
        """Passages of published documents that share words with `query`; no category means all."""

    def nearest_chunks(
        self, tenant: str, vector: Vector, *, categories: Collection[str] = (), limit: int = 10
    ) -> Sequence[Match]:
        """Passages of published documents by cosine to `vector`."""


class AuditStore(Protocol):
    """What was done, in order, with a hash chain over it."""

    def add_event(self, event: AuditEvent) -> AuditEvent:
        """The event with its number and its hash."""

    def list_events(
        self, tenant: str, *, needle: str = "", before: int | None = None, limit: int = 20
    ) -> Sequence[AuditEvent]:
        """Newest first; `needle` matches anywhere in the message, ignoring case."""

    def verify_events(self, tenant: str) -> AuditReport:
        """Walk the chain from its first event to its last."""


class AllowanceStore(Protocol):
    """What a tenant has said is no secret, by hash."""

    def add_allowance(self, tenant: str, hash: str, *, now: datetime) -> None: ...

    def list_allowances(self, tenant: str) -> Collection[str]: ...

    def delete_allowance(self, tenant: str, hash: str) -> None: ...


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


class EmbeddingStore(Protocol):
    """Which embedder the vectors come from, and what still waits for one."""

    def use_embedder(self, name: str, dimensions: int) -> None:
        """Say whose vectors will be written and searched; the first one to come is taken down.

        Raises: SchemaMismatch when the stored vectors come from another.
        """

    def change_embedder(self, name: str, dimensions: int) -> None:
        """Drop all vectors of other embedders, so that everything waits for this one."""

    def list_tenants(self) -> Sequence[str]: ...

    def list_unembedded(self, tenant: str, *, limit: int = 100) -> Sequence[Unembedded]: ...

    def count_unembedded(self, tenant: str) -> int: ...

    def set_vectors(self, tenant: str, embedded: Sequence[tuple[Unembedded, Vector]]) -> int:
        """Fill in missing vectors; what was edited or deleted meanwhile is left alone. How many were set."""


class Store(
    AgentStore,
    MemoryStore,
    KnowledgeStore,
    EmbeddingStore,
    AuditStore,
    AllowanceStore,
    MaintenanceStore,
    Protocol,
):
    """Everything a database keeps for us."""

    def transaction(self, tenant: str, work: Callable[[], T]) -> T:
        """Run `work`; the store calls it makes (for this tenant only) are kept together or not at all.

        On SQLite `work` runs on the writer's thread, so it must not wait for another thread, a model or a network.
        """

    def close(self) -> None: ...
