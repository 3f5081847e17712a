"""A tenant's view of the store: its agents, and what they share. Each group of its verbs is a module."""

from __future__ import annotations

from recollect.tenant_memory.agents import Agents
from recollect.tenant_memory.history import History


class TenantMemory(Agents, History):
    """What a tenant's agents share, and the agents themselves."""
