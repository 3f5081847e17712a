"""An agent's memories: `/api/agents/{agent}/memories`, its blocks for the prompt, recall and review.

An agent nobody has written to yet is an empty one: listing, recalling and reading its private memory find nothing,
which is what a conversation's first turn needs. Only asking for a certain memory of it is answered "not found".
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from recollect.caller import current_caller
from recollect.model import Origin, State
from recollect.policy.memories.trust import check_claim
from recollect.server.auth import CurrentAgent, CurrentRecollect
from recollect.server.paging import fit_page, read_page
from recollect.server.rest import cursor
from recollect.server.rest.answers import (
    ApprovedWorkspace,
    Explained,
    Injected,
    KeptMemory,
    MemoryBody,
    MemoryPage,
    PrivateMemory,
    Recalled,
    SimilarBody,
    VersionBody,
    VersionPage,
)
from recollect.server.rest.bodies import Doubt, MemoryFilter, MemoryPatch, NewMemory, Paging, Prompted, Question
from recollect.tools.lookalikes import lookalikes

LISTING = "memories"
VERSIONS = "versions"

router = APIRouter(prefix="/api/agents/{agent}", tags=["memories"])
MemoryId = Annotated[str, Path(description="The memory's id.", examples=["m-7"])]


@router.get("/memories")
def list_memories(
    recollect: CurrentRecollect, memory: CurrentAgent, wanted: Annotated[MemoryFilter, Query()]
) -> MemoryPage:
    """Memories, newest first. An agent nobody has written to has none."""
    before = cursor.decode(LISTING, wanted.cursor) if wanted.cursor else None
    listed = partial(
        memory.list,
        kind=wanted.kind or None,
        tag=wanted.tag,
        query=wanted.q,
        state=wanted.state or State.LIVE,
        as_of=wanted.as_of,
    )
    page = read_page(
        lambda before, limit: listed(before=before, limit=limit), attrgetter("id"), before, limit=wanted.limit
    )
    moment = wanted.as_of or recollect.now()
    items = [MemoryBody.of(each, moment) for each in page.items]
    return MemoryPage(items=items, next_cursor=cursor.encode_next(LISTING, page.end))


@router.post("/memories", status_code=201)
def create_memory(recollect: CurrentRecollect, memory: CurrentAgent, body: NewMemory) -> KeptMemory:
    """Keep a memory. When this answers, it is on disk. An agent's first memory makes the agent. A note or core memory
    that is there already, but for case and white space, is answered as it is. 403 for an origin that is trusted more
    than the key."""
    if body.origin is not None and body.origin in [*Origin]:
        check_claim(Origin(body.origin), current_caller().trust)
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
        supersedes=body.supersedes,
        valid_from=body.valid_from,
    )
    similar = [SimilarBody(id=each.id, text=each.text) for each in lookalikes(memory, kept)]
    return KeptMemory.of(kept, recollect.now(), similar=similar)


@router.get("/memories/{id}")
def get_memory(recollect: CurrentRecollect, memory: CurrentAgent, id: MemoryId) -> MemoryBody:
    """One memory."""
    return MemoryBody.of(memory.get(id), recollect.now())


@router.patch("/memories/{id}")
def update_memory(recollect: CurrentRecollect, memory: CurrentAgent, id: MemoryId, body: MemoryPatch) -> MemoryBody:
    """Edit a memory; what it said before is kept as history. With a `version`: only if it is still that one."""
    edited = memory.update(
        id,
        text=body.text if "text" in body.model_fields_set else None,
        tags=body.tags if "tags" in body.model_fields_set else None,
        importance=body.importance if "importance" in body.model_fields_set else None,
        version=body.version if "version" in body.model_fields_set else None,
    )
    return MemoryBody.of(edited, recollect.now())


@router.delete("/memories/{id}", status_code=204)
def delete_memory(memory: CurrentAgent, id: MemoryId) -> None:
    """Delete a memory and its history for good."""
    memory.forget(id)


@router.get("/memories/{id}/history")
def list_versions(memory: CurrentAgent, id: MemoryId, paging: Annotated[Paging, Query()]) -> VersionPage:
    """What a memory said before its edits, newest first."""
    newest = cursor.decode_number(VERSIONS, paging.cursor) if paging.cursor else None
    page = read_page(
        lambda before, limit: memory.history(id, before=before, limit=limit),
        attrgetter("version"),
        newest,
        limit=paging.limit,
    )
    return VersionPage(
        items=[VersionBody.of(each) for each in page.items], next_cursor=cursor.encode_next(VERSIONS, page.end)
    )


@router.get("/memories/{id}/similar")
def list_similar(recollect: CurrentRecollect, memory: CurrentAgent, id: MemoryId) -> MemoryPage:
    """Live memories that say nearly the same as this one, most alike first."""
    now = recollect.now()
    return MemoryPage(items=[MemoryBody.of(each, now) for each in memory.similar(id)])


@router.get("/review")
def list_for_review(recollect: CurrentRecollect, memory: CurrentAgent) -> MemoryPage:
    """What waits for a person, newest first: `held` memories are kept out of use; `flag` says why one is here."""
    now = recollect.now()
    return MemoryPage(items=[MemoryBody.of(each, now) for each in fit_page(memory.review())])


@router.post("/memories/{id}/approve")
def approve_memory(recollect: CurrentRecollect, memory: CurrentAgent, id: MemoryId) -> MemoryBody:
    """Let a memory from the review into use. One that needs no approval is answered as it is."""
    return MemoryBody.of(memory.approve(id), recollect.now())


@router.post("/workspace/approve")
def approve_workspace(memory: CurrentAgent) -> ApprovedWorkspace:
    """Trust the notes that came with the workspace's file (`.aegis/memory/memories.jsonl`) like the user's own."""
    return ApprovedWorkspace(approved=memory.approve_workspace())


@router.get("/private-memory")
def get_private_memory(memory: CurrentAgent) -> PrivateMemory:
    """The core memories and recent journal entries, as the block that belongs behind the system prompt."""
    return PrivateMemory(text=memory.private_memory())


@router.post("/inject")
def inject(memory: CurrentAgent, body: Prompted) -> Injected:
    """The notes that fit the user's last message, as a block for the next prompt."""
    return Injected(text=memory.inject(body.message, mode=body.mode))


@router.post("/recall")
def recall(memory: CurrentAgent, body: Question) -> Recalled:
    """What fits a question best, by meaning and by words, each hit with the parts of its score: from the agent's own
    memories and the tenant's audit log, workflow steps and knowledge."""
    return Recalled.of(memory.recall(body.query, **_wanted(body)))


@router.post("/explain")
def explain(memory: CurrentAgent, body: Doubt) -> Explained:
    """Why a question finds something, or why it does not. Ask as for recall, and name its `id`."""
    return Explained.of(memory.explain(body.query, body.id, **_wanted(body)))


def _wanted(body: Question) -> dict[str, Any]:
    return body.model_dump(include={"limit", "kinds", "sources", "purpose", "as_of"})
