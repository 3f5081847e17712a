"""Audit events that accompany a read, which must not fail in a read-only store."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wellkept.errors import ReadOnly
from wellkept.model import AuditEvent

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

log = logging.getLogger("wellkept")


def record_event(store: SqlStore, event: AuditEvent) -> None:
    """Add an event to the audit log; if the store is read-only, log a warning instead."""
    try:
        store.add_event(event)
    except ReadOnly as error:
        log.warning("Event not added to the audit log (%s): %s", error, event.action)
