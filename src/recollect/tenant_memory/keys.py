"""A tenant's API keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.agent_memory import MAX_PAGE
from recollect.model import ApiKey, IssuedKey, KeyScope
from recollect.ports import Place
from recollect.services.recall import checked_limit
from recollect.tenant_memory.view import TenantView


class Keys(TenantView):
    """The verbs that decide who may come in."""

    def add_key(self, scope: str = KeyScope.READ, *, name: str = "", expires_at: datetime | None = None) -> IssuedKey:
        """Make a key that allows `scope` ("read", "write" or "admin"). It is told this once; only its hash is kept.

        Raises: Invalid.
        """
        return self._services.keys.add(self.id, scope, name=name, expires_at=expires_at)

    def list_keys(self, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        """Keys, oldest first, also those that were revoked or have expired: all, or `limit` of them behind the one
        made then with that id.

        Raises: Invalid.
        """
        return self._services.keys.list(
            self.id, after=after, limit=None if limit is None else checked_limit(limit, most=MAX_PAGE)
        )

    def revoke_key(self, id: str) -> None:
        """From now on the key opens nothing. It stays in the list.

        Raises: NotFound.
        """
        self._services.keys.revoke(self.id, id)
