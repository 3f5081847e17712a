"""Audit events that accompany a read: a store that cannot be written must not keep anybody from reading."""

from __future__ import annotations

import logging

from recollect.errors import ReadOnly
from recollect.model import AuditEvent
from recollect.ports import AuditStore

log = logging.getLogger("recollect")


def note(store: AuditStore, event: AuditEvent) -> None:
    """Add an event to the audit log or, where nothing can be written, to the program's."""
    try:
        store.add_event(event)
    except ReadOnly as error:
        log.warning("Not in the audit log (%s): %s", error, event.action)
