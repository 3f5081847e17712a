"""Logins to the console.

A browser gets a random value in a cookie; the server keeps only its hash and the id of the key, never the key. Logins
last as long as the process and at most `LASTS`. The key is verified at each request: revoking it, or its expiry, ends
its logins.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.api.recollect import Recollect
from recollect.errors import Unauthorized
from recollect.model import ApiKey
from recollect.server.http.routing import CONSOLE_PATH

PATH = CONSOLE_PATH
COOKIE = "recollect_console"
LASTS = timedelta(hours=12)
LINK_LASTS = timedelta(hours=1)
MAX_LOGINS = 1_000
LOGGED_OUT = "You are not logged in; log in with a key."
USED_UP = "This link was already used or has expired. Log in with a key instead."


@dataclass(frozen=True, slots=True)
class _Login:
    """The key of a login or link, and its expiry."""

    tenant: str
    key_id: str
    until: datetime


class Logins:
    """The logins of one server, and the links that make one."""

    def __init__(self, recollect: Recollect) -> None:
        self._recollect = recollect
        self._lock = threading.Lock()
        self._logins: dict[str, _Login] = {}  # by the hash of the cookie
        self._links: dict[str, _Login] = {}  # by the hash of the code

    def begin(self, key: ApiKey) -> str:
        """Log in with a verified key; return the value of the cookie."""
        return self._issue(self._logins, key, LASTS)

    def link_for(self, key: ApiKey) -> str:
        """Return a code that logs in once, without the key."""
        return self._issue(self._links, key, LINK_LASTS)

    def redeem(self, code: str) -> str:
        """Log in with the code of a link and use it up; return the value of the cookie. Raises: Unauthorized."""
        with self._lock:
            found = self._links.pop(_hash(code), None)
        if found is None or found.until <= self._recollect.now():
            raise Unauthorized(USED_UP)
        return self.begin(self._recollect.current_key(found.tenant, found.key_id))

    def key(self, cookie: str) -> ApiKey:
        """Return the key of a login. Raises: Unauthorized."""
        found = self._logins.get(_hash(cookie))
        if found is None or found.until <= self._recollect.now():
            self.end(cookie)
            raise Unauthorized(LOGGED_OUT)
        return self._recollect.current_key(found.tenant, found.key_id)

    def end(self, cookie: str) -> None:
        """Log out."""
        with self._lock:
            self._logins.pop(_hash(cookie), None)

    def _issue(self, passes: dict[str, _Login], key: ApiKey, lasts: timedelta) -> str:
        secret = secrets.token_urlsafe(32)
        with self._lock:
            while len(passes) >= MAX_LOGINS:
                del passes[next(iter(passes))]  # the oldest
            passes[_hash(secret)] = _Login(key.tenant, key.id, self._recollect.now() + lasts)
        return secret


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
