"""Erasing, with a receipt."""

from __future__ import annotations

from recollect.caller import current_caller
from recollect.errors import Forbidden
from recollect.model import KeyScope, Receipt
from recollect.policy.trust import check_decision
from recollect.tenant_memory.view import TenantView

FOR_OPERATORS = (
    "`compact` writes the whole store anew, and every tenant waits meanwhile; it takes an operator's key. Without it, "
    "what was erased is overwritten in place."
)


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
        if compact and current_caller().scope not in (None, KeyScope.OPERATOR):
            raise Forbidden(FOR_OPERATORS)
        return self._services.erase(self.id, subject, dry_run=dry_run, compact=compact)
