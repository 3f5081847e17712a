"""API keys: issue, verify and revoke; and logins to the console, each of which stands for a key.

A verified key is cached for one second, so that a busy client costs one query per second. A key revoked in this process
is refused at once; one revoked by another process, within that second. The time of the last use is written every few
minutes by a thread, never by the request.

A browser gets a random secret in a cookie; the store keeps its hash and the id of the key, never the key. So logins
survive a restart and count in every process that serves the store. The key is verified at each request: revoking it, or
its expiry, ends its logins. The cookie names its tenant, as a key does, and nothing is read before the tenant is known.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from wellkept.access import rules_keys
from wellkept.access.rules_keys import is_allowed, is_valid, key_hash
from wellkept.caller import Caller, current_caller
from wellkept.errors import Forbidden, Invalid, Unauthorized
from wellkept.extension import Clock
from wellkept.language.names import check_user
from wellkept.memory.rules_kinds import check_moment
from wellkept.memory.rules_trust import check_claim, is_within
from wellkept.model import ApiKey, AuditEvent, BackgroundStatus, IssuedKey, KeyScope, Origin
from wellkept.model.stored import ConsoleLogin, Place
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


LASTS = timedelta(hours=12)
LINK_LASTS = timedelta(hours=1)
MAX_LOGINS = 1_000
"""Maximum number of logins and links of a tenant; beyond it, the oldest are dropped."""

LOGGED_OUT = "You are not logged in; log in with a key."
USED_UP = "This link was already used or has expired. Log in with a key instead."


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
        now, caller, allowed = self._now(), current_caller(), rules_keys.check_scope(scope)
        limited_to, highest = rules_keys.check_limits(agents, trust, allowed, user)
        _check_scope(caller, allowed)
        highest = caller.trust if highest is None else highest
        if highest is not None:
            check_claim(highest, caller.trust)
        if expires_at is not None and check_moment(expires_at, "expires_at") <= now:
            raise Invalid("expires_at must lie in the future; leave it out for a key that does not expire.")
        record = ApiKey(
            id=rules_keys.encode_base32(secrets.token_bytes(rules_keys.ID_BYTES)),
            tenant=tenant,
            scope=allowed,
            name=rules_keys.check_key_name(name),
            created_at=now,
            expires_at=None if expires_at is None else check_moment(expires_at, "expires_at"),
            agents=limited_to,
            trust=highest,
            user=None if user is None else check_user(user),
        )
        # The event does not name the user, who may have to be erased.
        limits = {"agents": list(limited_to)} if limited_to else {}
        meta = {"scope": allowed.value, **limits, **({} if highest is None else {"trust": highest.value})}
        key = rules_keys.key_text(tenant, record.id, secrets.token_bytes(rules_keys.SECRET_BYTES))

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
        named = rules_keys.parse_key(key)
        if named is None:
            raise Unauthorized(REFUSED)
        now, hash, revoked = self._now(), key_hash(key), self._revoked
        record, stored = self._store.find_key(*named) or (None, NO_HASH)
        # Compare even if there is no such key, so that the response time does not reveal it.
        is_same = rules_keys.is_same_hash(hash, stored)
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


class Logins:
    """Service for the logins of every tenant, and the links that make one."""

    def __init__(self, store: SqlStore, keys: ApiKeys, now: Clock) -> None:
        self._store = store
        self._keys = keys
        self._now = now

    def begin(self, key: ApiKey) -> str:
        """Log in with a verified key; return the value of the cookie."""
        return self._issue(key, LASTS)

    def link_for(self, key: ApiKey) -> str:
        """Return a code that logs in once, without the key."""
        return self._issue(key, LINK_LASTS, is_link=True)

    def redeem(self, code: str) -> str:
        """Log in with the code of a link and use it up; return the value of the cookie. Raises: Unauthorized."""
        tenant = _tenant_of(code)
        found = None if tenant is None else self._store.take_link(tenant, _hash(code))
        if found is None or found.expires_at <= self._now():
            raise Unauthorized(USED_UP)
        return self.begin(self._keys.current(found.tenant, found.key_id))

    def key(self, cookie: str) -> ApiKey:
        """Return the key of a login. Raises: Unauthorized."""
        tenant = _tenant_of(cookie)
        found = None if tenant is None else self._store.find_login(tenant, _hash(cookie))
        if found is None or found.expires_at <= self._now():
            raise Unauthorized(LOGGED_OUT)
        return self._keys.current(found.tenant, found.key_id)

    def end(self, cookie: str) -> None:
        """Log out."""
        tenant = _tenant_of(cookie)
        if tenant is not None:
            self._store.delete_logins(tenant, _hash(cookie))

    def _issue(self, key: ApiKey, lasts: timedelta, *, is_link: bool = False) -> str:
        now, secret = self._now(), f"{rules_keys.encode_base32(key.tenant.encode())}.{secrets.token_urlsafe(32)}"
        login = ConsoleLogin(
            tenant=key.tenant, hash=_hash(secret), key_id=key.id, expires_at=now + lasts, is_link=is_link
        )
        self._store.add_login(login, at=now, most=MAX_LOGINS)
        return secret


def _tenant_of(secret: str) -> str | None:
    return rules_keys.decode_tenant(secret.partition(".")[0])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
