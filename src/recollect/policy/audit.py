"""The audit log's hash chain: each event's hash covers its content and the hash of the event before it.

With an `audit_key` hashes are HMACs, which nobody can recompute without the key. Such a hash begins with `hmac:` and
the key's fingerprint, so that every event tells whether it is keyed, and whether with this key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from recollect.errors import Invalid
from recollect.model import AuditEvent

START = ""
"""What the first event of a tenant continues."""

KEYED = "hmac:"
MIN_KEY_CHARS = 16


def canonical(meta: Mapping[str, Any]) -> str:
    """Return the one JSON text of `meta`: it is what is stored and what is hashed."""
    return json.dumps(meta, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def event_hash(event: AuditEvent, previous_hash: str, key: str = "") -> str:
    """Return the hash an event must have if it follows the one with `previous_hash`."""
    at = event.at.astimezone(UTC).isoformat(timespec="microseconds")
    content = [previous_hash, event.tenant, event.id, at, event.action, event.agent_id, event.message]
    beginning = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    text = f"{beginning[:-1]},{canonical(event.meta)}]"
    return key_mark(key) + _hmac(key, text) if key else hashlib.sha256(text.encode()).hexdigest()


def checked_audit_key(key: str) -> str:
    """Return the key. An empty one means that hashes are not keyed.

    Raises: Invalid.
    """
    if key and len(key) < MIN_KEY_CHARS:
        raise Invalid(
            f"audit_key is shorter than {MIN_KEY_CHARS} characters; make a random one with: openssl rand -hex 32"
        )
    return key


def key_mark(key: str) -> str:
    """Return what every hash made with `key` begins with."""
    return f"{KEYED}{_hmac(key, KEYED)[:8]}:"


def is_keyed(hash: str) -> bool:
    return hash.startswith(KEYED)


def is_foreign(hash: str, key: str) -> bool:
    """Return True if the hash was made with a key, and not with this one."""
    return is_keyed(hash) and not (key and hash.startswith(key_mark(key)))


def seal_problem(event: AuditEvent, previous_hash: str, *, key: str, must_be_keyed: bool) -> str:
    """Return a sentence on what is wrong with the event's hashes; empty if they are right."""
    if is_foreign(event.hash, key):
        asked = "it was written with another one than is set" if key else "set audit_key to the one it was written with"
        return f"Event {event.id} cannot be checked without its audit_key: {asked}."
    if must_be_keyed and not is_keyed(event.hash):
        return f"Event {event.id} is not keyed although earlier ones are: somebody wrote it without the audit_key."
    used = key if is_keyed(event.hash) else ""
    if (event.previous_hash, event.hash) != (previous_hash, event_hash(event, previous_hash, used)):
        return f"Event {event.id} was changed after it was written."
    return ""


def _hmac(key: str, text: str) -> str:
    # A variable of the environment that is not UTF-8 has its bytes as surrogates; they are the key.
    return hmac.new(key.encode("utf-8", "surrogateescape"), text.encode(), hashlib.sha256).hexdigest()
