"""Columns of each table, in the order in which statements select them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from wellkept.model import Memory


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_RENAMED = {"user": "user_id"}
"""Fields of a memory whose name is a reserved word of SQL."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "agent": _names(
        "tenant_id id name system_prompt model tools colour icon is_active created_at updated_at knowledge_categories"
    ),
    # A memory's own fields have columns of the same name; its owner and its id are the key.
    "memory": (*_names("tenant_id agent_id seq"), *(_RENAMED.get(each.name, each.name) for each in fields(Memory)[2:])),
    "version": _names("seq version text tags importance replaced_at metadata"),
    "detail": _names(
        "tenant_id agent_id key type description summary session_id metadata content_hash size chars lines is_active "
        "created_at user_id"
    ),
    "session": _names(
        "tenant_id id agent_id summary summarized_count message_count created_at updated_at user_id metadata"
    ),
    "message": _names("tenant_id session_id position role content created_at"),
    "document": _names(
        "tenant_id id title category source content_hash is_published created_at updated_at flag metadata"
    ),
    "event": _names("tenant_id id at action agent_id message meta previous_hash hash"),
    "change": _names("tenant_id agent_id seq state cause reason text memories actor created_at decided_at user_id"),
    "context_call": _names("tenant_id agent_id id session_id at layout budget tokens blocks truncations user_id"),
    "key": _names("tenant_id id scope name created_at last_used_at expires_at revoked_at agents trust user_id"),
    "workflow": _names("tenant_id id name created_at"),
    "step": _names("tenant_id workflow_id position step_name agent_id status output completed_at seq"),
    "chunk": _names("tenant_id id document_id position text"),
}
