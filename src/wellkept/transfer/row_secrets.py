"""Search for credentials in imported rows. They are reported and never change a row."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from wellkept.model import Json
from wellkept.ports import AllowanceStore, Clock
from wellkept.secrets.check import SecretGuard
from wellkept.transfer.rules import TEXTS


class RowSecrets:
    """Secret check for the rows of one file. Allowances in the file count as if they were stored."""

    def __init__(self, store: AllowanceStore, now: Clock) -> None:
        self._allowances = _Allowances(store)
        self._guard = SecretGuard(self._allowances, now, mode="flag")

    def allow(self, hash: str) -> None:
        """Count a text with this hash as no secret."""
        self._allowances.more.add(hash)

    def find_rule(self, tenant: str, table: str, row: Json) -> str:
        """Return the rule that finds a secret in a text of the row; empty if none does."""
        for column in TEXTS.get(table, ()):
            for text in [row[column]] if isinstance(row[column], str) else row[column]:
                for found in self._guard.findings(tenant, text):
                    return found.rule
        return ""


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
