"""mem0: `Memory` and `AsyncMemory` with the arguments and answers of mem0ai 2.x. Change the import, keep the program.

`user_id` is the user, `agent_id` the agent and `run_id` the session. An id is that of the agent and the memory,
"atlas/m-7". docs/integrations/mem0.md lists the differences.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import wraps
from typing import Any, Self

from wellkept.api.agent import AgentMemory
from wellkept.api.wellkept import Wellkept
from wellkept.errors import Invalid, NotFound
from wellkept.facts.requests import join_parts
from wellkept.language.text import clean_text
from wellkept.language.values import MAX_LIMIT
from wellkept.memory.rules_lifetime import Category
from wellkept.model import Hit, Json, Kind, MemoryVersion
from wellkept.model import Memory as StoredMemory
from wellkept.settings import Settings

__all__ = ["AsyncMemory", "Memory"]

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


def describe_memory(memory: StoredMemory, agent: str, agent_id: str | None) -> Json:
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


def describe_history(id: str, memory: StoredMemory, versions: Sequence[MemoryVersion]) -> list[Json]:
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


KINDS = (Kind.NOTE, Kind.CORE, Kind.JOURNAL, Kind.EPISODE)
PAGE = 500
SIMILARITY = "similarity"
"""Part of a score that is compared with the threshold."""

_UNSET: Any = object()


class Mem0Memory:
    """Memory with the methods of mem0's `Memory`, on a wellkept store.

    `config` is a `Wellkept`, or a configuration of mem0, of which the models and embedders of OpenAI are used. Its
    section `wellkept` has `url` and other settings.
    """

    def __init__(self, config: Any = None) -> None:
        self._store = config if isinstance(config, Wellkept) else Wellkept(settings=read_config(config))

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open the store that a configuration describes. Raises: Invalid, StoreError."""
        return cls(config_dict)

    def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: date | str | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> Json:
        """Store the facts of a conversation or, with `infer=False`, its messages as they are.

        Raises: Invalid (also a ValueError), SecretRejected, Conflict.
        """
        if timestamp is not None or memory_type is not None:
            raise InvalidArgument("wellkept does not offer `timestamp` and `memory_type`; leave them out.")
        ids = check_ids(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if isinstance(messages, str | Mapping):
            messages = [{"role": "user", "content": messages} if isinstance(messages, str) else messages]
        if not isinstance(messages, Sequence) or not all(isinstance(each, Mapping) for each in messages):
            raise InvalidArgument("messages is a text, a message such as {'role': 'user', 'content': 'Hi'}, or a list.")
        own = drop_ids(metadata)
        if expiration_date is not None:
            own[EXPIRATION] = check_date(expiration_date)
        agent = self._store.agent(ids.get("agent_id"))
        store = store_facts if infer else store_messages
        return {"results": store(agent, messages, own, ids.get("user_id"), ids.get("run_id"))}

    def search(
        self,
        query: Any,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = 0.1,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> Json:
        """Return the memories that answer a query best. Raises: Invalid (also a ValueError)."""
        if reference_date is not None:
            raise InvalidArgument("wellkept does not offer `reference_date`; leave it out.")
        found: list[tuple[AgentMemory, Hit]] = []
        query, limit, least = check_query(query), min(check_count(top_k), MAX_LIMIT), check_threshold(threshold)
        for agent, where in self._find_views(filters, kwargs, show_expired) if limit else ():
            hits = agent.recall(query, limit=limit, kinds=KINDS, sources=["memory"], min_relevance=least, where=where)
            found += [(agent, hit) for hit in hits]
        found.sort(key=lambda each: -each[1].parts[SIMILARITY])
        results = []
        for agent, hit in found[:limit]:
            if hit.memory is not None:
                details = {"score_details": {**hit.parts, "explain": hit.explain}} if explain else {}
                results.append({**self._describe(agent, hit.memory), "score": hit.parts[SIMILARITY], **details})
        return {"results": results}

    def get(self, memory_id: str) -> Json | None:
        """Return a memory; None if there is none."""
        try:
            return {**self._describe(*self._find(memory_id)), "score": None}
        except NotFound:
            return None

    def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> Json:
        """List memories, newest first. Raises: Invalid (also a ValueError)."""
        limit, found = check_count(top_k), list[tuple[AgentMemory, StoredMemory]]()
        for agent, where in self._find_views(filters, kwargs, show_expired) if limit else ():
            found += [(agent, memory) for memory in _iter_memories(agent, where, limit)]
        found.sort(key=lambda each: each[1].created_at, reverse=True)
        return {"results": [self._describe(agent, memory) for agent, memory in found[:limit]]}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: date | str | None = _UNSET,
        data: str | None = None,
    ) -> Json:
        """Change the text of a memory, or keys of its metadata. Raises: Invalid (also a ValueError)."""
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is _UNSET:
            raise InvalidArgument("Pass the text, metadata or expiration_date to change.")
        agent, memory = self._get(memory_id)
        changed = drop_ids(metadata)
        if expiration_date is not _UNSET:
            changed[EXPIRATION] = None if expiration_date is None else check_date(expiration_date)
        merged = {**memory.metadata, **changed}
        if merged.get(EXPIRATION, "") is None:
            del merged[EXPIRATION]
        agent.update(memory.id, text=text, metadata=merged if changed else None)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> Json:
        """Delete a memory and its history. Raises: Invalid (also a ValueError) if there is none."""
        agent, memory = self._get(memory_id)
        agent.forget(memory.id)
        return {"message": "Memory deleted successfully!"}

    def delete_all(self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None) -> Json:
        """Delete the memories of a user, an agent or a run, with their history. Raises: Invalid (also a ValueError)."""
        self._forget_all(check_ids(user_id=user_id, agent_id=agent_id, run_id=run_id))
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[Json]:
        """List the changes of a memory's text, oldest first; none if it is deleted."""
        try:
            agent, memory = self._find(memory_id)
            return describe_history(memory_id, memory, agent.history(memory.id)[::-1])
        except NotFound:
            return []

    def reset(self) -> None:
        """Delete the memories of all agents of the tenant; items, conversations and documents stay."""
        self._forget_all({})

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find(self, memory_id: str) -> tuple[AgentMemory, StoredMemory]:
        agent_id, _, id = str(memory_id).rpartition("/")
        try:
            agent = self._store.agent(agent_id or None)
        except Invalid:
            raise NotFound("There is no such memory.") from None
        return agent, agent.get(id)

    def _get(self, memory_id: str) -> tuple[AgentMemory, StoredMemory]:
        try:
            return self._find(memory_id)
        except NotFound:
            raise InvalidArgument(f"Memory with id {str(memory_id)[:200]} not found") from None

    def _find_views(
        self, filters: Mapping[str, Any] | None, kwargs: Mapping[str, Any], show_expired: bool
    ) -> Iterator[tuple[AgentMemory, Json]]:
        if kwargs:
            raise InvalidArgument(f"Pass {', '.join(kwargs)} in `filters`, such as filters={{'user_id': 'u1'}}.")
        given = dict(filters or {})
        given |= check_ids(**{name: given.get(name) for name in IDS if not isinstance(given.get(name), Mapping)})
        # Dates are texts such as 2026-12-31, and a memory without one passes.
        expired = {"<": [f"metadata.{EXPIRATION}", self._store.now().date().isoformat()]}
        return self._narrow(given, *(() if show_expired else ({"not": expired},)))

    def _narrow(self, filters: Mapping[str, Any], *conditions: Json) -> Iterator[tuple[AgentMemory, Json]]:
        """Yield the view of each agent that may have such memories, and the filter for it."""
        agent_id, user_id = filters.get("agent_id"), filters.get("user_id")
        for id in [agent_id] if isinstance(agent_id, str) and agent_id != ANY else list(self._iter_agents()):
            agent = self._store.agent(id)
            if isinstance(user_id, str) and user_id != ANY:
                # Of this user only: in mem0, a filter does not find what has no user.
                agent = agent.for_user(user_id, shared=False)
            yield agent, {"and": [{"in": ["kind", [*KINDS]]}, *conditions, *iter_conditions(filters, id)]}

    def _iter_agents(self) -> Iterator[str]:
        after = ""
        while page := self._store.tenant().agents.list(after=after):
            yield from (agent.id for agent in page)
            after = page[-1].id

    def _forget_all(self, filters: Mapping[str, Any]) -> None:
        for agent, where in self._narrow(filters):
            while found := agent.list(where=where, state="all", limit=PAGE):
                for memory in found:
                    agent.forget(memory.id)

    def _describe(self, agent: AgentMemory, memory: StoredMemory) -> Json:
        name = agent.owner.agent
        return describe_memory(memory, name, None if name == self._store.settings.agent else name)


Memory = Mem0Memory


def _awaited(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    async def call(self: AsyncMem0Memory, *args: Any, llm: Any = None, **kwargs: Any) -> Any:
        return await asyncio.to_thread(verb, self._memory, *args, **kwargs)

    return call


class AsyncMem0Memory:
    """Memory with the methods of mem0's `AsyncMemory`: those of `Memory`, awaited."""

    def __init__(self, config: Any = None) -> None:
        self._memory = Mem0Memory(config)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open the store that a configuration describes. Raises: Invalid, StoreError."""
        return cls(config_dict)

    add, search = _awaited(Memory.add), _awaited(Memory.search)
    get, get_all = _awaited(Memory.get), _awaited(Memory.get_all)
    update, history = _awaited(Memory.update), _awaited(Memory.history)
    delete, delete_all, reset = _awaited(Memory.delete), _awaited(Memory.delete_all), _awaited(Memory.reset)

    def close(self) -> None:
        """Close the store."""
        self._memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


AsyncMemory = AsyncMem0Memory


def _iter_memories(agent: AgentMemory, where: Json, limit: int) -> Iterator[StoredMemory]:
    before = None
    while limit > 0 and (page := agent.list(where=where, before=before, limit=min(limit, PAGE))):
        yield from page
        before, limit = page[-1].id, limit - len(page)
