"""What an API key looks like, and what it allows.

`recollect_<tenant>_<id>_<secret>`: the tenant and the id are where to look, the secret (256 random bits) is the proof.
Since the key names its tenant, keys are ordinary rows of that tenant, behind the same walls as everything else it has:
nothing has to be readable before the tenant is known. Naming another tenant leads to a row whose secret one lacks.

Only a SHA-256 of the whole key is stored. A slow hash protects passwords, which can be guessed; 256 random bits
cannot, however fast one may try, and a fast hash costs a request only microseconds.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from datetime import datetime

from recollect.errors import Invalid
from recollect.model import ApiKey, KeyScope, Origin
from recollect.policy.names import checked_agent, checked_tenant
from recollect.policy.text import checked_text

PREFIX = "recollect"
ID_BYTES = 5
SECRET_BYTES = 32
MAX_NAME_CHARS = 100
MAX_AGENTS = 100

_KEY = re.compile(r"recollect_([a-z2-7]{2,104})_([a-z2-7]{8})_([a-z2-7]{52})")
_ORDER = tuple(KeyScope)


def key_text(tenant: str, id: str, secret: bytes) -> str:
    """The key a caller sends.

    >>> key_text("acme", "aaaaaaaa", bytes(32))[:35]
    'recollect_mfrw2zi_aaaaaaaa_aaaaaaaa'
    """
    return f"{PREFIX}_{encoded(tenant.encode())}_{id}_{encoded(secret)}"


def named_by(key: str) -> tuple[str, str] | None:
    """The tenant and the id a key names; None for what cannot be a key.

    >>> named_by(key_text("acme", "aaaaaaaa", bytes(32))), named_by("hunter2")
    (('acme', 'aaaaaaaa'), None)
    """
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    try:
        padded = match[1].upper() + "=" * (-len(match[1]) % 8)
        return checked_tenant(base64.b32decode(padded).decode("ascii")), match[2]
    except (ValueError, Invalid):
        return None


def key_hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def is_same_hash(one: str, other: str) -> bool:
    """Takes as long for any two hashes, so that time tells nothing about how much of them is alike."""
    return hmac.compare_digest(one.encode(), other.encode())


def is_valid(key: ApiKey, now: datetime) -> bool:
    """Whether a key still opens anything."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > now)


def checked_limits(agents: object, trust: object, scope: KeyScope) -> tuple[tuple[str, ...], Origin | None]:
    """The agents and the highest trust a key is limited to.

    Raises: Invalid.
    """
    if isinstance(agents, str) or not isinstance(agents, Iterable | None):
        raise Invalid("`agents` is a list of agent ids.")
    named = () if agents is None else tuple(dict.fromkeys(checked_agent(each) for each in agents))
    if agents is not None and not named:
        raise Invalid("`agents` is empty; name the agents, or leave it out for all agents of the tenant.")
    if len(named) > MAX_AGENTS:
        raise Invalid(f"A key is limited to at most {MAX_AGENTS} agents; leave them out for all agents of the tenant.")
    if named and scope is KeyScope.OPERATOR:
        raise Invalid("An operator's key is for the whole store; limit a key of another scope to agents.")
    try:
        return named, None if trust is None else Origin(str(trust))
    except ValueError:
        raise Invalid(f"There is no trust {str(trust)[:40]!r}; choose {', '.join(Origin)}.") from None


def allows(scope: KeyScope, needed: KeyScope) -> bool:
    """
    >>> allows(KeyScope.WRITE, KeyScope.READ), allows(KeyScope.WRITE, KeyScope.ADMIN)
    (True, False)
    """
    return _ORDER.index(scope) >= _ORDER.index(needed)


def checked_scope(scope: object) -> KeyScope:
    """Raises: Invalid."""
    try:
        return KeyScope(str(scope))
    except ValueError:
        raise Invalid(f"There is no scope {str(scope)[:40]!r}; the scopes are {', '.join(KeyScope)}.") from None


def checked_key_name(name: str) -> str:
    """Raises: Invalid."""
    text = " ".join(checked_text(name, what="name").split())
    if len(text) > MAX_NAME_CHARS:
        raise Invalid(f"A key's name has at most {MAX_NAME_CHARS} characters.")
    return text


def encoded(value: bytes) -> str:
    """Base 32 in small letters: one word to a double click, safe in an address."""
    return base64.b32encode(value).decode().rstrip("=").lower()
