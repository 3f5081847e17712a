"""`SqlStore`: every port, once, over named SQL. What differs between engines is behind `engine.Engine`."""

from __future__ import annotations

from recollect.ports import EmbedTexts
from recollect.store.agents import AgentRows
from recollect.store.allowances import AllowanceRows
from recollect.store.audit import AuditRows
from recollect.store.checkup import CheckupRows
from recollect.store.context import ContextRows
from recollect.store.details import DetailRows
from recollect.store.embeddings import EmbeddingRows
from recollect.store.erasure import ErasureRows
from recollect.store.idempotency import IdempotencyRows
from recollect.store.keys import KeyRows
from recollect.store.knowledge import KnowledgeRows
from recollect.store.maintenance import MaintenanceRows
from recollect.store.memories import MemoryRows
from recollect.store.proposals import ProposalRows
from recollect.store.transcripts import TranscriptRows
from recollect.store.transfer import TransferRows
from recollect.store.workflows import WorkflowRows


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
    ProposalRows,
    MaintenanceRows,
    CheckupRows,
    KeyRows,
    IdempotencyRows,
    TranscriptRows,
):
    """`ports.Store` on any engine."""

    def embed_notes_with(self, embed: EmbedTexts) -> None:
        """Only notes that live in a file need to be told; those in the database keep their vectors beside them."""
