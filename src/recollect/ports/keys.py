"""Who may come in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from recollect.model import ApiKey
from recollect.ports.transcripts import Place


class KeyStore(Protocol):
    """A tenant's API keys, each with the hash of what its holder sends."""

    def add_key(self, key: ApiKey, hash: str) -> ApiKey:
        """Raises: Conflict when the tenant has a key of that id."""

    def find_key(self, tenant: str, id: str) -> tuple[ApiKey, str] | None:
        """The key and its hash."""

    def list_keys(self, tenant: str, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        """Oldest first, also those that no longer open anything, beginning behind `after`; None: all."""

    def revoke_key(self, tenant: str, id: str, *, at: datetime) -> None:
        """What was revoked before stays revoked since then.

        Raises: NotFound.
        """

    def mark_used(self, tenant: str, ids: Collection[str], *, at: datetime) -> None: ...
