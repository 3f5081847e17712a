"""Conversion between records and rows, with columns in the order of `columns.COLUMNS`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from typing import Any

from recollect.model import (
    Agent,
    AuditEvent,
    Detail,
    Kind,
    Memory,
    MemoryVersion,
    Origin,
    Owner,
    Role,
    Scope,
    Workflow,
    WorkflowStep,
)
from recollect.policy.audit import canonical_json
from recollect.policy.names import memory_id, memory_seq
from recollect.policy.text import content_hash, fold
from recollect.ports import MemorySummary
from recollect.store.engine import Row

BEHIND_ALL = 2**62
"""Number greater than any row's; start of a listing without a cursor, and no limit."""

MAX_PATTERN_BYTES = 50_000
"""Maximum length of a LIKE pattern in SQLite; no searched text is that long."""

TAG_BORDER = "\n"
"""Delimiter around every tag in `folded_tags`, so that one LIKE finds a whole tag; tags cannot contain it."""


def stamp(moment: datetime) -> str:
    """Format a time for SQLite: UTC text of fixed width, so that it sorts."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[: -len("+00:00")] + "Z"


def moment(value: datetime | str) -> datetime:
    """Parse a time as either engine returns it."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value.astimezone(UTC)


def maybe_moment(value: datetime | str | None) -> datetime | None:
    return None if value is None else moment(value)


def _parse_strings(value: str | list[str]) -> tuple[str, ...]:
    # Most rows have none; skip the parser for them.
    if value == "[]":
        return ()
    return tuple(json.loads(value) if isinstance(value, str) else value)


def json_list(value: str | list[Any]) -> list[Any]:
    """Parse a JSON list as either engine returns it."""
    return list(json.loads(value)) if isinstance(value, str) else value


def json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def folded_tags(tags: tuple[str, ...]) -> str:
    """Join folded tags with delimiters around each.

    >>> folded_tags(("Infra", "deploy"))
    '\\ninfra\\ndeploy\\n'
    """
    return TAG_BORDER + "".join(fold(tag) + TAG_BORDER for tag in tags) if tags else ""


def agent_from(row: Row) -> Agent:
    tenant, id, name, system_prompt, model, tools, colour, icon, is_active, created_at, updated_at, categories = row
    return Agent(
        owner=Owner(tenant, id),
        name=name,
        system_prompt=system_prompt,
        model=model,
        tools=_parse_strings(tools),
        colour=colour,
        icon=icon,
        is_active=bool(is_active),
        created_at=moment(created_at),
        updated_at=moment(updated_at),
        knowledge_categories=_parse_strings(categories),
    )


def agent_values(agent: Agent) -> dict[str, Any]:
    return {
        "tenant_id": agent.owner.tenant,
        "id": agent.owner.agent,
        "name": agent.name,
        "system_prompt": agent.system_prompt,
        "model": agent.model,
        "tools": json_text(agent.tools),
        "colour": agent.colour,
        "icon": agent.icon,
        "is_active": agent.is_active,
        "created_at": agent.created_at,
        "updated_at": agent.updated_at,
        "knowledge_categories": json_text(agent.knowledge_categories),
    }


# Lookup tables, because calling an enum is slower than converting the rest of the row.
KINDS = {each.value: each for each in Kind}
SCOPES = {each.value: each for each in Scope}
ROLES = {each.value: each for each in Role}
ORIGINS = {each.value: each for each in Origin}


