"""Erasing, with a receipt."""

from __future__ import annotations

from recollect.caller import current_caller
from recollect.model import Receipt
from recollect.policy.trust import check_decision
from recollect.tenant_memory.view import TenantView


class Erasure(TenantView):
    """The verb that leaves no trace."""

    def erase(self, subject: str, *, dry_run: bool = False, compact: bool | None = None) -> Receipt:
        """Remove everything about a subject, for good: `agent:ID`, `session:ID`, `memory:AGENT/ID`, `tenant:ID`, or
        `text:WORDS` for all that mentions them. Without a kind, an id means what it names, and other words a text.

        `dry_run` only lists what would go. With `compact`, the database's files are written anew and nobody can write
        meanwhile. False leaves them as they are; None overwrites what SQLite's do not use and vacuums PostgreSQL's.

        Raises: Invalid; NotFound when there is no such agent, session or memory; Forbidden.
        """
        current_caller().check_whole_tenant()
        check_decision(current_caller().trust)
        return self._services.erase(self.id, subject, dry_run=dry_run, compact=compact)
