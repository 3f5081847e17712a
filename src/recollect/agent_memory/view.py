"""What every group of an agent's verbs starts from."""

from __future__ import annotations

from recollect.model import Owner
from recollect.wiring import Services


class AgentView:
    """One agent in one store."""

    def __init__(self, services: Services, owner: Owner) -> None:
        self.owner = owner
        self._services = services
        self._store = services.store
