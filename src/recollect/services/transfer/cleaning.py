"""Removal of credentials from imported rows.

A file may come from a store with a less strict setting. A memory is refused, redacted or flagged, as the setting says.
A turn or a passage cannot be left out without a gap, so only its credential is redacted.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from recollect.model import Json
from recollect.policy.transfer import TEXTS
from recollect.ports import AllowanceStore, Clock
from recollect.services.memories.secrets import FLAG, SecretGuard


class RowCleaner:
    """Secret check for the rows of one file. Allowances in the file count as if they were stored."""

    def __init__(self, store: AllowanceStore, now: Clock, *, mode: str) -> None:
        self._allowances = _Allowances(store)
        self._guard = SecretGuard(self._allowances, now, mode=mode)

    def clean(self, tenant: str, table: str, row: Json) -> Json | None:
        """Return the row to store, the same object if it is clean; None if it is refused."""
        if table == "secret_allowances":
            self._allowances.more.add(str(row["hash"]))
        if table == "memories":
            return self._clean_memory(tenant, row)
        changed: Json = {}
        for column in TEXTS.get(table, ()):
            cleaned, _ = self._guard.clean(tenant, row[column])
            if cleaned != row[column]:
                changed[column] = cleaned
        return row | changed if changed else row

    def has_secret(self, tenant: str, text: str) -> bool:
        """Return True if a text contains a secret that is not allowed."""
        return bool(self._guard.findings(tenant, text))

    def redact(self, tenant: str, text: str) -> str:
        """Replace every secret by a mark."""
        return self._guard.redact(tenant, text)

    def _clean_memory(self, tenant: str, row: Json) -> Json | None:
        if any(self._guard.findings(tenant, str(tag)) for tag in row["tags"]):
            return None
        found = self._guard.findings(tenant, row["text"])
        if not found:
            return row
        if self._guard.is_flagging:
            return row if row["flag"] is not None else row | {"flag": f"{FLAG}: {found[0].rule}"}
        return None if self._guard.mode == "reject" else row | {"text": self._guard.redact(tenant, row["text"])}


class _Allowances:
    """`ports.AllowanceStore` that adds the allowances of the file to the stored ones."""

    def __init__(self, store: AllowanceStore) -> None:
        self._store = store
        self.more: set[str] = set()

    def add_allowance(self, tenant: str, hash: str, *, now: datetime) -> None:
        self._store.add_allowance(tenant, hash, now=now)

    def list_allowances(self, tenant: str) -> Collection[str]:
        return self.more.union(self._store.list_allowances(tenant))

    def delete_allowance(self, tenant: str, hash: str) -> None:
        self._store.delete_allowance(tenant, hash)
