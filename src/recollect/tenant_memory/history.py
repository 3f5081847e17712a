"""What was done in a tenant, and what its memories hold that they should not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recollect.agent_memory import SEARCH_LIMIT
from recollect.caller import current_caller
from recollect.model import AuditEvent, AuditReport, Json
from recollect.policy.text import checked_text
from recollect.policy.trust import check_decision
from recollect.services.scan import Sighting
from recollect.services.walk import Progress
from recollect.tenant_memory.audit import AuditLog
from recollect.tenant_memory.view import TenantView
from recollect.tools import catalog


class History(TenantView):
    """The verbs that look back."""

    def scan(self, *, progress: Progress | None = None) -> Iterator[Sighting]:
        """Every stored memory that seems to hold a secret, found one by one. `progress` is told after each agent how
        many are done, of how many.

        Raises: Forbidden.
        """
        current_caller().check_whole_tenant()
        return self._services.scan(self.id, progress=progress)

    def allow_secret(self, text: str) -> int:
        """Say that what looks like a secret in `text` is none; only its hash is kept.

        Raises: Invalid when nothing does; Forbidden.
        """
        current_caller().check_whole_tenant()
        check_decision(current_caller().trust)
        allowed = self._services.guard.allow(self.id, checked_text(text))
        message = f"Text that looked like a secret was allowed ({allowed} piece{'' if allowed == 1 else 's'})."
        self._store.add_event(
            AuditEvent(tenant=self.id, at=self._services.now(), action="secret.allow", message=message)
        )
        return allowed

    def audit_events(
        self, query: str = "", *, before: int | None = None, limit: int = SEARCH_LIMIT
    ) -> Sequence[AuditEvent]:
        """What was done, newest first.

        Raises: Invalid.
        """
        return AuditLog(self._services, self.id).search(query, before=before, limit=limit)

    def verify_audit(self) -> AuditReport:
        """Whether the audit log is whole: nothing changed, nothing missing."""
        return self._store.verify_events(self.id)

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Json:
        """Run a tool where no agent is speaking: tools that need one say so."""
        return catalog.call(None, name, arguments)
