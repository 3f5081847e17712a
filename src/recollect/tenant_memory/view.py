"""What every group of a tenant's verbs starts from."""

from __future__ import annotations

from recollect.wiring import Services


class TenantView:
    """One tenant in one store."""

    def __init__(self, services: Services, id: str) -> None:
        self.id = id
        self._services = services
        self._store = services.store
