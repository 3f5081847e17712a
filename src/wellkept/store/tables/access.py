"""Rows of API keys, logins to the console, idempotency keys and allowed secrets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from wellkept.errors import Conflict, NotFound
from wellkept.model import ApiKey
from wellkept.model.stored import CLAIM, Claim, ConsoleLogin, KeptAnswer, Place
from wellkept.store.engine import Unit, Units, take_key
from wellkept.store.tables.rows import BEHIND_ALL, COLUMNS, NO_OWNER, RecordRows, moment, note_change

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
"""Start of a listing without a cursor."""


class KeyRows(Units):
    """API keys of a tenant, stored with the hash of the secret."""

    def add_key(self, key: ApiKey, hash: str) -> ApiKey:
        """Add a key. Raises: Conflict when the tenant has a key with that id."""

        def add(unit: Unit) -> int:
            unit.put("add_tenant", tenant=key.tenant, now=key.created_at)
            unit.put("note_key", tenant=key.tenant)
            return unit.run("add_key", **_key_values(key), hash=hash)

        if not self.write(key.tenant, add):
            raise Conflict("A key with that id already exists.")
        return key

    def find_key(self, tenant: str, id: str) -> tuple[ApiKey, str] | None:
        """Return the key and its hash."""
        row = self._one(tenant, "find_key", id=id)
        return None if row is None else (_key_from(row[:-1]), row[-1])

    def list_keys(self, tenant: str, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        """List keys, oldest first, including revoked and expired ones, starting after `after`; `limit` None returns
        all.
        """
        at, id = (BEFORE_ALL, "") if after is None else after
        page = {"at": at, "id": id, "limit": BEHIND_ALL if limit is None else limit}
        return [*map(_key_from, self._all(tenant, "list_keys", **page))]

    def list_tenants_with_keys(self) -> Sequence[str]:
        """List the tenants that may have a key."""
        return [row[0] for row in self._all(NO_OWNER, "list_tenants_with_keys")]

    def note_no_key(self, tenant: str) -> None:
        """Note that a tenant has no key, if that is so."""

        def note(unit: Unit) -> None:
            # Whoever adds a key meanwhile waits for this row, and then notes the key.
            unit.put("note_no_key", tenant=tenant)
            if unit.one("list_keys", tenant=tenant, at=BEFORE_ALL, id="", limit=1) is not None:
                unit.put("note_key", tenant=tenant)

        self.write(tenant, note)

    def revoke_key(self, tenant: str, id: str, *, at: datetime) -> None:
        """Revoke a key; an earlier revocation keeps its time. Raises: NotFound."""
        if not self._run(tenant, "revoke_key", id=id, at=at):
            raise NotFound("There is no such key.")

    def mark_used(self, tenant: str, ids: Collection[str], *, at: datetime) -> None:
        rows = [{"tenant": tenant, "id": id, "at": at} for id in sorted(ids)]
        self.write(tenant, lambda unit: unit.run_many("mark_key_used", rows))

    def add_login(self, login: ConsoleLogin, *, at: datetime, most: int) -> None:
        """Add a login; drop the expired ones of its tenant, and the oldest beyond `most`."""
        values = {"key_id": login.key_id, "at": at, "expires_at": login.expires_at}

        def add(unit: Unit) -> None:
            unit.put("prune_logins", tenant=login.tenant, at=at, most=most - 1, beyond=BEHIND_ALL)
            unit.put("add_login", tenant=login.tenant, hash=login.hash, is_link=login.is_link, **values)

        self.write(login.tenant, add)

    def find_login(self, tenant: str, hash: str) -> ConsoleLogin | None:
        """Return a login, expired or not."""
        return self.read(tenant, lambda unit: _find_login(unit, tenant, hash, is_link=False))

    def take_link(self, tenant: str, hash: str) -> ConsoleLogin | None:
        """Delete a link and return it; of concurrent callers one gets it."""

        def take(unit: Unit) -> ConsoleLogin | None:
            found = _find_login(unit, tenant, hash, is_link=True)
            # Two transactions may find it; one of them deletes it.
            return found if unit.run("delete_login", tenant=tenant, hash=hash, is_link=True) else None

        return self.write(tenant, take)

    def delete_logins(self, tenant: str, hash: str | None = None) -> int:
        """Delete one login, or all logins and links of a tenant. Return how many."""
        if hash is None:
            return self._run(tenant, "delete_logins")
        return self._run(tenant, "delete_login", hash=hash, is_link=False)


def _find_login(unit: Unit, tenant: str, hash: str, *, is_link: bool) -> ConsoleLogin | None:
    row = unit.one("find_login", tenant=tenant, hash=hash, is_link=is_link)
    if row is None:
        return None
    return ConsoleLogin(tenant=tenant, hash=hash, key_id=row[0], expires_at=moment(row[1]), is_link=is_link)


_KEYS = RecordRows(ApiKey, COLUMNS["key"])
_key_from, _key_values = _KEYS.parse, _KEYS.render

ROW_BYTES = 1000
"""Size charged for a row without its answer, indexes included."""

NO_HOLDER = "-"
"""Placeholder that matches the holder of no row."""


class IdempotencyRows(Units):
    """Idempotency keys of a tenant, by hash."""

    def find_answer(self, claim: Claim) -> KeptAnswer | None:
        """Return the answer recorded under the claim's key, unless it has expired."""
        row = self._one(claim.tenant, "find_answer", key_hash=claim.key_hash, now=claim.at)
        if row is None:
            return None
        at, request_hash, status, content_type, body = row
        return KeptAnswer(at=moment(at), request_hash=request_hash, status=status, content_type=content_type, body=body)

    def keep_answer(self, claim: Claim, answer: KeptAnswer) -> None:
        """Record the answer, and also the key if the request wrote nothing, unless another request has the key."""
        values = {
            "holder": claim.holder,
            "request_hash": answer.request_hash,
            "status": answer.status,
            "content_type": answer.content_type,
            "answer": answer.body,
            "size": ROW_BYTES + len(answer.body or b""),
        }

        def keep(unit: Unit) -> None:
            if claim.is_written or take_key(unit, claim):
                note_change(unit)
                unit.put("keep_answer", tenant=claim.tenant, key_hash=claim.key_hash, **values)

        self.write(claim.tenant, keep)

    def prune_answers(self, tenant: str, *, created_until: datetime, max_bytes: int) -> int:
        """Delete keys created until then, and the oldest ones beyond `max_bytes`. Return how many."""

        def prune(unit: Unit) -> int:
            count = unit.run("drop_expired_answers", tenant=tenant, created_until=created_until)
            excess = unit.one("newest_excess_answer", tenant=tenant, max_bytes=max_bytes)
            return count + (unit.run("drop_old_answers", tenant=tenant, at=excess[0]) if excess is not None else 0)

        return self.write(tenant, prune)

    def erase_answers(self, tenant: str, *, with_keys: bool = False) -> int:
        """Delete the content of every answer, including pending ones, except that of the erasing request.

        Returns how many there were. `with_keys` deletes the keys too.
        """
        statement = "erase_idempotency_keys" if with_keys else "erase_answers"
        claim = CLAIM.get()
        # Skip the key of the erasing request itself: its answer, the receipt, is still to come and quotes nothing.
        holder = NO_HOLDER if claim is None or claim.is_over else claim.holder
        values = {"size": ROW_BYTES, "but_holder": holder}
        return self._run(tenant, statement, **values)


class AllowanceRows(Units):
    """Hashes of texts a tenant has declared not to be secrets."""

    def add_allowance(self, tenant: str, hash: str, *, now: datetime) -> None:
        def add(unit: Unit) -> None:
            unit.put("add_tenant", tenant=tenant, now=now)
            unit.put("add_allowance", tenant=tenant, hash=hash, now=now)

        self.write(tenant, add)

    def list_allowances(self, tenant: str) -> Collection[str]:
        return {row[0] for row in self._all(tenant, "list_allowances")}

    def delete_allowance(self, tenant: str, hash: str) -> None:
        self._run(tenant, "delete_allowance", hash=hash)
