"""A tenant's view of the store: its agents, and what they share. Each group of its verbs is a module."""

from __future__ import annotations

from recollect.tenant_memory.agents import Agents
from recollect.tenant_memory.audit import AuditLog
from recollect.tenant_memory.erasure import Erasure
from recollect.tenant_memory.history import History
from recollect.tenant_memory.keys import Keys
from recollect.tenant_memory.knowledge import Knowledge
from recollect.tenant_memory.transcripts import Transcripts
from recollect.tenant_memory.transfer import Transfer
from recollect.tenant_memory.upkeep import Upkeep
from recollect.tenant_memory.workflows import Workflows

__all__ = ["AuditLog", "TenantMemory"]


class TenantMemory(Agents, Transcripts, Workflows, History, Knowledge, Keys, Transfer, Upkeep, Erasure):
    """What a tenant's agents share, and the agents themselves."""

    @property
    def audit(self) -> AuditLog:
        """What was done in the tenant."""
        return AuditLog(self._services, self.id)
