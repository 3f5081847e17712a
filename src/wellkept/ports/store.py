"""Protocol of a whole store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from wellkept.ports.content import DetailStore, KnowledgeStore
from wellkept.ports.history import (
    AllowanceStore,
    AuditStore,
    ContextStore,
    IdempotencyStore,
    KeyStore,
    TranscriptStore,
    WorkflowStore,
)
from wellkept.ports.memories import AgentStore, EmbeddingStore, ItemStore, MaintenanceStore, MemoryStore
from wellkept.ports.providers import EmbedTexts
from wellkept.ports.upkeep import CheckupStore, ErasureStore, ProposalStore, TransferStore

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
