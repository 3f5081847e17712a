"""Keys: made, looked up for each request, revoked.

A key that was found good is good for a second more without asking the store, so that a busy client costs one look-up a
second. Revoked here, it is refused at once; revoked by another process, within that second. When it was last used is
written down every few minutes, by a thread, never by the request.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from recollect.caller import Caller, current_caller
from recollect.errors import Forbidden, Invalid, Unauthorized
from recollect.model import ApiKey, AuditEvent, BackgroundStatus, IssuedKey, KeyScope, Origin
from recollect.policy.keys import (
    ID_BYTES,
    SECRET_BYTES,
    allows,
    checked_key_name,
    checked_limits,
    checked_scope,
    encoded,
    is_same_hash,
    is_valid,
    key_hash,
    key_text,
    named_by,
)
from recollect.policy.memories.trust import check_claim, is_within
from recollect.ports import Clock, Place, Store
from recollect.services.background.writer import Later
from recollect.services.memories.drafts import checked_moment

REFUSED = "This key is not valid (any more); ask whoever runs the server for another one."
GOOD_FOR = timedelta(seconds=1)
NOTED_EVERY = timedelta(minutes=5)
MAX_KNOWN = 10_000
NO_HASH = "0" * 64


class Keys:
    """The keys of one store."""

    def __init__(self, store: Store, now: Clock) -> None:
        self._store = store
        self._now = now
        self._lock = threading.Lock()
        self._known: dict[str, tuple[ApiKey, datetime]] = {}  # by hash; when it was looked up
        self._revoked = 0  # so many keys were, or had their names changed: what was looked up before may be out of date
        self._noted: dict[tuple[str, str], datetime] = {}  # which use was last written down
        self._later = Later[tuple[str, str], datetime](
            lambda who, at: store.mark_used(who[0], [who[1]], at=at),
            merge=lambda older, newer: newer,
            name="keys",
            failed="When keys were last used could not be written down",
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
    ) -> IssuedKey:
        """Raises: Invalid; Forbidden when it could do more than the caller."""
        now, caller, allowed = self._now(), current_caller(), checked_scope(scope)
        limited_to, highest = checked_limits(agents, trust, allowed)
        _check_scope(caller, allowed)
        highest = caller.trust if highest is None else highest
        if highest is not None:
            check_claim(highest, caller.trust)
        if expires_at is not None and checked_moment(expires_at, "expires_at") <= now:
            raise Invalid("expires_at must lie in the future; leave it out for a key that does not expire.")
        record = ApiKey(
            id=encoded(secrets.token_bytes(ID_BYTES)),
            tenant=tenant,
            scope=allowed,
            name=checked_key_name(name),
            created_at=now,
            expires_at=None if expires_at is None else checked_moment(expires_at, "expires_at"),
            agents=limited_to,
            trust=highest,
        )
        limits = {"agents": list(limited_to)} if limited_to else {}
        told = {"scope": allowed.value, **limits, **({} if highest is None else {"trust": highest.value})}
        key = key_text(tenant, record.id, secrets.token_bytes(SECRET_BYTES))

        def add() -> None:
            self._store.add_key(record, key_hash(key))
            self._store.add_event(self._event(record.tenant, record.id, "key.add", "made", **told))

        self._store.transaction(tenant, add)
        return IssuedKey(record=record, key=key)

    def list(self, tenant: str, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        return self._store.list_keys(tenant, after=after, limit=limit)

    def revoke(self, tenant: str, id: str) -> None:
        """Raises: NotFound; Forbidden when it allows more than the caller's."""
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
        """Look a tenant's keys up again when they are next shown: their names may have changed."""
        with self._lock:
            self._revoked += 1
            self._known = {hash: found for hash, found in self._known.items() if found[0].tenant != tenant}

    def recent(self, key: str, *, at_any_age: bool = False) -> ApiKey | None:
        """The key's record if it was found good a moment ago, or `at_any_age`; asks nobody, so it may be called where
        waiting is not allowed."""
        found = self._known.get(key_hash(key))
        now = self._now()
        if found is None or not is_valid(found[0], now):
            return None
        return found[0] if at_any_age or timedelta() <= now - found[1] < GOOD_FOR else None

    def verify(self, key: str) -> ApiKey:
        """What a key opens.

        Raises: Unauthorized.
        """
        named = named_by(key)
        if named is None:
            raise Unauthorized(REFUSED)
        now, hash, revoked = self._now(), key_hash(key), self._revoked
        record, stored = self._store.find_key(*named) or (None, NO_HASH)
        is_same = is_same_hash(hash, stored)  # also when there is none: it should not answer sooner
        if record is None or not is_same or not is_valid(record, now):
            raise Unauthorized(REFUSED)
        with self._lock:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            if revoked == self._revoked:
                self._known[hash] = (record, now)
        self._note(record, now)
        return record

    def current(self, tenant: str, id: str) -> ApiKey:
        """The key of this id, for whoever has shown it before.

        Raises: Unauthorized when it was revoked or has expired since.
        """
        now = self._now()
        record, _ = self._store.find_key(tenant, id) or (None, NO_HASH)
        if record is None or not is_valid(record, now):
            raise Unauthorized(REFUSED)
        self._note(record, now)
        return record

    def is_any_valid(self) -> bool:
        """Whether there is a key that opens something, in whatever tenant."""
        now = self._now()
        return any(is_valid(key, now) for tenant in self._store.list_tenants() for key in self._store.list_keys(tenant))

    def status(self) -> BackgroundStatus:
        return self._later.status()

    def close(self) -> None:
        """Write down what is still to be.

        Raises: StoreError.
        """
        self._later.close()

    def _note(self, key: ApiKey, now: datetime) -> None:
        who = (key.tenant, key.id)
        with self._lock:
            last = self._noted.get(who, key.last_used_at)
            if last is not None and timedelta() <= now - last < NOTED_EVERY:
                return
            if len(self._noted) >= MAX_KNOWN:
                self._noted.clear()
            self._noted[who] = now
        self._later.add(who, now)

    def _event(self, tenant: str, id: str, action: str, done: str, **meta: Any) -> AuditEvent:
        """The key's id only: its name may tell whose it is."""
        message = f"Key {id} was {done}."
        return AuditEvent(tenant=tenant, at=self._now(), action=action, message=message, meta={"id": id, **meta})


def _check_scope(caller: Caller, scope: KeyScope) -> None:
    """Raises: Forbidden."""
    if caller.scope is not None and not allows(caller.scope, scope):
        raise Forbidden(f"A key with the scope {caller.scope.value} has no say over one with the scope {scope.value}.")
