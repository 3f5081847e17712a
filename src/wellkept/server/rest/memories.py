"""Memories of an agent: `/api/agents/{agent}/memories` and their review.

An agent without memories need not exist: listing and recalling find nothing, which is what the first turn of a
conversation needs. Only reading a certain memory is answered with 404.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal, Self, TypeAlias

from fastapi import Path, Query
from pydantic import BaseModel, Field, SkipValidation, Strict, ValidationError

from wellkept.api.wellkept import AgentMemory
from wellkept.errors import Conflict, Forbidden, Invalid, NotFound, WellkeptError
from wellkept.memory.rules_kinds import MAX_TAGS, RULES
from wellkept.memory.similar import find_lookalikes
from wellkept.model import Kind, Memory, MemoryVersion, State
from wellkept.server.http.auth import CurrentAgent, CurrentWellkept
from wellkept.server.http.errors import describe_problems, located
from wellkept.server.http.routing import ADMIN, READ, WRITE, Router
from wellkept.server.paging import PagedList, decode_cursor, decode_number, fit_page
from wellkept.server.rest.shapes import (
    ErrorBody,
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


LISTING = PagedList[str | None]("memories", decode_cursor, attrgetter("id"), None, direction="before")
VERSIONS = PagedList[int | None]("versions", decode_number, attrgetter("version"), None, direction="before")

router = Router(prefix="/api/agents/{agent}", tags=["memories"])
MemoryId = Annotated[str, Path(description="The memory's id.", examples=["m-7"])]


@router.get("/memories", scope=READ)
def list_memories(
    wellkept: CurrentWellkept, memory: CurrentAgent, filters: Annotated[MemoryFilter, Query()]
) -> MemoryPage:
    """List memories, newest first. An unknown agent has none."""
    chosen: dict[str, Any] = {"kind": filters.kind or None, "state": filters.state or None, **filters.filters()}
    listed = partial(memory.list, query=filters.q, as_of=filters.as_of, user=filters.user, **chosen)
    found, cursor = LISTING.read(listed, filters)
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
    found, cursor = VERSIONS.read(partial(memory.history, id), paging)
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


MAX_ITEMS = 1_000
REFUSALS = (Invalid, Forbidden, NotFound, Conflict)
"""Errors caused by an item. All others concern the whole request."""


class MemoryBatch(RequestBody):
    """New memories."""

    # Items are validated one by one, so that a wrong one does not refuse the others.
    items: Annotated[list[SkipValidation[NewMemory]], Field(json_schema_extra={"maxItems": MAX_ITEMS})]
    atomic: Annotated[bool, Strict(), Field(description="Store all or none.")] = False
    records: Annotated[bool, Strict(), Field(description="Also return each memory; only with `atomic`.")] = False


class StoredItem(BaseModel):
    """A stored item."""

    ok: Literal[True] = True
    id: Annotated[str, Field(description="The memory's id.", examples=["m-7"])]


class StoredRecord(StoredItem):
    """A stored item with its memory, for requests with `records`."""

    memory: MemoryBody


ItemResult: TypeAlias = StoredRecord | StoredItem | ErrorBody


class BatchAnswer(BaseModel):
    """A result for each item, in the order of the items."""

    results: list[ItemResult]


@router.post("/memories/batch", scope=WRITE)
def create_memories(wellkept: CurrentWellkept, memory: CurrentAgent, body: MemoryBatch) -> BatchAnswer:
    """Store up to 1,000 memories. Each item is like the body of `POST …/memories`; wrong ones are refused one by one.
    With `atomic`, all or none are stored: the answer to a wrong item is 400 (403 if the key is trusted too little), and
    the sentence names its position, from 0."""
    if len(body.items) > MAX_ITEMS:
        raise Invalid(f"A batch has at most {MAX_ITEMS:,} items; send the others in another request.")
    now = wellkept.now() if body.records else None
    stored = _store_all(memory, body.items, now) if body.atomic else _store_valid(memory, body.items)
    return BatchAnswer(results=[*stored])


def _store_all(memory: AgentMemory, items: Sequence[object], now: datetime | None) -> Sequence[ItemResult]:
    """Store all items, or none; return them as of `now` if that is given. Raises: Invalid, Forbidden."""
    drafts: list[Mapping[str, Any]] = []
    try:
        for item in items:
            drafts.append(_parse_item(item))
        kept = memory.remember_many(drafts)
        if now is None:
            return [StoredItem(id=each.id) for each in kept]
        return [StoredRecord(id=each.id, memory=MemoryBody.at(each, now)) for each in kept]
    except REFUSALS as error:
        # An item that was refused here never became a draft.
        position = error.item if len(drafts) == len(items) else len(drafts)
        where, error.item = "" if position is None else f"items[{position}]: ", position
        error.args = (f"{where}{_end_sentence(error)} Nothing was stored.",)
        if isinstance(error, Invalid | Forbidden):
            raise
        refused = Invalid(str(error))
        refused.item = position
        raise refused from error


def _store_valid(memory: AgentMemory, items: Sequence[object]) -> Sequence[ItemResult]:
    """Store the items that are not refused, in one transaction unless the store has to be asked about some.

    Raises: WellkeptError when none is stored because the store or the embedder failed.
    """
    drafts: dict[int, Mapping[str, Any]] = {}
    results: dict[int, ItemResult] = {}
    for position, item in enumerate(items):
        try:
            drafts[position] = _parse_item(item)
        except REFUSALS as error:
            results[position] = _refuse(error)
    has_stored = False
    # The last group is next, so that items are stored in their order.
    waiting = [[*drafts]]
    while waiting:
        group = waiting.pop()
        try:
            kept = memory.remember_many([drafts[position] for position in group])
            results |= {position: StoredItem(id=each.id) for position, each in zip(group, kept, strict=True)}
            has_stored = has_stored or bool(kept)
        except REFUSALS as error:
            # Without a position, the group is refused as a whole: smaller ones may not be.
            wrong = len(group) // 2 if error.item is None else error.item
            if error.item is not None or len(group) == 1:
                results[group[wrong]] = _refuse(error)
                waiting += [group[wrong + 1 :], group[:wrong]]
            else:
                waiting += [group[wrong:], group[:wrong]]
        except WellkeptError as error:
            # What was stored before stays; only the results can tell which items that are.
            if not has_stored:
                raise
            results |= dict.fromkeys(group, _refuse(error))
    return [results[position] for position in range(len(items))]


def _parse_item(item: object) -> dict[str, Any]:
    """Return the arguments of `remember`. Raises: Invalid, Forbidden."""
    if not isinstance(item, dict):
        raise Invalid("An item must be a JSON object with a text.")
    try:
        return draft_fields(NewMemory.model_validate(item))
    except ValidationError as error:
        raise Invalid(describe_problems(located(error))) from None


def _refuse(error: WellkeptError) -> ErrorBody:
    return ErrorBody(error=str(error), code=error.code)


def _end_sentence(error: WellkeptError) -> str:
    return f"{str(error).removesuffix('.')}."
