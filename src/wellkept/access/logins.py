"""Logins to the console.

A browser gets a random secret in a cookie; the store keeps its hash and the id of the key, never the key. So logins
survive a restart and count in every process that serves the store. The key is verified at each request: revoking it, or
its expiry, ends its logins. The cookie names its tenant, as a key does, and nothing is read before the tenant is known.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from wellkept.access.keys import ApiKeys
from wellkept.access.rules_keys import decode_tenant, encode_base32
from wellkept.errors import Unauthorized
from wellkept.extension import Clock
from wellkept.model import ApiKey
from wellkept.model.stored import ConsoleLogin

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

LASTS = timedelta(hours=12)
LINK_LASTS = timedelta(hours=1)
MAX_LOGINS = 1_000
"""Maximum number of logins and links of a tenant; beyond it, the oldest are dropped."""

LOGGED_OUT = "You are not logged in; log in with a key."
USED_UP = "This link was already used or has expired. Log in with a key instead."


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
        now, secret = self._now(), f"{encode_base32(key.tenant.encode())}.{secrets.token_urlsafe(32)}"
        login = ConsoleLogin(
            tenant=key.tenant, hash=_hash(secret), key_id=key.id, expires_at=now + lasts, is_link=is_link
        )
        self._store.add_login(login, at=now, most=MAX_LOGINS)
        return secret


def _tenant_of(secret: str) -> str | None:
    return decode_tenant(secret.partition(".")[0])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
