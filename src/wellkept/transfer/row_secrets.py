"""Search for credentials in imported rows. They are reported and never change a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wellkept.extension import Clock
from wellkept.model import Json
from wellkept.secrets.check import SecretGuard
from wellkept.transfer.rules import TEXTS

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


class RowSecrets:
    """Secret check for the rows of one file. Allowances in the file count as if they were stored."""

    def __init__(self, store: SqlStore, now: Clock) -> None:
        self._allowed: set[str] = set()
        self._guard = SecretGuard(store, now, mode="flag", also_allowed=self._allowed)

    def allow(self, hash: str) -> None:
        """Count a text with this hash as no secret."""
        self._allowed.add(hash)

    def find_rule(self, tenant: str, table: str, row: Json) -> str:
        """Return the rule that finds a secret in a text of the row; empty if none does."""
        for column in TEXTS.get(table, ()):
            for text in [row[column]] if isinstance(row[column], str) else row[column]:
                for found in self._guard.findings(tenant, text):
                    return found.rule
        return ""
