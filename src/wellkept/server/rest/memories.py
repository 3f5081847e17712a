"""Memories of an agent, their review, facts out of conversations, and changes: `/api/agents/{agent}`.

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
from pydantic import BaseModel, SkipValidation, ValidationError

from wellkept import model
from wellkept.api.views import ANY_STATE
from wellkept.api.wellkept import AgentMemory
from wellkept.errors import Conflict, Forbidden, Invalid, NotFound, WellkeptError
from wellkept.facts.requests import MAX_MESSAGES
from wellkept.memory.remember import find_lookalikes
from wellkept.memory.rules_kinds import MAX_TAGS, RULES
from wellkept.model import ChangeState, Kind, Memory, Role, State
from wellkept.server.http.auth import CurrentAgent, CurrentWellkept
from wellkept.server.http.errors import describe_problems, located
from wellkept.server.http.routing import ADMIN, READ, WRITE, Router
from wellkept.server.paging import PagedList, decode_cursor, decode_number, fit_page
from wellkept.server.rest import shapes
from wellkept.server.rest.shapes import ErrorBody, Flag, Moment, Number, RecordBody, RequestBody, describes, field

NOTE_CHARS, MEMORY_CHARS = RULES[Kind.NOTE].max_chars, RULES[Kind.EPISODE].max_chars
Tags = Annotated[list[str], field(maxItems=MAX_TAGS, example=["preference"])]
MemoryText = Annotated[
    str,
    field(
        description=f"At most {NOTE_CHARS:,} characters in a note, {MEMORY_CHARS:,} in other kinds.",
        minLength=1,
        maxLength=MEMORY_CHARS,
        example="Prefers tabs over spaces",
    ),
]
Importance = Annotated[Number, field(minimum=0, maximum=1, example=0.5)]


class NewMemory(RequestBody):
    """A new memory. Omitted (or null) fields follow the rules of its kind."""

    text: MemoryText
    kind: shapes.KindName = Kind.NOTE.value
    tags: Tags = []
    scope: shapes.ScopeName | None = None
    role: Annotated[str, field(enum=[*Role])] | None = None
    session_id: str | None = None
    importance: Importance | None = None
    category: str | None = None
    origin: shapes.OriginName | None = None
    created_at: Moment | None = None
    expires_at: Moment | None = None
    supersedes: str | None = field(None, "The id of the memory this one corrects.")
    valid_from: Moment | None = field(None, "Start of its validity; null: when it was written.")
    metadata: shapes.Metadata | None = None
    user: shapes.UserName | None = None


class MemoryPatch(shapes.Patch):
    """Changes to a memory; omitted fields stay, and the previous text is kept as history."""

    text: MemoryText = ""
    tags: Tags = []
    importance: Importance = 0.0
    metadata: shapes.Metadata = field({}, "Replaces all of its metadata.")
    version: int = field(0, "The version to change; 409 if there is a newer one.", strict=True, example=1)


class MemoryFilter(shapes.FilterFields, shapes.Paging):
    """Filter for memories."""

    where: shapes.WhereText = ""
    kind: shapes.KindName | None = field(None, "Only memories of this kind.")
    q: str = field("", "Only memories with this text, ignoring case.")
    state: Annotated[str, field(enum=[*State, ANY_STATE])] | None = field(
        None, "By default live, unless `where` names a state."
    )
    as_of: Moment | None = field(None, "What was true at that time, in the state of that time.")
    user: shapes.UserName | None = None


class RestoreBody(shapes.FilterFields):
    """The memories to restore: their ids, or all that pass the filters."""

    ids: list[str] | None = field(None, example=["m-7", "m-8"])
    state: Annotated[str, field(enum=[*State, ANY_STATE])] | None = field(
        None, "`archived` or `expired`; `where` may name it, too."
    )
    kind: shapes.KindName | None = field(None, "Only memories of this kind.")
    where: shapes.Where = None


class FactParts(RecordBody):
    """Parts of what a fact says."""

    subject: str = field(description="`user`, a name, or a relation such as `sister`.")
    attribute: str | None = field(example="lives_in")
    value: str | None


@describes(Memory)
class MemoryBody(RecordBody):
    """A memory, with all of its fields."""

    state: State
    fact: FactParts | None = field(description="Whom or what it is about; null: no fact out of a turn.")

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

    similar: list[SimilarBody] = field(description="Possible duplicates; only for notes and core memories.")


@describes(model.MemoryVersion)
class VersionBody(RecordBody):
    """A previous version of a memory."""


class MemoryPage(shapes.Page[MemoryBody]):
    """Memories, in the order of the route."""


class RestoreAnswer(BaseModel):
    """Restored memories."""

    restored: int = field(description="Number of memories that were named or found.")
    ids: list[str]
    items: list[MemoryBody] = field(description="The first of them, as many as fit into a page.")


class VersionPage(shapes.Page[VersionBody]):
    """Previous versions of a memory, newest first."""


class ApprovedWorkspace(BaseModel):
    """Approval of the notes in a workspace's file."""

    approved: int = field(description="Number of approved notes.")


