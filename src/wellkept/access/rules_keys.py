"""Format, hash and limits of API keys.

`wellkept_<tenant>_<id>_<secret>`: tenant and id locate the key, the secret (256 random bits) proves it. Since a key
names its tenant, keys are ordinary rows of that tenant behind the same isolation as its other data, and nothing has to
be readable before the tenant is known. Naming another tenant leads to a row with a different secret.

Only the SHA-256 of the whole key is stored. Slow hashes protect guessable passwords; 256 random bits cannot be guessed,
and a fast hash costs a request only microseconds.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Collection
from datetime import datetime

from wellkept.errors import Invalid
from wellkept.language.names import check_agent, check_tenant
from wellkept.model import ApiKey, KeyScope, Origin
from wellkept.program import FORMER_NAME, PROGRAM

ID_BYTES = 5
SECRET_BYTES = 32
MAX_NAME_CHARS = 100
MAX_AGENTS = 100

_KEY = re.compile(rf"(?:{PROGRAM}|{FORMER_NAME})_([a-z2-7]{{2,104}})_([a-z2-7]{{8}})_([a-z2-7]{{52}})")
_SCOPE_ORDER = tuple(KeyScope)


def key_text(tenant: str, id: str, secret: bytes) -> str:
    """Build the key a caller sends.

    >>> key_text("acme", "aaaaaaaa", bytes(32))[:34]
    'wellkept_mfrw2zi_aaaaaaaa_aaaaaaaa'
    """
    return f"{PROGRAM}_{encode_base32(tenant.encode())}_{id}_{encode_base32(secret)}"


def parse_key(key: str) -> tuple[str, str] | None:
    """Parse the tenant and the id of a key; return None for anything that is not a key.

    >>> parse_key(key_text("acme", "aaaaaaaa", bytes(32))), parse_key("hunter2")
    (('acme', 'aaaaaaaa'), None)
    """
    match = _KEY.fullmatch(key)
    tenant = None if match is None else decode_tenant(match[1])
    return None if match is None or tenant is None else (tenant, match[2])


def decode_tenant(encoded: str) -> str | None:
    """Decode the tenant that a key or a cookie names; return None for anything that is not one.

    >>> decode_tenant(encode_base32(b"acme")), decode_tenant("hunter2!"), decode_tenant("")
    ('acme', None, None)
    """
    try:
        padded = encoded.upper() + "=" * (-len(encoded) % 8)
        return check_tenant(base64.b32decode(padded).decode("ascii"))
    except (ValueError, Invalid):
        return None


def key_hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def is_same_hash(one: str, other: str) -> bool:
    """Compare hashes in constant time, so that timing reveals nothing about them."""
    return hmac.compare_digest(one.encode(), other.encode())


def is_valid(key: ApiKey, now: datetime) -> bool:
    """Return True if a key is neither revoked nor expired."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > now)


def check_limits(
    agents: Collection[str] | None, trust: str | None, scope: KeyScope, user: str | None = None
) -> tuple[tuple[str, ...], Origin | None]:
    """Validate the agents and the highest trust a key is limited to. Raises: Invalid."""
    agent_ids = () if agents is None else tuple(dict.fromkeys(check_agent(each) for each in agents))
    if agents is not None and not agent_ids:
        raise Invalid("`agents` is empty; name the agents, or leave it out for all agents of the tenant.")
    if len(agent_ids) > MAX_AGENTS:
        raise Invalid(f"A key is limited to at most {MAX_AGENTS} agents; leave them out for all agents of the tenant.")
    if (agent_ids or user is not None) and scope is KeyScope.OPERATOR:
        raise Invalid("An operator's key is for the whole store; limit a key of another scope to agents or a user.")
    try:
        return agent_ids, None if trust is None else Origin(trust)
    except ValueError:
        raise Invalid(f"There is no trust {str(trust)[:40]!r}; choose {', '.join(Origin)}.") from None


def is_allowed(scope: KeyScope, needed: KeyScope) -> bool:
    """Return True if a scope includes the required one.

    >>> is_allowed(KeyScope.WRITE, KeyScope.READ), is_allowed(KeyScope.WRITE, KeyScope.ADMIN)
    (True, False)
    """
    return _SCOPE_ORDER.index(scope) >= _SCOPE_ORDER.index(needed)


def check_scope(scope: object) -> KeyScope:
    """Parse a scope. Raises: Invalid."""
    try:
        return KeyScope(str(scope))
    except ValueError:
        raise Invalid(f"There is no scope {str(scope)[:40]!r}; the scopes are {', '.join(KeyScope)}.") from None


def check_key_name(name: str) -> str:
    """Validate the name of a key and put it on one line. Raises: Invalid."""
    text = " ".join(name.split())
    if len(text) > MAX_NAME_CHARS:
        raise Invalid(f"A key's name has at most {MAX_NAME_CHARS} characters.")
    return text


def encode_base32(value: bytes) -> str:
    """Encode as lower-case Base32: selected by one double click, and safe in a URL."""
    return base64.b32encode(value).decode().rstrip("=").lower()
