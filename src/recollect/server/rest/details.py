"""Big texts that prompts only refer to: `/api/agents/{agent}/details`."""

from __future__ import annotations

from functools import partial
from operator import attrgetter, itemgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query

from recollect.api.recollect import AgentMemory
from recollect.server.auth import CurrentAgent
from recollect.server.paging import read_page
from recollect.server.rest import cursor
from recollect.server.rest.detail_shapes import (
    DetailBody,
    DetailFilter,
    DetailList,
    DetailPatch,
    NewDetail,
    PartBody,
    PartWanted,
)

LISTING = "details"
SEARCH = "found details"

router = APIRouter(prefix="/api/agents/{agent}/details", tags=["details"])
Key = Annotated[str, Path(description="The detail's key.", examples=["npm-install-x7k2m9qp"])]


@router.post("", status_code=201)
def store_detail(memory: CurrentAgent, body: NewDetail) -> DetailBody:
    """Keep a big text. When this answers, it is on disk. The text is kept as it is; what is said about it loses
    whatever looks like a credential."""
    stored = memory.store_detail(
        body.content,
        description=body.description,
        type=body.type,
        session_id=body.session_id,
        metadata=body.metadata,
    )
    return DetailBody.of(stored)


@router.get("")
def list_details(memory: CurrentAgent, wanted: Annotated[DetailFilter, Query()]) -> DetailList:
    """Details, newest first; with `q`, those that have most of its words first."""
    if wanted.q.strip():
        return _found(memory, wanted)
    page = read_page(
        lambda before, limit: memory.list_details(session_id=wanted.session_id, before=before, limit=limit),
        attrgetter("created_at", "key"),
        cursor.decode_place(LISTING, wanted.cursor) if wanted.cursor else None,
        limit=wanted.limit,
    )
    return DetailList(
        items=[DetailBody.of(each) for each in page.items], next_cursor=cursor.encode_next(LISTING, page.end)
    )


def _found(memory: AgentMemory, wanted: DetailFilter) -> DetailList:
    """A page of a search; the cursor counts what was shown."""
    search = partial(memory.search_details, wanted.q, session_id=wanted.session_id)
    page = read_page(
        lambda start, limit: enumerate(search(offset=start, limit=limit), start + 1),
        itemgetter(0),
        cursor.decode_number(SEARCH, wanted.cursor) if wanted.cursor else 0,
        limit=wanted.limit,
    )
    return DetailList(
        items=[DetailBody.of(each) for _, each in page.items], next_cursor=cursor.encode_next(SEARCH, page.end)
    )


@router.get("/{key}")
def read_detail(memory: CurrentAgent, key: Key, wanted: Annotated[PartWanted, Query()]) -> PartBody:
    """A part of a big text: a page of characters, lines, the head, the tail, matches or values of its JSON."""
    page = memory.read_detail(
        key,
        offset=wanted.offset,
        limit=wanted.limit,
        lines=wanted.lines,
        head=wanted.head,
        tail=wanted.tail,
        grep=wanted.grep,
        context=wanted.context,
        json_path=wanted.json_path,
    )
    return PartBody.of(page)


@router.patch("/{key}")
def hide_detail(memory: CurrentAgent, key: Key, body: DetailPatch) -> DetailBody:
    """Hide a big text, which is then kept but neither found nor read, or show it again."""
    if "is_active" not in body.model_fields_set:
        return DetailBody.of(memory.get_detail(key))
    return DetailBody.of(memory.hide_detail(key, is_hidden=not body.is_active))


@router.delete("/{key}", status_code=204)
def delete_detail(memory: CurrentAgent, key: Key) -> None:
    """Delete a big text for good."""
    memory.delete_detail(key)
