"""A tenant's API keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.model import ApiKey, IssuedKey, KeyScope
from recollect.tenant_memory.view import TenantView


class Keys(TenantView):
    """The verbs that decide who may come in."""

    def add_key(self, scope: str = KeyScope.READ, *, name: str = "", expires_at: datetime | None = None) -> IssuedKey:
        """Make a key that allows `scope` ("read", "write" or "admin"). It is told this once; only its hash is kept.

        Raises: Invalid.
        """
        return self._services.keys.add(self.id, scope, name=name, expires_at=expires_at)

    def list_keys(self) -> Sequence[ApiKey]:
        """All keys, oldest first, also those that were revoked or have expired."""
        return self._services.keys.list(self.id)

    def revoke_key(self, id: str) -> None:
        """From now on the key opens nothing. It stays in the list.

        Raises: NotFound.
        """
        self._services.keys.revoke(self.id, id)
