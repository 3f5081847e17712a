"""Google ADK: a memory service. The application is the agent, each event with a text an item of its user.

The key is that of the event, so a session can be added again and again: only new events are stored.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

from wellkept.errors import Invalid, NotFound
from wellkept.language.text import clean_text
from wellkept.model import Hit, Json, Kind, Memory

if TYPE_CHECKING:
    from wellkept.api.agent import AgentMemory
    from wellkept.api.wellkept import Wellkept
    from wellkept.client.agent import AgentClient
    from wellkept.client.client import Client

    View: TypeAlias = AgentMemory | AgentClient

__all__ = ["WellkeptMemoryService"]
ROOT = "adk"
BARE_QUESTION = re.compile(r"[^.!?\n]*[?？؟]|")
# It keeps the place of a deleted event, so that its session does not bring it back.
DELETED = {"deleted": True}

log = logging.getLogger("wellkept")


class WellkeptMemoryService(BaseMemoryService):
    """Memory service of ADK's runners, on a `Wellkept` or a `Client`. It searches events, and whatever else wellkept
    has for a user and for no user of the application: at most `limit` memories, none of less
    relevance than `min_relevance`."""

    def __init__(self, wellkept: Wellkept | Client, *, limit: int = 10, min_relevance: float | None = None) -> None:
        self._wellkept, self._limit, self._min_relevance = wellkept, limit, min_relevance

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
        namespace = (ROOT, "events", *([session_id] if session_id else []))
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
        await asyncio.to_thread(self._store, app_name, user_id, (ROOT, "memories"), values)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what answers a query best, for one user of an application."""
        recall = partial(
            self._find_view(app_name, user_id).recall, limit=self._limit, min_relevance=self._min_relevance
        )
        hits = await asyncio.to_thread(recall, clean_text(query), sources=["memory"]) if query.strip() else []
        return SearchMemoryResponse(memories=[_make_entry(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory of this user; an unknown id is no error. Raises: Forbidden if it belongs to no user."""
        with suppress(NotFound):
            await asyncio.to_thread(self._delete, self._find_view(app_name, user_id), memory_id or "")

    def _find_view(self, app_name: str, user_id: str) -> View:
        return self._wellkept.agent(app_name).for_user(user_id)

    def _store(self, app_name: str, user_id: str, namespace: Sequence[str], values: Mapping[str, Json]) -> None:
        view = self._find_view(app_name, user_id)
        # A bare question answers nothing, but would match the next question best.
        new = {key: value for key, value in values.items() if not BARE_QUESTION.fullmatch(value["text"].strip())}
        stored = view.items.get_many([(namespace, key) for key in new], refresh=False)
        for (key, value), known in zip(new.items(), stored, strict=True):
            if known is None:
                try:
                    view.items.put(namespace, key, {**value, "place": [*namespace, key]}, index=["text"])
                except Invalid as refused:
                    # One event with a secret must not keep the others out.
                    log.warning("wellkept did not store an event of %s: %s", app_name, refused)

    def _delete(self, view: View, memory_id: str) -> None:
        place = _find_value(view.get(memory_id)).get("place")
        view.forget(memory_id)
        if place:
            view.items.put(place[:-1], place[-1], DELETED, index=False)


def _describe(content: Content | None, author: str | None, time: str | None, metadata: Any) -> Json:
    parts = (content.parts if content is not None else None) or []
    text = clean_text(" ".join(part.text for part in parts if part.text and not part.thought))
    known = {"author": author, "timestamp": time, "metadata": dict(metadata or {})}
    return {"text": text, **{key: value for key, value in known.items() if value}}


def _find_value(memory: Memory | None) -> Mapping[str, Any]:
    """Return the value of an item that this service stored; {} for others."""
    value = memory.metadata if memory is not None and memory.kind == Kind.ITEM else {}
    return value if isinstance(value.get("place"), list) and value["place"][:1] == [ROOT] else {}


def _make_entry(hit: Hit) -> MemoryEntry:
    value = _find_value(hit.memory)
    return MemoryEntry(
        id=hit.id,
        content=Content(parts=[Part(text=value.get("text", hit.text))]),
        author=value.get("author"),
        timestamp=value.get("timestamp", hit.created_at.isoformat()),
        custom_metadata=value.get("metadata", {}),
    )