def memory_from(row: Row) -> Memory:
    (tenant, agent, seq, kind, text, tags, scope, role, session_id, importance, category, origin) = row[:12]
    created_at, updated_at, expires_at, last_retrieved_at, archived_at, version = row[12:18]
    supersedes, valid_from, valid_to, held_at, flag = row[18:]
    return Memory(
        id=memory_id(seq),
        owner=Owner(tenant, agent),
        kind=KINDS[kind],
        text=text,
        tags=_parse_strings(tags),
        scope=SCOPES[scope],
        role=ROLES[role],
        session_id=session_id,
        importance=importance,
        category=category,
        origin=ORIGINS[origin],
        created_at=moment(created_at),
        updated_at=maybe_moment(updated_at),
        expires_at=maybe_moment(expires_at),
        last_retrieved_at=maybe_moment(last_retrieved_at),
        archived_at=maybe_moment(archived_at),
        version=version,
        supersedes=None if supersedes is None else memory_id(supersedes),
        valid_from=maybe_moment(valid_from),
        valid_to=maybe_moment(valid_to),
        held_at=maybe_moment(held_at),
        flag=flag,
    )


def glimpse_from(row: Row) -> MemorySummary:
    created_at, valid_from = moment(row[12]), row[19]
    since = created_at if valid_from is None else moment(valid_from)
    return MemorySummary(row[2], row[4], row[9], created_at, since, partial(memory_from, row))


def memory_values(memory: Memory, seq: int) -> dict[str, Any]:
    folded = fold(memory.text)
    return {
        "tenant_id": memory.owner.tenant,
        "agent_id": memory.owner.agent,
        "seq": seq,
        "kind": memory.kind.value,
        "text": memory.text,
        "folded": folded,
        "tags": json_text(memory.tags) if memory.tags else "[]",
        "folded_tags": folded_tags(memory.tags),
        "scope": memory.scope.value,
        "role": memory.role.value,
        "session_id": memory.session_id,
        "importance": memory.importance,
        "category": memory.category,
        "origin": memory.origin.value,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "expires_at": memory.expires_at,
        "last_retrieved_at": memory.last_retrieved_at,
        "archived_at": memory.archived_at,
        "version": memory.version,
        # Episodes may repeat, so they are never looked up by their hash.
        "content_hash": content_hash(folded) if memory.kind is not Kind.EPISODE else "",
        "supersedes": None if memory.supersedes is None else memory_seq(memory.supersedes),
        "valid_from": memory.valid_from,
        "valid_to": memory.valid_to,
        "held_at": memory.held_at,
        "flag": memory.flag,
        "ends_at": memory.ends_at,
        "since": int((memory.valid_from or memory.created_at).timestamp()),
    }


def version_from(row: Row) -> MemoryVersion:
    seq, version, text, tags, importance, replaced_at = row
    return MemoryVersion(
        memory_id=memory_id(seq),
        version=version,
        text=text,
        tags=_parse_strings(tags),
        importance=importance,
        replaced_at=moment(replaced_at),
    )


def detail_from(row: Row) -> Detail:
    tenant, agent, key, type, description, summary, session_id, metadata, *content, is_active, created_at = row
    content_hash, size, chars, lines = content
    return Detail(
        key=key,
        owner=Owner(tenant, agent),
        type=type,
        description=description,
        summary=summary,
        session_id=session_id,
        metadata=json.loads(metadata) if isinstance(metadata, str) else metadata,
        content_hash=content_hash,
        size=size,
        chars=chars,
        lines=lines,
        is_active=bool(is_active),
        created_at=moment(created_at),
    )


def detail_values(detail: Detail) -> dict[str, Any]:
    return {
        "tenant_id": detail.owner.tenant,
        "agent_id": detail.owner.agent,
        "key": detail.key,
        "type": detail.type,
        "description": detail.description,
        "summary": detail.summary,
        "session_id": detail.session_id,
        "metadata": json_text(detail.metadata),
        "content_hash": detail.content_hash,
        "size": detail.size,
        "chars": detail.chars,
        "lines": detail.lines,
        "is_active": detail.is_active,
        "created_at": detail.created_at,
    }


def owner_params(owner: Owner) -> dict[str, str]:
    """Return the parameters that every statement on an agent's rows takes."""
    return {"tenant": owner.tenant, "agent": owner.agent}


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