LISTING = PagedList[str | None]("memories", decode_cursor, attrgetter("id"), None, direction="before")
VERSIONS = PagedList[int | None]("versions", decode_number, attrgetter("version"), None, direction="before")
CHANGES = PagedList[str | None]("changes", decode_cursor, attrgetter("id"), None, direction="before")

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
    shapes.check_origin(body.origin)
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
def list_versions(memory: CurrentAgent, id: MemoryId, paging: Annotated[shapes.Paging, Query()]) -> VersionPage:
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
    items: list[SkipValidation[NewMemory]] = field(maxItems=MAX_ITEMS)
    atomic: Flag = field(False, "Store all or none.")
    records: Flag = field(False, "Also return each memory; only with `atomic`.")


class StoredItem(BaseModel):
    """A stored item."""

    ok: Literal[True] = True
    id: str = field(description="The memory's id.", example="m-7")


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
        where = "" if position is None else f"items[{position}]: "
        refused = error if isinstance(error, Invalid | Forbidden) else Invalid("")
        refused.item = position
        refused.args = (f"{where}{str(error).removesuffix('.')}. Nothing was stored.",)
        raise refused from (None if refused is error else error)


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


class NewFacts(RequestBody):
    """A conversation to read facts out of."""

    messages: list[dict[str, Any]] = field(
        description="Mappings with `role` and `content`, as chat models take them.",
        maxItems=MAX_MESSAGES,
        example=[{"role": "user", "content": "I'm allergic to penicillin."}],
    )
    session_id: str | None = field(None, "The conversation that the facts come from.")
    user: shapes.UserName | None = None
    metadata: dict[str, Any] | None = field(None, "Metadata of each new memory.", example={"topic": "health"})
    dry_run: Flag = field(False, "Store nothing, only show what would be stored.")
    records: Flag = field(False, "Also return each memory with all of its fields.")


class FactBody(RecordBody):
    """A memory that was stored, edited or ended."""

    id: str = field(description="Empty in a dry run, if it is new.", example="m-7")
    text: str
    turn: int = field(description="Position of the message it comes from, counted from 0.")
    kind: Kind
    category: str | None
    origin: model.Origin
    version: int
    replaces: str | None = field(description="The memory it supersedes.")


class WholeFact(FactBody):
    """A memory that was stored, edited or ended, for requests with `records`."""

    memory: MemoryBody


AnyFact: TypeAlias = WholeFact | FactBody


@describes(model.DroppedFact)
class DroppedBody(RecordBody):
    """A statement that was not stored. Secrets in it are replaced by a mark."""


@describes(model.AddedFacts)
class FactsAnswer(RecordBody):
    """Changes to the memories, and what was left out."""

    added: list[AnyFact]
    updated: list[AnyFact]
    superseded: list[AnyFact] = field(
        description="New memories with the one each `replaces`; without it, memories the user took back."
    )


facts = Router(prefix="/api/agents/{agent}", tags=["memories"])


@facts.post("/add", scope=WRITE)
def add_facts(wellkept: CurrentWellkept, memory: CurrentAgent, body: NewFacts) -> FactsAnswer:
    """Store the lasting facts of a conversation. When this route answers, they are on disk. A configured model reads
    the messages; without one, or when it fails, rules do."""
    added, now = memory.add(**body.model_dump(exclude={"records"})), wellkept.now()

    def show(fact: model.FoundFact) -> FactBody:
        change = {"turn": fact.turn, "replaces": fact.replaces}
        if not body.records:
            return FactBody.of(fact.memory, **change)
        return WholeFact.of(fact.memory, **change, memory=MemoryBody.at(fact.memory, now))

    shown = {name: [show(each) for each in getattr(added, name)] for name in ("added", "updated", "superseded")}
    return FactsAnswer.of(added, **shown, dry_run=added.is_dry_run)


