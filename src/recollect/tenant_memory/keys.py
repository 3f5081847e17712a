"""A tenant's API keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from recollect.agent_memory import MAX_PAGE
from recollect.caller import current_caller
from recollect.model import ApiKey, IssuedKey, KeyScope
from recollect.ports import Place
from recollect.services.recall import checked_limit
from recollect.tenant_memory.view import TenantView


class Keys(TenantView):
    """The verbs that decide who may come in."""

    def add_key(
        self,
        scope: str = KeyScope.READ,
        *,
        name: str = "",
        expires_at: datetime | None = None,
        agents: Collection[str] | None = None,
        trust: str | None = None,
    ) -> IssuedKey:
        """Make a key that allows `scope` ("read", "write", "admin" or "operator"). `agents` limits it to these agents
        (None: it is for all); `trust` to writing memories of this origin or of one that is trusted less. It is told
        this once; only its hash is kept.

        Raises: Invalid; Forbidden when it could do more than the caller.
        """
        current_caller().check_whole_tenant()
        return self._services.keys.add(self.id, scope, name=name, expires_at=expires_at, agents=agents, trust=trust)

    def list_keys(self, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        """Keys, oldest first, also those that were revoked or have expired: all, or `limit` of them behind the one
        made then with that id.

        Raises: Invalid, Forbidden.
        """
        current_caller().check_whole_tenant()
        return self._services.keys.list(
            self.id, after=after, limit=None if limit is None else checked_limit(limit, most=MAX_PAGE)
        )

    def revoke_key(self, id: str) -> None:
        """From now on the key opens nothing. It stays in the list.

        Raises: NotFound, Forbidden.
        """
        current_caller().check_whole_tenant()
        self._services.keys.revoke(self.id, id)
