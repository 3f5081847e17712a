"""Forms of mem0: ids, filters and configurations, checked and translated, and memories as its answers show them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from wellkept.api.agent import AgentMemory
from wellkept.errors import Invalid
from wellkept.facts.requests import join_parts
from wellkept.language.text import clean_text
from wellkept.memory.rules_lifetime import Category
from wellkept.model import Json, Kind, Memory, MemoryVersion
from wellkept.settings import Settings

log = logging.getLogger("wellkept")

IDS = ("user_id", "agent_id", "run_id")
ANY = "*"
EXPIRATION = "expiration_date"
DEFAULT_THRESHOLD = 0.1
PROMOTED = ("actor_id", "role", EXPIRATION)
"""Keys of metadata that answers show beside it."""

Messages = Sequence[Mapping[str, Any]]

_SIGNS = {"eq": "=", "ne": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "in": "in"}
_FIELDS = {"user_id": "user", "run_id": "session_id", "created_at": "created_at"}
# Items are never searched here, so these hold always and never.
ALWAYS: Json = {"!=": ["kind", Kind.ITEM.value]}
NEVER: Json = {"=": ["kind", Kind.ITEM.value]}


class InvalidArgument(Invalid, ValueError):
    """An argument that mem0 refuses with a ValueError."""


def iter_conditions(filters: Mapping[str, Any], agent: str) -> Iterator[Json]:
    """Yield the conditions of mem0's filters in wellkept's language, for the memories of one agent."""
    for key, expected in filters.items():
        if key in ("AND", "OR", "NOT"):
            if not isinstance(expected, list) or not all(isinstance(each, Mapping) for each in expected):
                raise InvalidArgument(f"{key} takes a list of filters.")
            parts: list[Json] = [{"and": [ALWAYS, *iter_conditions(each, agent)]} for each in expected]
            if parts:
                yield {"and": parts} if key == "AND" else {"or": parts} if key == "OR" else {"not": {"or": parts}}
            continue
        field = _FIELDS.get(key) or "metadata" + "".join(f'."{name}"' for name in key.replace('"', '""').split("."))
        if not isinstance(expected, Mapping):
            expected = {"in" if isinstance(expected, list) else "eq": expected}
        for operator, value in expected.items():
            if operator not in (*_SIGNS, "nin"):
                raise InvalidArgument(f"wellkept has no filter operator {operator!r}; use {', '.join(_SIGNS)} or nin.")
            if key == "agent_id":
                is_named = agent in value if isinstance(value, list) else value in (agent, ANY)
                yield ALWAYS if is_named != (operator in ("ne", "nin")) else NEVER
            elif value == ANY:
                yield {"exists": field}
            else:
                yield {"not": {"in": [field, value]}} if operator == "nin" else {_SIGNS[operator]: [field, value]}


def check_ids(**ids: Any) -> dict[str, str]:
    """Trim the ids that are given, at least one. Raises: InvalidArgument."""
    checked = {name: str(value).strip() for name, value in ids.items() if value is not None}
    for name, value in checked.items():
        if not value or any(character.isspace() for character in value):
            raise InvalidArgument(f"Invalid {name}: it is a text without spaces.")
    if not checked:
        raise InvalidArgument("At least one of user_id, agent_id and run_id is required.")
    return checked


def drop_ids(metadata: Mapping[str, Any] | None) -> Json:
    """Return metadata without what only the arguments may say."""
    return {key: value for key, value in (metadata or {}).items() if key not in (*IDS, "actor_id")}


def check_count(top_k: object) -> int:
    """Validate a number of results. Raises: InvalidArgument."""
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 0:
        raise InvalidArgument("top_k is a whole number, 0 or more.")
    return top_k


def check_query(query: object) -> str:
    """Return a query that can be searched. Raises: InvalidArgument."""
    if not isinstance(query, str) or not query.strip():
        raise InvalidArgument("The query is a text that is not empty.")
    return clean_text(query)


def check_threshold(threshold: float | None) -> float:
    """Return the lowest score of a result. Almost every pair of texts passes mem0's default, which compares vectors."""
    return 0.0 if threshold is None or threshold == DEFAULT_THRESHOLD else threshold


def check_date(given: object) -> str:
    """Return a date as 2026-12-31. Raises: InvalidArgument."""
    try:
        return (given if isinstance(given, date) else date.fromisoformat(str(given))).isoformat()[:10]
    except ValueError:
        raise InvalidArgument("expiration_date is a date such as 2026-12-31.") from None


