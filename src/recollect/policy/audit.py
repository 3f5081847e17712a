"""The audit log's hash chain: each event's hash covers its content and the hash of the event before it."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC

from recollect.model import AuditEvent

START = ""
"""What the first event of a tenant continues."""


def event_hash(event: AuditEvent, previous_hash: str) -> str:
    """The hash an event must have if it follows the one with `previous_hash`."""
    content = [
        previous_hash,
        event.tenant,
        event.id,
        event.at.astimezone(UTC).isoformat(timespec="microseconds"),
        event.action,
        event.agent_id,
        event.message,
        event.meta,
    ]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
