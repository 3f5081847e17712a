"""API keys as rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from recollect.errors import Conflict, NotFound
from recollect.model import ApiKey, KeyScope, Origin
from recollect.ports import Place
from recollect.store.engine import Row, Unit
from recollect.store.rows import BEHIND_ALL, json_list, json_text, maybe_moment, moment
from recollect.store.units import Units

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class KeyRows(Units):
    """`ports.KeyStore`."""

    def add_key(self, key: ApiKey, hash: str) -> ApiKey:
        def add(unit: Unit) -> int:
            unit.run("add_tenant", tenant=key.tenant, now=key.created_at)
            return unit.run("add_key", **_values(key), hash=hash)

        if not self._write(key.tenant, add):
            raise Conflict("There is a key of that id already.")
        return key

    def find_key(self, tenant: str, id: str) -> tuple[ApiKey, str] | None:
        row = self._read(tenant, lambda unit: unit.one("find_key", tenant=tenant, id=id))
        return None if row is None else (_key_from(row[:-1]), row[-1])

    def list_keys(self, tenant: str, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        at, id = (BEFORE_ALL, "") if after is None else after
        page = {"at": at, "id": id, "limit": BEHIND_ALL if limit is None else limit}
        rows = self._read(tenant, lambda unit: unit.all("list_keys", tenant=tenant, **page))
        return [_key_from(row) for row in rows]

    def revoke_key(self, tenant: str, id: str, *, at: datetime) -> None:
        if not self._write(tenant, lambda unit: unit.run("revoke_key", tenant=tenant, id=id, at=at)):
            raise NotFound("There is no such key.")

    def mark_used(self, tenant: str, ids: Collection[str], *, at: datetime) -> None:
        rows = [{"tenant": tenant, "id": id, "at": at} for id in sorted(ids)]
        self._write(tenant, lambda unit: unit.run_many("mark_key_used", rows))


def _key_from(row: Row) -> ApiKey:
    tenant, id, scope, name, created_at, *ends, agents, trust = row
    last_used_at, expires_at, revoked_at = map(maybe_moment, ends)
    return ApiKey(
        id=id,
        tenant=tenant,
        scope=KeyScope(scope),
        name=name,
        created_at=moment(created_at),
        last_used_at=last_used_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        agents=tuple(json_list(agents)),
        trust=None if trust is None else Origin(trust),
    )


def _values(key: ApiKey) -> dict[str, Any]:
    return {
        "tenant_id": key.tenant,
        "id": key.id,
        "scope": key.scope.value,
        "name": key.name,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "agents": json_text(key.agents),
        "trust": None if key.trust is None else key.trust.value,
    }
