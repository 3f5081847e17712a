"""Keeping credentials out of what is imported, as they are kept out of everything else.

A file may come from anywhere, also from a store that was less strict. A memory is treated as the setting says: refused,
redacted or flagged. Of what cannot be left out without tearing a hole, a turn or a passage, only the credential is.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from recollect.model import Json
from recollect.policy.transfer import TEXTS
from recollect.ports import AllowanceStore, Clock
from recollect.services.memories.secrets import FLAG, SecretGuard


class Cleaning:
    """Looks at the rows of one file. What the file says is no secret counts as if it were stored already."""

    def __init__(self, store: AllowanceStore, now: Clock, *, mode: str) -> None:
        self._allowances = _Allowances(store)
        self._guard = SecretGuard(self._allowances, now, mode=mode)

    def clean(self, tenant: str, table: str, row: Json) -> Json | None:
        """The row as it may be stored, the very same if nothing is wrong with it; None: not at all."""
        if table == "secret_allowances":
            self._allowances.more.add(str(row["hash"]))
        if table == "memories":
            return self._clean_memory(tenant, row)
        changed: Json = {}
        for column in TEXTS.get(table, ()):
            cleaned, _ = self._guard.cleaned(tenant, row[column])
            if cleaned != row[column]:
                changed[column] = cleaned
        return row | changed if changed else row

    def has_secret(self, tenant: str, text: str) -> bool:
        return bool(self._guard.findings(tenant, text))

    def redacted(self, tenant: str, text: str) -> str:
        return self._guard.redacted(tenant, text)

    def _clean_memory(self, tenant: str, row: Json) -> Json | None:
        if any(self._guard.findings(tenant, str(tag)) for tag in row["tags"]):
            return None
        found = self._guard.findings(tenant, row["text"])
        if not found:
            return row
        if self._guard.is_flagging:
            return row if row["flag"] is not None else row | {"flag": f"{FLAG}: {found[0].rule}"}
        return None if self._guard.mode == "reject" else row | {"text": self._guard.redacted(tenant, row["text"])}


class _Allowances:
    """`ports.AllowanceStore` that knows more than the store does."""

    def __init__(self, store: AllowanceStore) -> None:
        self._store = store
        self.more: set[str] = set()

    def add_allowance(self, tenant: str, hash: str, *, now: datetime) -> None:
        self._store.add_allowance(tenant, hash, now=now)

    def list_allowances(self, tenant: str) -> Collection[str]:
        return self.more.union(self._store.list_allowances(tenant))

    def delete_allowance(self, tenant: str, hash: str) -> None:
        self._store.delete_allowance(tenant, hash)