class ProfileQuery(shapes.Query):
    """Subject of a profile."""

    subject: str | None = field(
        None, "Whom or what it is about: user, a name, or a relation; all if not given.", example="sister"
    )
    user: shapes.UserName | None = None


class ProfileAnswer(BaseModel):
    """Current facts, newest first, and the block of a prompt that shows them."""

    facts: list[MemoryBody]
    text: str = field(description="Empty if nothing is known.")


class WhatToForget(RequestBody):
    """Words for what to forget."""

    about: str = field(minLength=1, example="my old address")
    user: shapes.UserName | None = None


class ForgottenAnswer(BaseModel):
    """Memories that are hidden now, and those that are not."""

    forgotten: list[MemoryBody] = field(description="They can be restored for 30 days.")
    candidates: list[MemoryBody] = field(description="What may be meant, or cannot be hidden.")


@facts.get("/profile", scope=READ)
def get_profile(
    wellkept: CurrentWellkept, memory: CurrentAgent, query: Annotated[ProfileQuery, Query()]
) -> ProfileAnswer:
    """Return what is true now of a user and of those the user spoke about, each fact as a memory."""
    profile, now = memory.profile(subject=query.subject, user=query.user), wellkept.now()
    return ProfileAnswer(facts=[MemoryBody.at(each, now) for each in profile.facts], text=profile.text)


@facts.post("/forget", scope=WRITE)
def forget_about(wellkept: CurrentWellkept, memory: CurrentAgent, body: WhatToForget) -> ForgottenAnswer:
    """Forget what a few words mean, with the turns it came from. If it is not clear which memories are meant, nothing
    is forgotten, and the answer has the candidates, best first."""
    done, now = memory.forget(about=body.about, user=body.user), wellkept.now()
    return ForgottenAnswer(
        forgotten=[MemoryBody.at(each, now) for each in done.forgotten],
        candidates=[MemoryBody.at(each, now) for each in done.candidates],
    )


@describes(model.ChangedMemory)
class ChangedMemoryBody(RecordBody):
    """A memory that a change adds, edits or ends."""


@describes(model.Change)
class ChangeBody(RecordBody):
    """A change of several memories that can be applied and undone as a whole."""


class ChangePage(shapes.Page[ChangeBody]):
    """Changes, newest first."""


class ChangeFilter(shapes.Paging):
    """Filter for changes."""

    state: str = field(ChangeState.PROPOSED.value, enum=[*ChangeState, ANY_STATE])


changes = Router(prefix="/api/agents/{agent}/changes", tags=["changes"])
ChangeId = Annotated[str, Path(description="The id of the change.", examples=["c-1"])]


@changes.get("", scope=READ)
def list_changes(memory: CurrentAgent, filters: Annotated[ChangeFilter, Query()]) -> ChangePage:
    """List what add, logged turns, consolidation and edits of several memories did or propose, newest first."""
    found, cursor = CHANGES.read(partial(memory.changes.list, state=filters.state), filters)
    return ChangePage(items=[ChangeBody.of(each) for each in found], next_cursor=cursor)


@changes.post("/consolidate", queue="upkeep", scope=WRITE)
def consolidate(memory: CurrentAgent) -> ChangePage:
    """Merge near-duplicates and end contradicted facts now, as maintenance does; return the changes made and proposed.
    A configured model is asked for more, which is only proposed."""
    return ChangePage(items=[ChangeBody.of(each) for each in memory.changes.consolidate()])


@changes.get("/{id}", scope=READ)
def get_change(memory: CurrentAgent, id: ChangeId) -> ChangeBody:
    """Return one change, with what each of its memories says and said before."""
    return ChangeBody.of(memory.changes.get(id))


@changes.post("/{id}/apply", scope=ADMIN)
def apply_change(memory: CurrentAgent, id: ChangeId) -> ChangeBody:
    """Carry out a proposed change. 409 if it was decided, or one of its memories was changed since."""
    return ChangeBody.of(memory.changes.apply(id))


@changes.post("/{id}/reject", scope=ADMIN)
def reject_change(memory: CurrentAgent, id: ChangeId) -> ChangeBody:
    """Reject a proposed change. The same is not proposed again until one of its memories changes."""
    return ChangeBody.of(memory.changes.reject(id))


@changes.post("/{id}/undo", scope=WRITE)
def undo_change(memory: CurrentAgent, id: ChangeId) -> ChangeBody:
    """Undo an applied change as a whole. 409 if it is not applied, or one of its memories was changed since."""
    return ChangeBody.of(memory.changes.undo(id))
