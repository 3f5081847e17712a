"""Changes: `/api/agents/{agent}/changes`, and deciding on them."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from wellkept.api.agent import ANY_STATE
from wellkept.model import Change, ChangedMemory, ChangeState
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import ADMIN, READ, WRITE, Router
from wellkept.server.paging import PagedList, decode_cursor
from wellkept.server.rest.shapes import Page, Paging, RecordBody, describes

LISTING = PagedList[str | None]("changes", decode_cursor, attrgetter("id"), None, direction="before")

router = Router(prefix="/api/agents/{agent}/changes", tags=["changes"])
ChangeId = Annotated[str, Path(description="The id of the change.", examples=["c-1"])]


@describes(ChangedMemory)
class ChangedMemoryBody(RecordBody):
    """A memory that a change adds, edits or ends."""


@describes(Change)
class ChangeBody(RecordBody):
    """A change of several memories that can be applied and undone as a whole."""


class ChangePage(Page[ChangeBody]):
    """Changes, newest first."""


class ChangeFilter(Paging):
    """Filter for changes."""

    state: Annotated[str, Field(json_schema_extra={"enum": [*ChangeState, ANY_STATE]})] = ChangeState.PROPOSED.value


@router.get("", scope=READ)
def list_changes(memory: CurrentAgent, filters: Annotated[ChangeFilter, Query()]) -> ChangePage:
    """List what add, logged turns, consolidation and edits of several memories did or propose, newest first."""
    found, cursor = LISTING.read(partial(memory.changes.list, state=filters.state), filters)
    return ChangePage(items=[ChangeBody.of(each) for each in found], next_cursor=cursor)


@router.post("/consolidate", queue="upkeep", scope=WRITE)
def consolidate(memory: CurrentAgent) -> ChangePage:
    """Merge near-duplicates and end contradicted facts now, as maintenance does; return the changes made and proposed.
    A configured model is asked for more, which is only proposed."""
    return ChangePage(items=[ChangeBody.of(each) for each in memory.changes.consolidate()])


@router.get("/{id}", scope=READ)
def get_change(memory: CurrentAgent, id: ChangeId) -> ChangeBody:
    """Return one change, with what each of its memories says and said before."""
    return ChangeBody.of(memory.changes.get(id))


@router.post("/{id}/apply", scope=ADMIN)
def apply_change(memory: CurrentAgent, id: ChangeId) -> ChangeBody:
    """Carry out a proposed change. 409 if it was decided, or one of its memories was changed since."""
    return ChangeBody.of(memory.changes.apply(id))


@router.post("/{id}/reject", scope=ADMIN)
def reject_change(memory: CurrentAgent, id: ChangeId) -> ChangeBody:
    """Reject a proposed change. The same is not proposed again until one of its memories changes."""
    return ChangeBody.of(memory.changes.reject(id))


@router.post("/{id}/undo", scope=WRITE)
def undo_change(memory: CurrentAgent, id: ChangeId) -> ChangeBody:
    """Undo an applied change as a whole. 409 if it is not applied, or one of its memories was changed since."""
    return ChangeBody.of(memory.changes.undo(id))
