"""A tenant's view of the store: its agents, and what they share. Each group of its verbs is a module."""

from __future__ import annotations

from recollect.tenant_memory.agents import Agents
from recollect.tenant_memory.history import History
from recollect.tenant_memory.keys import Keys
from recollect.tenant_memory.transcripts import Transcripts
from recollect.tenant_memory.upkeep import Upkeep


class TenantMemory(Agents, Transcripts, History, Keys, Upkeep):
    """What a tenant's agents share, and the agents themselves."""
