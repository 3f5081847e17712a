"""Google ADK: a memory service. The application is the agent, and each event with a text is an item of its user.

An event has a key of its own, so a session can be added again and again: only new events are stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

from recollect.errors import Invalid, NotFound
from recollect.model import Hit, Json
from recollect.policy.items import split_path

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory
    from recollect.api.recollect import Recollect
    from recollect.client.agent import AgentClient
    from recollect.client.client import Client

__all__ = ["RecollectMemoryService"]

ROOT = "adk"
EVENTS = (ROOT, "events")
MEMORIES = (ROOT, "memories")
DELETED = {"deleted": True}
"""Value that keeps the place of a deleted event, so that its session does not bring it back."""

log = logging.getLogger("recollect")


class RecollectMemoryService(BaseMemoryService):
    """Memory service of ADK's runners, on a `Recollect` or a `Client`.

    `search_memory` returns at most `limit` memories: events, and whatever else recollect has for this user and for no
    user of the application. `min_score` is their least similarity; by default the setting `recall_floor` decides.
    """

    def __init__(self, recollect: Recollect | Client, *, limit: int = 10, min_score: float | None = None) -> None:
        self._recollect = recollect
        self._limit = limit
        self._min_score = min_score

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are not stored yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that are not stored yet."""
        namespace = (*EVENTS, session_id) if session_id else EVENTS
        values = {
            event.id: _describe(
                event.content, event.author, datetime.fromtimestamp(event.timestamp, UTC).isoformat(), custom_metadata
            )
            for event in events
        }
        await asyncio.to_thread(self._store, app_name, user_id, namespace, values)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories as they are."""
        values = {
            each.id or uuid4().hex: _describe(
                each.content, each.author, each.timestamp, {**each.custom_metadata, **(custom_metadata or {})}
            )
            for each in memories
        }
        await asyncio.to_thread(self._store, app_name, user_id, MEMORIES, values)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what answers a query best, for one user of an application."""
        view = self._find_view(app_name, user_id)
        recall = partial(view.recall, query, sources=["memory"], limit=self._limit, min_score=self._min_score)
        hits = await asyncio.to_thread(recall) if query.strip() else []
        return SearchMemoryResponse(memories=[_make_entry(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory of this user that `search_memory` returned. An unknown id is no error."""
        if memory_id:
            with suppress(NotFound):
                await asyncio.to_thread(self._delete, self._find_view(app_name, user_id, shared=False), memory_id)

    def _find_view(self, app_name: str, user_id: str, *, shared: bool = True) -> AgentMemory | AgentClient:
        return self._recollect.agent(app_name).for_user(user_id, shared=shared)

    def _store(self, app_name: str, user_id: str, namespace: Sequence[str], values: Mapping[str, Json]) -> None:
        view = self._find_view(app_name, user_id, shared=False)
        new = {key: value for key, value in values.items() if value["text"].strip()}
        stored = view.get_items([(namespace, key) for key in new], refresh=False)
        for (key, value), known in zip(new.items(), stored, strict=True):
            if known is None:
                try:
                    view.put(namespace, key, value, index=["text"])
                except Invalid as refused:
                    # One event with a secret must not keep the others out.
                    log.warning("recollect did not store an event of %s: %s", app_name, refused)

    def _delete(self, view: AgentMemory | AgentClient, memory_id: str) -> None:
        memory = view.get(memory_id)
        view.forget(memory_id)
        if memory.namespace is not None and memory.item_key is not None and split_path(memory.namespace)[0] == ROOT:
            view.put(memory.namespace, memory.item_key, DELETED, index=False)


def _describe(content: Content | None, author: str | None, time: str | None, metadata: Any) -> Json:
    parts = (content.parts if content is not None else None) or []
    text = " ".join(part.text for part in parts if part.text and not part.thought)
    known = {"author": author, "timestamp": time, "metadata": dict(metadata or {})}
    return {"text": text, **{key: value for key, value in known.items() if value}}


def _make_entry(hit: Hit) -> MemoryEntry:
    value = (
        hit.memory.metadata if hit.memory is not None and (hit.memory.namespace or "").startswith(ROOT + "/") else {}
    )
    author = value.get("author")
    return MemoryEntry(
        id=hit.id,
        content=Content(parts=[Part(text=value.get("text", hit.text))], role="user" if author == "user" else "model"),
        author=author,
        timestamp=value.get("timestamp", hit.created_at.isoformat()),
        custom_metadata=value.get("metadata", {}),
    )
