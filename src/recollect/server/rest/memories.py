"""An agent's memories: `/api/agents/{agent}/memories`, its private memory, and recall.

An agent nobody has written to yet is an empty one: listing, recalling and reading its private memory find nothing,
which is what a conversation's first turn needs. Only asking for a certain memory of it is answered "not found".
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query

from recollect.server.auth import CurrentAgent, CurrentRecollect
from recollect.server.rest import cursor
from recollect.server.rest.bodies import (
    HitBody,
    MemoryBody,
    MemoryFilter,
    MemoryPage,
    MemoryPatch,
    NewMemory,
    PrivateMemory,
    Question,
    Recalled,
    VersionBody,
    VersionPage,
)

LISTING = "memories"

router = APIRouter(prefix="/api/agents/{agent}", tags=["memories"])
MemoryId = Annotated[str, Path(description="The memory's id.", examples=["m-7"])]


@router.get("/memories")
def list_memories(
    recollect: CurrentRecollect, memory: CurrentAgent, wanted: Annotated[MemoryFilter, Query()]
) -> MemoryPage:
    """Memories, newest first. An agent nobody has written to has none."""
    before = cursor.decode(LISTING, wanted.cursor) if wanted.cursor else None
    listed = partial(memory.list, kind=wanted.kind or None, tag=wanted.tag, query=wanted.q, state=wanted.state)
    found = listed(before=before, limit=wanted.limit)
    has_more = len(found) == wanted.limit and bool(listed(before=found[-1].id, limit=1))
    next_cursor = cursor.encode(LISTING, found[-1].id) if has_more else None
    now = recollect.now()
    return MemoryPage(items=[MemoryBody.of(each, now) for each in found], next_cursor=next_cursor)


@router.post("/memories", status_code=201)
def create_memory(recollect: CurrentRecollect, memory: CurrentAgent, body: NewMemory) -> MemoryBody:
    """Keep a memory. When this answers, it is on disk. An agent's first memory makes the agent."""
    kept = memory.remember(
        body.text,
        kind=body.kind,
        tags=body.tags,
        scope=body.scope,
        role=body.role,
        session_id=body.session_id,
        importance=body.importance,
        category=body.category,
        origin=body.origin,
        created_at=body.created_at,
        expires_at=body.expires_at,
    )
    return MemoryBody.of(kept, recollect.now())


@router.get("/memories/{id}")
def get_memory(recollect: CurrentRecollect, memory: CurrentAgent, id: MemoryId) -> MemoryBody:
    """One memory."""
    return MemoryBody.of(memory.get(id), recollect.now())


@router.patch("/memories/{id}")
def update_memory(recollect: CurrentRecollect, memory: CurrentAgent, id: MemoryId, body: MemoryPatch) -> MemoryBody:
    """Edit a memory; what it said before is kept as history."""
    edited = memory.update(
        id,
        text=body.text if "text" in body.model_fields_set else None,
        tags=body.tags if "tags" in body.model_fields_set else None,
        importance=body.importance if "importance" in body.model_fields_set else None,
    )
    return MemoryBody.of(edited, recollect.now())


@router.delete("/memories/{id}", status_code=204)
def delete_memory(memory: CurrentAgent, id: MemoryId) -> None:
    """Delete a memory and its history for good."""
    memory.forget(id)


@router.get("/memories/{id}/history")
def list_versions(memory: CurrentAgent, id: MemoryId) -> VersionPage:
    """What a memory said before its edits, newest first."""
    return VersionPage(items=[VersionBody.of(version) for version in memory.history(id)])


@router.get("/private-memory")
def get_private_memory(memory: CurrentAgent) -> PrivateMemory:
    """The core memories and recent journal entries, as the block that belongs behind the system prompt."""
    return PrivateMemory(text=memory.private_memory())


@router.post("/recall")
def recall(memory: CurrentAgent, body: Question) -> Recalled:
    """What fits a question best, by meaning and by words, each hit with the parts of its score."""
    hits = memory.recall(body.query, limit=body.limit, kinds=body.kinds)
    return Recalled(hits=[HitBody.of(hit) for hit in hits])
