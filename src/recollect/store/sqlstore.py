"""Implementation of all ports over named SQL. Engine-specific code is behind `engine.Engine`."""

from __future__ import annotations

from recollect.ports import EmbedTexts
from recollect.store.tables.access import AllowanceRows, IdempotencyRows, KeyRows
from recollect.store.tables.agents import AgentRows
from recollect.store.tables.audit import AuditRows
from recollect.store.tables.checkup import CheckupRows
from recollect.store.tables.context import ContextRows
from recollect.store.tables.details import DetailRows
from recollect.store.tables.embeddings import EmbeddingRows
from recollect.store.tables.erasure import ErasureRows
from recollect.store.tables.items import ItemRows
from recollect.store.tables.knowledge import KnowledgeRows
from recollect.store.tables.maintenance import MaintenanceRows
from recollect.store.tables.memories import MemoryRows
from recollect.store.tables.proposals import ProposalRows
from recollect.store.tables.transcripts import TranscriptRows
from recollect.store.tables.transfer import TransferRows
from recollect.store.tables.workflows import WorkflowRows


class SqlStore(
    AgentRows,
    MemoryRows,
    ItemRows,
    TransferRows,
    DetailRows,
    KnowledgeRows,
    EmbeddingRows,
    ErasureRows,
    AuditRows,
    WorkflowRows,
    AllowanceRows,
    ContextRows,
    ProposalRows,
    MaintenanceRows,
    CheckupRows,
    KeyRows,
    IdempotencyRows,
    TranscriptRows,
):
    """Implementation of `ports.Store` on any engine."""

    def forget_cached(self, tenant: str) -> None:
        super().forget_cached(tenant)
        self.forget_counts(tenant)

    def embed_notes_with(self, embed: EmbedTexts) -> None:
        """Do nothing: only notes in a file are embedded on the fly; the database stores their vectors."""
