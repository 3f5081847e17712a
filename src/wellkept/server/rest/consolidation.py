"""Consolidation: `/api/agents/{agent}/consolidate` and its proposals."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from wellkept.api.agent_details import ANY_STATE
from wellkept.model import FoldedMemory, Proposal, ProposalState
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import ADMIN, READ, WRITE, Router
from wellkept.server.paging import PagedList, decode_cursor
from wellkept.server.rest.shapes import Page, Paging, RecordBody, describes

LISTING = PagedList[str | None]("proposals", decode_cursor, None)

router = Router(prefix="/api/agents/{agent}", tags=["consolidation"])
ProposalId = Annotated[str, Path(description="The proposal's id.", examples=["p-1"])]


@describes(FoldedMemory)
class FoldBody(RecordBody):
    """A memory that a proposal replaces, and the version it must still have."""


@describes(Proposal)
class ProposalBody(RecordBody):
    """A proposal to replace several memories by one."""


class ProposalPage(Page[ProposalBody]):
    """Proposals, newest first."""


class ProposalFilter(Paging):
    """Filter for proposals."""

    state: Annotated[str, Field(json_schema_extra={"enum": [*ProposalState, ANY_STATE]})] = ProposalState.OPEN.value


@router.post("/consolidate", scope=WRITE)
def consolidate(memory: CurrentAgent) -> ProposalPage:
    """Look for memories that one could replace, and return the new proposals: open, or already applied if the settings
    allow it and they are trusted enough."""
    return ProposalPage(items=[ProposalBody.of(each) for each in memory.consolidate()])


@router.get("/proposals", scope=READ)
def list_proposals(memory: CurrentAgent, filters: Annotated[ProposalFilter, Query()]) -> ProposalPage:
    """List proposals, newest first."""
    listed = partial(memory.proposals, state=filters.state)
    found, cursor = LISTING.read(lambda before, limit: listed(before=before, limit=limit), attrgetter("id"), filters)
    return ProposalPage(items=[ProposalBody.of(each) for each in found], next_cursor=cursor)


@router.post("/proposals/{id}/apply", scope=ADMIN)
def apply_proposal(memory: CurrentAgent, id: ProposalId) -> ProposalBody:
    """Apply a proposal if its memories are unchanged. They are archived, not deleted."""
    return ProposalBody.of(memory.apply_proposal(id))


@router.post("/proposals/{id}/reject", scope=ADMIN)
def reject_proposal(memory: CurrentAgent, id: ProposalId) -> ProposalBody:
    """Reject a proposal. It is not proposed again."""
    return ProposalBody.of(memory.reject_proposal(id))


@router.post("/proposals/{id}/undo", scope=ADMIN)
def undo_proposal(memory: CurrentAgent, id: ProposalId) -> ProposalBody:
    """Undo an applied proposal: restore the memories it replaced and delete the one it created."""
    return ProposalBody.of(memory.undo_proposal(id))
