"""Memories of an agent: `/api/agents/{agent}/memories` and their review.

An agent without memories need not exist: listing and recalling find nothing, which is what the first turn of a
conversation needs. Only reading a certain memory is answered with 404.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Self

from fastapi import Path, Query
from pydantic import BaseModel, Field, Strict

from wellkept.memory.rules_kinds import MAX_TAGS, RULES
from wellkept.memory.similar import find_lookalikes
from wellkept.model import Kind, Memory, MemoryVersion, State
from wellkept.server.http.auth import CurrentAgent, CurrentWellkept
from wellkept.server.http.routing import ADMIN, READ, WRITE, Router
from wellkept.server.paging import PagedList, decode_cursor, decode_number, fit_page
from wellkept.server.rest.shapes import (
    FilterFields,
    KindName,
    Metadata,
    Moment,
    Number,
    OriginName,
    Page,
    Paging,
    Patch,
    RecordBody,
    RequestBody,
    RoleName,
    ScopeName,
    StateName,
    UserName,
    Where,
    WhereText,
    check_origin,
    describes,
)

NOTE_CHARS, MEMORY_CHARS = RULES[Kind.NOTE].max_chars, RULES[Kind.EPISODE].max_chars
Tags = Annotated[list[str], Field(json_schema_extra={"maxItems": MAX_TAGS}, examples=[["preference"]])]
MemoryText = Annotated[
    str,
    Field(
        description=f"At most {NOTE_CHARS:,} characters in a note, {MEMORY_CHARS:,} in other kinds.",
        json_schema_extra={"minLength": 1, "maxLength": MEMORY_CHARS},
        examples=["Prefers tabs over spaces"],
    ),
]
Importance = Annotated[Number, Field(json_schema_extra={"minimum": 0, "maximum": 1}, examples=[0.5])]


class NewMemory(RequestBody):
    """A new memory. Omitted (or null) fields follow the rules of its kind."""

    text: MemoryText
    kind: KindName = Kind.NOTE.value
    tags: Tags = []
    scope: ScopeName | None = None
    role: RoleName | None = None
    session_id: str | None = None
    importance: Importance | None = None
    category: str | None = None
    origin: OriginName | None = None
    created_at: Moment | None = None
    expires_at: Moment | None = None
    supersedes: Annotated[str | None, Field(description="The id of the memory this one corrects.")] = None
    valid_from: Annotated[Moment | None, Field(description="Start of its validity; null: when it was written.")] = None
    metadata: Metadata | None = None
    user: UserName | None = None


class MemoryPatch(Patch):
    """Changes to a memory; omitted fields stay, and the previous text is kept as history."""

    text: MemoryText = ""
    tags: Tags = []
    importance: Importance = 0.0
    metadata: Annotated[Metadata, Field(description="Replaces all of its metadata.")] = {}
    version: Annotated[
        int, Strict(), Field(description="The version to change; 409 if there is a newer one.", examples=[1])
    ] = 0


class MemoryFilter(FilterFields, Paging):
    """Filter for memories."""

    where: WhereText = ""
    kind: Annotated[KindName | None, Field(description="Only memories of this kind.")] = None
    q: Annotated[str, Field(description="Only memories with this text, ignoring case.")] = ""
    state: Annotated[StateName | None, Field(description="By default live, unless `where` names a state.")] = None
    as_of: Annotated[Moment | None, Field(description="What was true at that time, in the state of that time.")] = None
    user: UserName | None = None


class RestoreBody(FilterFields):
    """The memories to restore: their ids, or all that pass the filters."""

    ids: Annotated[list[str] | None, Field(examples=[["m-7", "m-8"]])] = None
    state: Annotated[StateName | None, Field(description="`archived` or `expired`; `where` may name it, too.")] = None
    kind: Annotated[KindName | None, Field(description="Only memories of this kind.")] = None
    where: Where = None


class FactParts(RecordBody):
    """Parts of what a fact says."""

    subject: Annotated[str, Field(description="`user`, a name, or a relation such as `sister`.")]
    attribute: Annotated[str | None, Field(examples=["lives_in"])]
    value: str | None


@describes(Memory)
class MemoryBody(RecordBody):
    """A memory, with all of its fields."""

    state: State
    fact: Annotated[FactParts | None, Field(description="Whom or what it is about; null: no fact out of a turn.")]

    @classmethod
    def at(cls, memory: Memory, now: datetime, *, is_past: bool = False, **more: Any) -> Self:
        """Return the body of a memory in the state it has now, or had at a time that `is_past`."""
        return cls.of(memory, state=memory.state(now, is_past=is_past), **more)


class SimilarBody(BaseModel):
    """A similar memory."""

    id: str
    text: str


class KeptMemory(MemoryBody):
    """A stored memory, and its possible duplicates."""

    similar: Annotated[list[SimilarBody], Field(description="Possible duplicates; only for notes and core memories.")]


@describes(MemoryVersion)
class VersionBody(RecordBody):
    """A previous version of a memory."""


class MemoryPage(Page[MemoryBody]):
    """Memories, in the order of the route."""


class RestoreAnswer(BaseModel):
    """Restored memories."""

    restored: Annotated[int, Field(description="Number of memories that were named or found.")]
    ids: list[str]
    items: Annotated[list[MemoryBody], Field(description="The first of them, as many as fit into a page.")]


class VersionPage(Page[VersionBody]):
    """Previous versions of a memory, newest first."""


class ApprovedWorkspace(BaseModel):
    """Approval of the notes in a workspace's file."""

    approved: Annotated[int, Field(description="Number of approved notes.")]


LISTING = PagedList[str | None]("memories", decode_cursor, None)
VERSIONS = PagedList[int | None]("versions", decode_number, None)

