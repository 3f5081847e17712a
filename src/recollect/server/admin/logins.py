"""Who is logged in to the console.

A browser gets a random number in a cookie; here only the number's hash is known, with the id of the key that was shown,
never the key. They live as long as the process and at most `LASTS`. At each request the key is looked up again: one
that was revoked or has expired ends its logins.
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

PATH = "/admin"
COOKIE = "recollect_console"
LASTS = timedelta(hours=12)
LINK_LASTS = timedelta(hours=1)
MAX_LOGINS = 1_000
LOGGED_OUT = "You are not logged in, or no longer; log in with a key."
USED_UP = "This link was used already, or is too old. Log in with a key instead."


def is_console(path: str) -> bool:
    """
    >>> is_console("/admin"), is_console("/admin/audit"), is_console("/administrator")
    (True, True, False)
    """
    return path == PATH or path.startswith(f"{PATH}/")


@dataclass(frozen=True, slots=True)
class _Pass:
    """What a secret opens: the door for the key of this id."""

    tenant: str
    key_id: str
    until: datetime


class Logins:
    """The logins of one server, and the links that make one."""

    def __init__(self, recollect: Recollect) -> None:
        self._recollect = recollect
        self._lock = threading.Lock()
        self._logins: dict[str, _Pass] = {}  # by the hash of the cookie
        self._links: dict[str, _Pass] = {}  # by the hash of the code

    def begin(self, key: ApiKey) -> str:
        """Log in whoever has shown this key; the value of their cookie."""
        return self._issue(self._logins, key, LASTS)

    def link_for(self, key: ApiKey) -> str:
        """A code that logs in once, without the key."""
        return self._issue(self._links, key, LINK_LASTS)

    def redeem(self, code: str) -> str:
        """Log in by a link, which is used up by this; the value of the cookie.

        Raises: Unauthorized.
        """
        with self._lock:
            found = self._links.pop(_hash(code), None)
        if found is None or found.until <= self._recollect.now():
            raise Unauthorized(USED_UP)
        return self.begin(self._recollect.current_key(found.tenant, found.key_id))

    def key(self, cookie: str) -> ApiKey:
        """The key a login was made with.

        Raises: Unauthorized.
        """
        found = self._logins.get(_hash(cookie))
        if found is None or found.until <= self._recollect.now():
            self.end(cookie)
            raise Unauthorized(LOGGED_OUT)
        return self._recollect.current_key(found.tenant, found.key_id)

    def end(self, cookie: str) -> None:
        """Log out."""
        with self._lock:
            self._logins.pop(_hash(cookie), None)

    def _issue(self, passes: dict[str, _Pass], key: ApiKey, lasts: timedelta) -> str:
        secret = secrets.token_urlsafe(32)
        with self._lock:
            while len(passes) >= MAX_LOGINS:
                del passes[next(iter(passes))]  # the oldest
            passes[_hash(secret)] = _Pass(key.tenant, key.id, self._recollect.now() + lasts)
        return secret


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
