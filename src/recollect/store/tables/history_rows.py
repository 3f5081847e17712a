"""Conversion between rows and the records of history: events, workflows and steps."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from recollect.model import AuditEvent, Workflow, WorkflowStep
from recollect.policy.audit import canonical_json
from recollect.policy.text import fold
from recollect.store.engine import Row
from recollect.store.tables.rows import moment


def event_from(row: Row) -> AuditEvent:
    tenant, id, at, action, agent_id, message, meta, previous_hash, hash = row
    return AuditEvent(
        id=id,
        tenant=tenant,
        at=moment(at),
        action=action,
        agent_id=agent_id,
        message=message,
        meta=json.loads(meta) if isinstance(meta, str) else meta,
        previous_hash=previous_hash,
        hash=hash,
    )


def readable_event(row: Row) -> AuditEvent:
    """Convert a row to an event; mark it as damaged if parts of it are unreadable."""
    try:
        event = event_from(row)
        if isinstance(event.meta, dict):
            return event
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    tenant, id, at, action, agent_id, message, _, previous_hash, hash = row
    try:
        known_at = moment(at)
    except (ValueError, OverflowError):
        known_at = datetime.fromtimestamp(0, UTC)
    return AuditEvent(
        id=id,
        tenant=tenant,
        at=known_at,
        action=action,
        agent_id=agent_id,
        message=message,
        previous_hash=previous_hash,
        hash=hash,
        is_damaged=True,
    )


def event_values(event: AuditEvent) -> dict[str, Any]:
    return {
        "tenant_id": event.tenant,
        "id": event.id,
        "at": event.at,
        "action": event.action,
        "agent_id": event.agent_id,
        "message": event.message,
        "folded": fold(event.message),
        "meta": canonical_json(event.meta),
        "previous_hash": event.previous_hash,
        "hash": event.hash,
    }


def workflow_from(row: Row) -> Workflow:
    tenant, id, name, created_at = row
    return Workflow(id=id, tenant=tenant, name=name, created_at=moment(created_at))


def step_from(row: Row) -> WorkflowStep:
    tenant, workflow_id, workflow_name, position, name, agent_id, status, output, completed_at = row
    return WorkflowStep(
        tenant=tenant,
        workflow_id=workflow_id,
        workflow_name=workflow_name,
        position=position,
        name=name,
        agent_id=agent_id,
        status=status,
        output=output,
        completed_at=moment(completed_at),
    )
