"""What every group of a tenant's verbs starts from."""

from __future__ import annotations

from recollect.caller import current_caller
from recollect.model import Owner
from recollect.policy.names import checked_owner
from recollect.wiring import Services


class TenantView:
    """One tenant in one store."""

    def __init__(self, services: Services, id: str) -> None:
        self.id = id
        self._services = services
        self._store = services.store

    def _owner(self, agent: str) -> Owner:
        """Raises: Invalid; Forbidden when the caller is limited to other agents."""
        owner = checked_owner(agent, self.id)
        current_caller().check_agent(owner.agent)
        return owner