def read_config(config: Any) -> Settings:
    """Return the settings that a configuration of mem0 describes. Raises: Invalid."""
    sections = config if isinstance(config, Mapping) else {} if config is None else config.model_dump()
    settings = Settings.load(flags=sections.get("wellkept"))
    for name, section in sections.items():
        options = (section or {}).get("config") or {} if isinstance(section, Mapping) else {}
        if name in ("llm", "embedder") and section.get("provider") == "openai":
            model = options.get("model")
            chosen = {"openai_api_key": options.get("api_key"), "openai_base_url": options.get("openai_base_url")}
            chosen |= {"openai_model": model} if name == "llm" else {"embedder": model and f"openai:{model}"}
            settings = replace(settings, **{key: value for key, value in chosen.items() if value})
        elif name != "wellkept" and section:
            log.info("wellkept does not use the section %s of a configuration of mem0.", name)
    return settings


def describe_memory(memory: Memory, agent: str, agent_id: str | None) -> Json:
    """Return a memory as mem0 shows it. `agent_id` is None for memories that were added without one."""
    rest = {key: value for key, value in memory.metadata.items() if key not in PROMOTED}
    shown = {"user_id": memory.user, "agent_id": agent_id, "run_id": memory.session_id}
    shown |= {key: memory.metadata.get(key) for key in PROMOTED}
    return {
        "id": f"{agent}/{memory.id}",
        "memory": memory.text,
        "hash": hashlib.md5(memory.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": rest or None,
        "created_at": memory.created_at.isoformat(),
        "updated_at": (memory.updated_at or memory.created_at).isoformat(),
        **{key: value for key, value in shown.items() if value is not None},
    }


def describe_history(id: str, memory: Memory, versions: Sequence[MemoryVersion]) -> list[Json]:
    """Return the changes of a memory's text as mem0 shows them; `versions` are the former ones, oldest first."""
    texts = [None, *(version.text for version in versions), memory.text]
    times = [memory.created_at, *(version.replaced_at for version in versions)]
    return [
        {
            "id": f"{id}@{number}",
            "memory_id": id,
            "old_memory": former,
            "new_memory": text,
            "event": "ADD" if former is None else "UPDATE",
            "created_at": memory.created_at.isoformat(),
            "updated_at": time.isoformat(),
            "is_deleted": False,
            "actor_id": memory.metadata.get("actor_id"),
            "role": memory.metadata.get("role"),
        }
        for number, (former, text, time) in enumerate(zip(texts[:-1], texts[1:], times, strict=True), 1)
        if text != former
    ]


def store_facts(
    agent: AgentMemory, messages: Messages, metadata: Json, user: str | None, run: str | None
) -> list[Json]:
    """Store the facts of a conversation; return the events. Raises: Invalid, Conflict."""
    added = agent.add(messages, session_id=run, user=user, metadata=metadata)
    gone = [fact.replaces or fact.id for fact in added.superseded]
    new = [fact for fact in (*added.added, *added.superseded) if fact.id not in gone]
    events = [
        *(("ADD", fact.id, fact.text) for fact in new),
        *(("UPDATE", fact.id, fact.text) for fact in added.updated),
        *(("DELETE", id, agent.get(id).text) for id in gone),
    ]
    return [{"id": f"{agent.owner.agent}/{id}", "memory": text, "event": event} for event, id, text in events]


def store_messages(
    agent: AgentMemory, messages: Messages, metadata: Json, user: str | None, run: str | None
) -> list[Json]:
    """Store messages as they are; return the events. Raises: Invalid, SecretRejected, Conflict."""
    spoken = ((each, join_parts(each.get("content"))) for each in messages if each.get("role") not in (None, "system"))
    kept = [(each, text) for each, text in spoken if text is not None and str(text).strip()]
    drafts = [
        {
            "text": text,
            "kind": Kind.EPISODE,
            "category": Category.FACT,
            "session_id": run,
            "user": user,
            "metadata": {**metadata, "role": each["role"], **({"actor_id": each["name"]} if each.get("name") else {})},
        }
        for each, text in kept
    ]
    return [
        {
            "id": f"{agent.owner.agent}/{memory.id}",
            "memory": memory.text,
            "event": "ADD",
            "actor_id": each.get("name"),
            "role": each["role"],
        }
        for memory, (each, _) in zip(agent.remember_many(drafts), kept, strict=True)
    ]
