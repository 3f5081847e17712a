"""Looking after what a tenant has stored."""

from __future__ import annotations

from recollect.caller import current_caller
from recollect.services.maintain import MaintenanceReport
from recollect.services.walk import Progress
from recollect.tenant_memory.view import TenantView


class Upkeep(TenantView):
    """The verbs that let memories fade."""

    def count_waiting(self) -> int:
        """How many texts have no vector yet."""
        return self._store.count_unembedded(self.id)

    def maintain(self, *, progress: Progress | None = None) -> MaintenanceReport:
        """What `Recollect.maintain` does, for this tenant alone.

        Raises: Conflict while another process is at it; Forbidden.
        """
        current_caller().check_whole_tenant()
        self._services.retrieved.flush(self.id)
        return self._services.maintain(self.id, progress=progress)
