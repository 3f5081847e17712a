"""Erasing, with a receipt."""

from __future__ import annotations

from recollect.model import Receipt
from recollect.tenant_memory.view import TenantView


class Erasure(TenantView):
    """The verb that leaves no trace."""

    def erase(self, subject: str, *, dry_run: bool = False, compact: bool | None = None) -> Receipt:
        """Remove everything about a subject, for good: `agent:ID`, `session:ID`, `memory:AGENT/ID`, `tenant:ID`, or
        `text:WORDS` for all that mentions them. Without a kind, an id means what it names, and other words a text.

        `dry_run` only lists what would go. `compact` writes the database's files anew, as SQLite's are unless it is
        False; PostgreSQL's are if it is True, and nobody can use the tables meanwhile.

        Raises: Invalid; NotFound when there is no such agent, session or memory.
        """
        return self._services.erase(self.id, subject, dry_run=dry_run, compact=compact)
