"""What a tenant has said is no secret, as rows of hashes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from recollect.store.engine import Unit
from recollect.store.units import Units


class AllowanceRows(Units):
    """`ports.AllowanceStore`."""

    def add_allowance(self, tenant: str, hash: str, *, now: datetime) -> None:
        def add(unit: Unit) -> None:
            unit.run("add_tenant", tenant=tenant, now=now)
            unit.run("add_allowance", tenant=tenant, hash=hash, now=now)

        self._write(tenant, add)

    def list_allowances(self, tenant: str) -> Collection[str]:
        return {row[0] for row in self._read(tenant, lambda unit: unit.all("list_allowances", tenant=tenant))}

    def delete_allowance(self, tenant: str, hash: str) -> None:
        self._write(tenant, lambda unit: unit.run("delete_allowance", tenant=tenant, hash=hash))
