"""Keys, parents and texts of the rows of an export."""

from __future__ import annotations

from collections.abc import Mapping

from wellkept.model import Json

CONTENTS = "detail_contents"
"""Pseudo-table with the texts of details in pieces, each text before the first detail that refers to it."""

KEYS: Mapping[str, tuple[str, ...]] = {
    "audit_log": ("id",),
    "secret_allowances": ("hash",),
    "agents": ("id",),
    "memories": ("agent_id", "seq"),
    "memory_versions": ("agent_id", "seq", "version"),
    "chat_sessions": ("id",),
    "chat_messages": ("session_id", "position"),
    "details": ("agent_id", "key"),
    "context_calls": ("agent_id", "id"),
    "proposals": ("agent_id", "seq"),
    "kb_documents": ("id",),
    "kb_chunks": ("document_id", "position"),
    "workflows": ("id",),
    "workflow_steps": ("workflow_id", "position"),
    "erased_texts": ("hash",),
    "shelves": ("shelf",),
}
"""Key columns by table, in the order of an export: referenced tables come first."""

PARENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "memory_versions": ("memories", ("agent_id", "seq")),
    "chat_messages": ("chat_sessions", ("session_id",)),
    "kb_chunks": ("kb_documents", ("document_id",)),
    "workflow_steps": ("workflows", ("workflow_id",)),
}
"""Parent table of dependent rows, and the columns that name the parent."""

OWNED = frozenset(["memories", "memory_versions", "chat_sessions", "details", "context_calls", "proposals"])
"""Tables whose rows belong to an agent, which must exist before them."""

TEXTS: Mapping[str, tuple[str, ...]] = {
    "audit_log": ("message",),
    "agents": ("name", "system_prompt"),
    "memories": ("text", "tags"),
    "memory_versions": ("text",),
    "chat_sessions": ("summary",),
    "chat_messages": ("content",),
    "details": ("description", "summary"),
    "proposals": ("text",),
    "kb_documents": ("title",),
    "kb_chunks": ("text",),
    "workflows": ("name",),
    "workflow_steps": ("step_name", "output"),
}
"""Columns that can reach a prompt."""

Key = tuple[str, ...]


def key_of(table: str, row: Json) -> Key:
    """Return the key of a row, including its table."""
    return (table, *(str(row.get(column)) for column in KEYS[table]))


def parent_of(table: str, row: Json) -> Key | None:
    """Return the key of the row's parent, if it has one."""
    if table not in PARENTS:
        return None
    parent, columns = PARENTS[table]
    return (parent, *(str(row.get(column)) for column in columns))


def owner_of(table: str, row: Json) -> Key | None:
    """Return the key of the agent that the row belongs to, if it belongs to one."""
    return ("agents", str(row.get("agent_id"))) if table in OWNED else None
