"""A tenant's history, audit events and workflow steps: the audit log's hash chain, search terms and importance.

Each event's hash covers its content and the hash of the previous event. With an `audit_key` hashes are HMACs, which
cannot be recomputed without the key. Such a hash starts with `hmac:` and the key's fingerprint, so that every event
shows whether it is keyed, and with which key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from json.encoder import encode_basestring
from types import NoneType
from typing import Any

from wellkept.errors import Invalid
from wellkept.language.text import fold, terms
from wellkept.model import AuditEvent, Memory, WorkflowStep

START = ""
"""Previous hash of a tenant's first event."""

HMAC_PREFIX = "hmac:"
MIN_KEY_CHARS = 16

# Made once: `json.dumps` makes an encoder for each call, which takes longer than a small text.
_encode_sorted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
_SCALARS = frozenset({str, int, float, bool, NoneType})


def canonical_json(meta: Mapping[str, Any]) -> str:
    """Serialize `meta` to the canonical JSON text that is stored and hashed."""
    return _encode_sorted(meta)


def is_plain_json(value: object) -> bool:
    """Return True if JSON reads a value back as it is.

    >>> is_plain_json({"ids": ["m-1", 2]}), is_plain_json({7: "x"}), is_plain_json({"ids": (1, 2)})
    (True, False, False)
    """
    if type(value) is list:
        return all(map(is_plain_json, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(is_plain_json, value.values()))
    return type(value) in _SCALARS


def event_hash(event: AuditEvent, previous_hash: str, key: str = "", *, id: int | None = None) -> str:
    """Compute the hash of an event that follows the one with `previous_hash`; `id` replaces its own."""
    at = event.at.astimezone(UTC).isoformat(timespec="microseconds")
    number = event.id if id is None else id
    parts = [previous_hash, event.tenant, at, event.action, event.message]
    before, tenant, moment, action, message = map(encode_basestring, parts)
    agent = "null" if event.agent_id is None else encode_basestring(event.agent_id)
    text = f"[{before},{tenant},{number},{moment},{action},{agent},{message},{_encode_sorted(event.meta)}]"
    return key_mark(key) + _hmac(key, text) if key else hashlib.sha256(text.encode()).hexdigest()


def seal_event(event: AuditEvent, previous_hash: str, key: str, *, id: int | None = None) -> AuditEvent:
    """Return the event with its hashes, as the one after that with `previous_hash`; `id` replaces its own."""
    number = event.id if id is None else id
    return replace(event, id=number, previous_hash=previous_hash, hash=event_hash(event, previous_hash, key, id=number))


def check_key(key: str, name: str) -> str:
    """Validate the key that the setting `name` holds. An empty key means that nothing is keyed. Raises: Invalid."""
    if key and len(key) < MIN_KEY_CHARS:
        raise Invalid(
            f"{name} is shorter than {MIN_KEY_CHARS} characters; make a random one with: openssl rand -hex 32"
        )
    return key


def key_mark(key: str) -> str:
    """Return the prefix of every hash made with `key`."""
    return f"{HMAC_PREFIX}{_hmac(key, HMAC_PREFIX)[:8]}:"


def is_keyed(hash: str) -> bool:
    return hash.startswith(HMAC_PREFIX)


def is_foreign(hash: str, key: str) -> bool:
    """Return True if the hash was made with another key."""
    return is_keyed(hash) and not (key and hash.startswith(key_mark(key)))


def find_seal_problem(event: AuditEvent, previous_hash: str, *, key: str, must_be_keyed: bool) -> str:
    """Describe what is wrong with an event's hashes; return an empty string if they are right."""
    if is_foreign(event.hash, key):
        advice = (
            "it was written with another one than is set" if key else "set audit_key to the one it was written with"
        )
        return f"Event {event.id} cannot be checked without its audit_key: {advice}."
    if must_be_keyed and not is_keyed(event.hash):
        return f"Event {event.id} is not keyed although earlier ones are: it was written without the audit_key."
    used = key if is_keyed(event.hash) else ""
    if (event.previous_hash, event.hash) != (previous_hash, event_hash(event, previous_hash, used)):
        return f"Event {event.id} was changed after it was written."
    return ""


def describe_added(memories: Sequence[Memory], pruned: int, corrected: Sequence[str]) -> str:
    """Describe stored, corrected and deleted memories for an event, without any text."""
    first, last = memories[0], memories[-1]
    room = f"; the oldest {pruned:,} made room" if pruned else ""
    if corrected:
        many = f"{len(corrected):,} memories were"
        room += f"; {f'{corrected[0]} was' if len(corrected) == 1 else many} corrected"
    if len(memories) == 1:
        return f"{first.kind.value.capitalize()} {first.id} was stored{' for review' if first.held_at else ''}{room}."
    return f"{len(memories):,} memories, {first.id} to {last.id}, were stored{room}."


def encode_key(key: str) -> bytes:
    """Return the bytes of a key."""
    # An environment variable that is not UTF-8 arrives with surrogates; encode them back to the original bytes.
    return key.encode("utf-8", "surrogateescape")


def _hmac(key: str, text: str) -> str:
    return hmac.new(encode_key(key), text.encode(), hashlib.sha256).hexdigest()


MAX_SEARCHED = 50_000
"""Number of newest events that recall searches; older ones can only be listed."""

OWN_AREAS = frozenset(
    """memory agent secret turn maintenance workflow document chunk skill detail session summary context key export
    import erase note blob consolidation change""".split()
)
"""First words of the actions that wellkept records; programs use other words for their own events."""

BOOKKEEPING_IMPORTANCE = 0.2
"""Importance of our own events, which only say that something was stored or edited."""

EVENT_IMPORTANCE = 0.5
"""Importance of events recorded by programs or people."""

DECISION_IMPORTANCE: Mapping[str, float] = {"refuse": 0.5, "approve": 0.5, "fail": 0.5, "delete": 0.4, "erase": 0.5}
"""Importance of our own events that record a decision, by the last word of their action."""

STEP_CHARS = 4096
"""Number of leading characters of a step's output that are searched."""

STEP_IMPORTANCE = 0.5
FAILED_IMPORTANCE = 0.7
"""Importance of failed steps, which are worth knowing before a retry."""

COMPLETED = "completed"
FAILURES = frozenset("failed failure fail error errored rejected refused cancelled canceled aborted timeout".split())
"""Words in a status or action that report a failure."""

_ID = re.compile(r"(?<![\w-])[a-z]-\d+(?![\w-])")


def history_terms(text: str) -> list[str]:
    """Return the search terms of a message or question; an id is one term, so "17 things" does not match m-17.

    >>> history_terms("Note m-17 was stored.")
    ['m-17', 'note', 'store']
    >>> history_terms("17 things")
    ['17', 'thing']
    """
    folded = fold(text)
    ids = _ID.findall(folded)
    return [*ids, *terms(_ID.sub(" ", folded) if ids else folded)]


def is_bookkeeping(action: str) -> bool:
    """Return True for an action that wellkept records about its own work.

    >>> is_bookkeeping("turn.log"), is_bookkeeping("refund.approve")
    (True, False)
    """
    return action.partition(".")[0] in OWN_AREAS


def step_words(step: WorkflowStep) -> str:
    """Return the searchable text of a step."""
    return f"{step.workflow_name} {step.name} {step.output[:STEP_CHARS]}"


def step_importance(step: WorkflowStep) -> float:
    """Return the importance of a step, 0 to 1."""
    return FAILED_IMPORTANCE if step.status in FAILURES else STEP_IMPORTANCE


def event_importance(event: AuditEvent) -> float:
    """Return the importance of an event, 0 to 1."""
    area, _, verb = event.action.partition(".")
    return DECISION_IMPORTANCE.get(verb, BOOKKEEPING_IMPORTANCE) if area in OWN_AREAS else EVENT_IMPORTANCE


def event_id(number: int) -> str:
    """Return the public id of a tenant's audit event.

    >>> event_id(12)
    'a-12'
    """
    return f"a-{number}"
