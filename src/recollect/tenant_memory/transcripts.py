"""The conversations of all of a tenant's agents: for whoever knows a session's id and not whose it is."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.agent_memory import MAX_PAGE, PAGE
from recollect.caller import current_caller
from recollect.errors import NotFound
from recollect.model import Owner, Session
from recollect.ports import Place, place_of
from recollect.services.recall import checked_limit
from recollect.tenant_memory.view import TenantView


class Transcripts(TenantView):
    """The verbs that look at conversations."""

    def sessions(self, *, before: Place | None = None, limit: int = PAGE) -> Sequence[Session]:
        """Conversations of every agent, the one used last first; `before` (`place_of` a session) continues a listing.

        Raises: Invalid.
        """
        limit = checked_limit(limit, most=MAX_PAGE)
        if not current_caller().agents:
            return self._store.list_tenant_sessions(self.id, before=before, limit=limit)
        owners = [Owner(self.id, agent) for agent in current_caller().agents]
        found = [each for owner in owners for each in self._store.list_sessions(owner, before=before, limit=limit)]
        return sorted(found, key=place_of, reverse=True)[:limit]

    def session(self, id: str) -> Session:
        """A conversation, whichever agent's it is.

        Raises: NotFound.
        """
        session = self._store.find_tenant_session(self.id, id)
        if session is None or not current_caller().is_allowed(session.owner.agent):
            raise NotFound("There is no such session.")
        return session
