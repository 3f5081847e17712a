"""API keys: issue, verify and revoke.

A verified key is cached for one second, so that a busy client costs one query per second. A key revoked in this process
is refused at once; one revoked by another process, within that second. The time of the last use is written every few
minutes by a thread, never by the request.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from wellkept.access.rules_keys import (
    ID_BYTES,
    SECRET_BYTES,
    check_key_name,
    check_limits,
    check_scope,
    encode_base32,
    is_allowed,
    is_same_hash,
    is_valid,
    key_hash,
    key_text,
    parse_key,
)
from wellkept.caller import Caller, current_caller
from wellkept.errors import Forbidden, Invalid, Unauthorized
from wellkept.extension import Clock
from wellkept.language.names import check_user
from wellkept.memory.rules_kinds import check_moment
from wellkept.memory.rules_trust import check_claim, is_within
from wellkept.model import ApiKey, AuditEvent, BackgroundStatus, IssuedKey, KeyScope, Origin
from wellkept.model.stored import Place
from wellkept.upkeep.background import Queue

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

REFUSED = "This key is not valid or has expired; ask the operator of the server for a new one."
CACHE_TIME = timedelta(seconds=1)
MARK_INTERVAL = timedelta(minutes=5)
"""Interval at which the time of the last use of a key is written."""

MAX_KNOWN = 10_000
"""Maximum number of cached keys."""

NO_HASH = "0" * 64
"""Hash compared when a key does not exist, so that the response takes as long."""


class ApiKeys:
    """Service for the API keys of one store."""

    def __init__(self, store: SqlStore, now: Clock) -> None:
        self._store = store
        self._now = now
        self._lock = threading.Lock()
        # Records and the time of their lookup, by hash.
        self._known: dict[str, tuple[ApiKey, datetime]] = {}
        # Incremented when keys change: a record looked up before must not be cached.
        self._revoked = 0
        # Time of the last written use, by tenant and key id.
        self._marked: dict[tuple[str, str], datetime] = {}
        self._writer = Queue[tuple[str, str], datetime](
            lambda key, at: store.mark_used(key[0], [key[1]], at=at),
            merge=lambda older, newer: newer,
            name="keys",
            failed="The last use of API keys could not be recorded",
            max_size=MAX_KNOWN,
        )

    def add(
        self,
        tenant: str,
        scope: str,
        *,
        name: str = "",
        expires_at: datetime | None = None,
        agents: Collection[str] | None = None,
        trust: str | None = None,
        user: str | None = None,
    ) -> IssuedKey:
        """Issue a key. Raises: Invalid; Forbidden when it would allow more than the caller may."""
        now, caller, allowed = self._now(), current_caller(), check_scope(scope)
        limited_to, highest = check_limits(agents, trust, allowed, user)
        _check_scope(caller, allowed)
        highest = caller.trust if highest is None else highest
        if highest is not None:
            check_claim(highest, caller.trust)
        if expires_at is not None and check_moment(expires_at, "expires_at") <= now:
            raise Invalid("expires_at must lie in the future; leave it out for a key that does not expire.")
        record = ApiKey(
            id=encode_base32(secrets.token_bytes(ID_BYTES)),
            tenant=tenant,
            scope=allowed,
            name=check_key_name(name),
            created_at=now,
            expires_at=None if expires_at is None else check_moment(expires_at, "expires_at"),
            agents=limited_to,
            trust=highest,
            user=None if user is None else check_user(user),
        )
        # The event does not name the user, who may have to be erased.
        limits = {"agents": list(limited_to)} if limited_to else {}
        meta = {"scope": allowed.value, **limits, **({} if highest is None else {"trust": highest.value})}
        key = key_text(tenant, record.id, secrets.token_bytes(SECRET_BYTES))

        def add() -> None:
            self._store.add_key(record, key_hash(key))
            self._store.add_event(self._event(record.tenant, record.id, "key.add", "made", **meta))

        self._store.transaction(tenant, add)
        return IssuedKey(record=record, key=key)

    def list(self, tenant: str, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        """Return a tenant's keys, oldest first."""
        return self._store.list_keys(tenant, after=after, limit=limit)

    def revoke(self, tenant: str, id: str) -> None:
        """Revoke a key. Raises: NotFound; Forbidden when it allows more than the caller may."""
        caller, found = current_caller(), self._store.find_key(tenant, id)
        if found is not None:
            _check_scope(caller, found[0].scope)
            if not is_within(found[0].trust or Origin.USER, caller.trust):
                raise Forbidden(f"A key trusted as {caller.trust} has no say over one that is trusted more.")

        def revoke() -> None:
            self._store.revoke_key(tenant, id, at=self._now())
            self._store.add_event(self._event(tenant, id, "key.revoke", "revoked"))

        self._store.transaction(tenant, revoke)
        with self._lock:
            self._revoked += 1
            self._known.clear()

    def forget(self, tenant: str) -> None:
        """Drop the cached keys of a tenant, because their names may have changed."""
        with self._lock:
            self._revoked += 1
            self._known = {hash: found for hash, found in self._known.items() if found[0].tenant != tenant}

    def recent(self, key: str, *, at_any_age: bool = False) -> ApiKey | None:
        """Return the record of a key verified within the last second, or ever with `at_any_age`; else None.

        Does not access the store, so it can be called from the event loop.
        """
        found = self._known.get(key_hash(key))
        now = self._now()
        if found is None or not is_valid(found[0], now):
            return None
        return found[0] if at_any_age or timedelta() <= now - found[1] < CACHE_TIME else None

    def verify(self, key: str) -> ApiKey:
        """Verify a key and return its record. Raises: Unauthorized."""
        named = parse_key(key)
        if named is None:
            raise Unauthorized(REFUSED)
        now, hash, revoked = self._now(), key_hash(key), self._revoked
        record, stored = self._store.find_key(*named) or (None, NO_HASH)
        # Compare even if there is no such key, so that the response time does not reveal it.
        is_same = is_same_hash(hash, stored)
        if record is None or not is_same or not is_valid(record, now):
            raise Unauthorized(REFUSED)
        with self._lock:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            if revoked == self._revoked:
                self._known[hash] = (record, now)
        self._mark_used(record, now)
        return record

    def current(self, tenant: str, id: str) -> ApiKey:
        """Return the record of a key that was verified before, by its id.

        Raises: Unauthorized when it was revoked or has expired since.
        """
        now = self._now()
        record, _ = self._store.find_key(tenant, id) or (None, NO_HASH)
        if record is None or not is_valid(record, now):
            raise Unauthorized(REFUSED)
        self._mark_used(record, now)
        return record

    def is_any_valid(self) -> bool:
        """Return True if any tenant has a valid key."""
        now = self._now()
        for tenant in self._store.list_tenants_with_keys():
            keys = self._store.list_keys(tenant)
            if any(is_valid(key, now) for key in keys):
                return True
            # A database of an earlier version does not know which tenants have keys.
            if not keys:
                self._store.note_no_key(tenant)
        return False

    def status(self) -> BackgroundStatus:
        """Return the state of the background writer."""
        return self._writer.status()

    def close(self) -> None:
        """Write the queued times and stop the thread. Raises: StoreError."""
        self._writer.close()

    def _mark_used(self, key: ApiKey, now: datetime) -> None:
        """Queue the time of use, unless one was written recently."""
        who = (key.tenant, key.id)
        with self._lock:
            last = self._marked.get(who, key.last_used_at)
            if last is not None and timedelta() <= now - last < MARK_INTERVAL:
                return
            if len(self._marked) >= MAX_KNOWN:
                self._marked.clear()
            self._marked[who] = now
        self._writer.add(who, now)

    def _event(self, tenant: str, id: str, action: str, done: str, **meta: Any) -> AuditEvent:
        """Return an audit event that contains only the id of the key; its name may identify a person."""
        message = f"Key {id} was {done}."
        return AuditEvent(tenant=tenant, at=self._now(), action=action, message=message, meta={"id": id, **meta})


def _check_scope(caller: Caller, scope: KeyScope) -> None:
    """Check that the caller may manage keys of this scope. Raises: Forbidden."""
    if caller.scope is not None and not is_allowed(caller.scope, scope):
        raise Forbidden(f"A key with the scope {caller.scope.value} cannot manage one with the scope {scope.value}.")