router = Router(prefix="/api/agents/{agent}", tags=["memories"])
MemoryId = Annotated[str, Path(description="The memory's id.", examples=["m-7"])]


@router.get("/memories", scope=READ)
def list_memories(
    wellkept: CurrentWellkept, memory: CurrentAgent, filters: Annotated[MemoryFilter, Query()]
) -> MemoryPage:
    """List memories, newest first. An unknown agent has none."""
    chosen: dict[str, Any] = {"kind": filters.kind or None, "state": filters.state or None, **filters.filters()}
    listed = partial(memory.list, query=filters.q, as_of=filters.as_of, user=filters.user, **chosen)
    found, cursor = LISTING.read(lambda before, limit: listed(before=before, limit=limit), attrgetter("id"), filters)
    moment, is_past = filters.as_of or wellkept.now(), filters.as_of is not None
    return MemoryPage(items=[MemoryBody.at(each, moment, is_past=is_past) for each in found], next_cursor=cursor)


def draft_fields(body: NewMemory) -> dict[str, Any]:
    """Return the arguments of `remember`. Raises: Forbidden when the origin is trusted more than the key."""
    check_origin(body.origin)
    return dict(body)


@router.post("/memories", scope=WRITE, status_code=201)
def create_memory(wellkept: CurrentWellkept, memory: CurrentAgent, body: NewMemory) -> KeptMemory:
    """Store a memory. When this route answers, it is on disk. The first memory of an agent creates the agent. A note or
    core memory that exists, but for case and white space, is returned unchanged. 403 for an origin that is trusted more
    than the key."""
    kept = memory.remember(**draft_fields(body))
    similar = [SimilarBody(id=each.id, text=each.text) for each in find_lookalikes(memory.review.similar, kept)]
    return KeptMemory.at(kept, wellkept.now(), similar=similar)


@router.get("/memories/{id}", scope=READ)
def get_memory(wellkept: CurrentWellkept, memory: CurrentAgent, id: MemoryId) -> MemoryBody:
    """Return a memory."""
    return MemoryBody.at(memory.get(id), wellkept.now())


@router.patch("/memories/{id}", scope=WRITE)
def update_memory(wellkept: CurrentWellkept, memory: CurrentAgent, id: MemoryId, body: MemoryPatch) -> MemoryBody:
    """Edit a memory; the previous text, tags and metadata are kept as history. With `version`, only if that is
    still the current one."""
    return MemoryBody.at(memory.update(id, **body.model_dump(exclude_unset=True)), wellkept.now())


@router.delete("/memories/{id}", scope=WRITE, status_code=204)
def delete_memory(memory: CurrentAgent, id: MemoryId) -> None:
    """Delete a memory and its history permanently."""
    memory.forget(id)


@router.get("/memories/{id}/history", scope=READ)
def list_versions(memory: CurrentAgent, id: MemoryId, paging: Annotated[Paging, Query()]) -> VersionPage:
    """List previous versions of a memory, newest first."""
    found, cursor = VERSIONS.read(
        lambda before, limit: memory.history(id, before=before, limit=limit), attrgetter("version"), paging
    )
    return VersionPage(items=[VersionBody.of(each) for each in found], next_cursor=cursor)


@router.get("/memories/{id}/similar", scope=READ)
def list_similar(wellkept: CurrentWellkept, memory: CurrentAgent, id: MemoryId) -> MemoryPage:
    """List live memories that are similar to this one, most similar first."""
    now = wellkept.now()
    return MemoryPage(items=[MemoryBody.at(each, now) for each in memory.review.similar(id)])


@router.get("/review", scope=READ)
def list_for_review(wellkept: CurrentWellkept, memory: CurrentAgent) -> MemoryPage:
    """List memories to review, newest first: `held` memories are not used; `flag` is the reason."""
    now = wellkept.now()
    return MemoryPage(items=[MemoryBody.at(each, now) for each in fit_page(memory.review.list())])


@router.post("/memories/{id}/approve", scope=ADMIN)
def approve_memory(wellkept: CurrentWellkept, memory: CurrentAgent, id: MemoryId) -> MemoryBody:
    """Approve a memory for use. One that needs no approval is returned unchanged."""
    return MemoryBody.at(memory.review.approve(id), wellkept.now())


@router.post("/memories/restore", scope=WRITE)
def restore_memories(wellkept: CurrentWellkept, memory: CurrentAgent, body: RestoreBody) -> RestoreAnswer:
    """Restore archived or expired memories, by id or all that pass the filters. By id, all are checked first: 409 if
    one was corrected or a live memory has its text. By filter, such memories stay as they are. A restore that times out
    has restored some; repeat it."""
    named: dict[str, Any] = {"ids": body.ids, "state": body.state, "kind": body.kind, **body.filters()}
    restored = memory.restore(**named)
    items = [MemoryBody.at(each, wellkept.now()) for each in fit_page(restored)]
    return RestoreAnswer(restored=len(restored), ids=[each.id for each in restored], items=items)


@router.post("/memories/{id}/restore", scope=WRITE)
def restore_memory(wellkept: CurrentWellkept, memory: CurrentAgent, id: MemoryId) -> MemoryBody:
    """Make an archived or expired memory live again. Its end is renewed by the lifetime of its category and its decay
    starts again. A live one is returned unchanged; 409 if it was corrected or a live memory has its text."""
    (restored,) = memory.restore(id)
    return MemoryBody.at(restored, wellkept.now())


@router.post("/workspace/approve", scope=ADMIN)
def approve_workspace(memory: CurrentAgent) -> ApprovedWorkspace:
    """Trust the notes in the workspace's file (`.aegis/memory/memories.jsonl`) like the user's own."""
    return ApprovedWorkspace(approved=memory.review.approve_workspace())
