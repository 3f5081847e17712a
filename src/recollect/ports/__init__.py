"""Protocols the services depend on: stores, embedders, models and files.

Every store call names an `Owner` or a tenant and sees no other data: an id of another owner is answered exactly like a
missing one. `get_` raises NotFound, `find_` may return None. All methods raise StoreError when the database fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from recollect.ports.content import (
    Content,
    ContentDraft,
    DetailStore,
    DocumentFiles,
    KnowledgeStore,
    Reading,
    SkillFiles,
)
from recollect.ports.history import (
    AllowanceStore,
    AuditStore,
    ContextStore,
    IdempotencyStore,
    KeyStore,
    Place,
    TranscriptStore,
    WorkflowStore,
    place_of,
)
from recollect.ports.memories import (
    AgentStore,
    Aging,
    EmbeddingStore,
    Encoded,
    EncodedMemory,
    ItemStore,
    MaintenanceStore,
    MemoryStore,
    MemorySummary,
    ProposalStore,
    Unembedded,
)
from recollect.ports.providers import Clock, Embedder, EmbedTexts, Model, Models, TokenCounter, Vector
from recollect.ports.upkeep import (
    ArchiveFiles,
    CheckupStore,
    ErasureStore,
    ForeignFormat,
    ForeignFormats,
    TransferStore,
)

__all__ = [
    "AgentStore",
    "Aging",
    "AllowanceStore",
    "ArchiveFiles",
    "AuditStore",
    "CheckupStore",
    "Clock",
    "Content",
    "ContentDraft",
    "ContextStore",
    "DetailStore",
    "DocumentFiles",
    "EmbedTexts",
    "Embedder",
    "EmbeddingStore",
    "Encoded",
    "EncodedMemory",
    "ErasureStore",
    "ForeignFormat",
    "ForeignFormats",
    "IdempotencyStore",
    "ItemStore",
    "KeyStore",
    "KnowledgeStore",
    "MaintenanceStore",
    "MemoryStore",
    "MemorySummary",
    "Model",
    "Models",
    "Place",
    "ProposalStore",
    "Reading",
    "SkillFiles",
    "Store",
    "TokenCounter",
    "TranscriptStore",
    "TransferStore",
    "Unembedded",
    "Vector",
    "WorkflowStore",
    "place_of",
]

T = TypeVar("T")


class Store(
    AgentStore,
    MemoryStore,
    ItemStore,
    DetailStore,
    TranscriptStore,
    KnowledgeStore,
    EmbeddingStore,
    AuditStore,
    AllowanceStore,
    ContextStore,
    WorkflowStore,
    ProposalStore,
    MaintenanceStore,
    CheckupStore,
    KeyStore,
    IdempotencyStore,
    TransferStore,
    ErasureStore,
    Protocol,
):
    """All store protocols together: a database."""

    def transaction(self, tenant: str, work: Callable[[], T]) -> T:
        """Run `work` in one transaction: its store calls (for this tenant only) are committed together or not at all.

        On SQLite `work` runs on the writer's thread, so it must not wait for another thread, a model or a network.
        """

    def problems(self) -> Sequence[str]:
        """Return current problems as sentences, without asking the database."""

    def embed_notes_with(self, embed: EmbedTexts) -> None:
        """Set the function that embeds notes in a file, which has no place for vectors."""

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        """Run `work`; the reads it makes (of this tenant, on this thread) share one snapshot.

        A read that fails does not keep the next one from trying.
        """

    def close(self) -> None:
        """Release the database. Further calls do nothing."""
