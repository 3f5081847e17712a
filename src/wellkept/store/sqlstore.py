"""Implementation of all ports over named SQL. Engine-specific code is behind `engine.Engine`."""

from __future__ import annotations

from wellkept.model.stored import EmbedTexts
from wellkept.store.tables.access import AllowanceRows, IdempotencyRows, KeyRows
from wellkept.store.tables.agents import AgentRows
from wellkept.store.tables.details import DetailRows
from wellkept.store.tables.erasure import ErasureRows
from wellkept.store.tables.history import AuditRows, WorkflowRows
from wellkept.store.tables.knowledge import KnowledgeRows
from wellkept.store.tables.memories import ChangeRows, MemoryRows
from wellkept.store.tables.transcripts import ContextRows, TranscriptRows
from wellkept.store.tables.transfer import TransferRows
from wellkept.store.tables.upkeep import CheckupRows, EmbeddingRows, MaintenanceRows


class SqlStore(
    AgentRows,
    MemoryRows,
    TransferRows,
    DetailRows,
    KnowledgeRows,
    EmbeddingRows,
    ErasureRows,
    AuditRows,
    WorkflowRows,
    AllowanceRows,
    ContextRows,
    ChangeRows,
    MaintenanceRows,
    CheckupRows,
    KeyRows,
    IdempotencyRows,
    TranscriptRows,
):
    """All store protocols together: a database. on any engine."""

    def forget_cached(self, tenant: str) -> None:
        super().forget_cached(tenant)
        self.forget_counts(tenant)

    def embed_notes_with(self, embed: EmbedTexts) -> None:
        """Do nothing: only notes in a file are embedded on the fly; the database stores their vectors."""
