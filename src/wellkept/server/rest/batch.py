"""Many memories in one request: `/api/agents/{agent}/memories/batch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, SkipValidation, Strict, ValidationError

from wellkept.api.wellkept import AgentMemory
from wellkept.errors import Conflict, Forbidden, Invalid, NotFound, WellkeptError
from wellkept.server.http.auth import CurrentAgent, CurrentWellkept
from wellkept.server.http.errors import describe_problems, located
from wellkept.server.http.routing import WRITE, Router
from wellkept.server.rest.memories import MemoryBody, NewMemory, draft_fields
from wellkept.server.rest.shapes import ErrorBody, RequestBody

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


router = Router(prefix="/api/agents/{agent}", tags=["memories"])


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
