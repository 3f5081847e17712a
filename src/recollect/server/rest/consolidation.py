"""Saying once what was said many times: `/api/agents/{agent}/consolidate` and what it proposes."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from recollect.api.agent_details import ANY_STATE
from recollect.model import Kind, Origin, ProposalState
from recollect.server.auth import CurrentAgent
from recollect.server.paging import read_page
from recollect.server.rest import cursor
from recollect.server.rest.bodies import Paging

LISTING = "proposals"

router = APIRouter(prefix="/api/agents/{agent}", tags=["consolidation"])
ProposalId = Annotated[str, Path(description="The proposal's id.", examples=["p-1"])]


class FoldBody(BaseModel):
    """One memory a proposal takes in, and the version it must still have."""

    model_config = ConfigDict(from_attributes=True)

    id: Annotated[str, Field(examples=["m-7"])]
    version: int


class ProposalBody(BaseModel):
    """One memory that could stand for several."""

    model_config = ConfigDict(from_attributes=True)

    id: Annotated[str, Field(examples=["p-1"])]
    kind: Kind
    text: str
    tags: list[str]
    folds: list[FoldBody]
    reason: str
    origin: Annotated[Origin, Field(description="How far it can be trusted: model, or the least trusted it takes in.")]
    state: ProposalState
    memory_id: Annotated[str | None, Field(description="What applying it made.")]
    created_at: datetime
    decided_at: datetime | None


class ProposalPage(BaseModel):
    """Proposals, newest first."""

    items: list[ProposalBody]
    next_cursor: str | None = None


class ProposalFilter(Paging):
    """Which proposals to list."""

    state: Annotated[str, Field(json_schema_extra={"enum": [*ProposalState, ANY_STATE]})] = ProposalState.OPEN.value


@router.post("/consolidate")
def consolidate(memory: CurrentAgent) -> ProposalPage:
    """Look for memories that one could stand for, and answer the new proposals: open, or applied already where the
    settings say so and they are trusted enough."""
    return ProposalPage(items=[ProposalBody.model_validate(each) for each in memory.consolidate()])


@router.get("/proposals")
def list_proposals(memory: CurrentAgent, wanted: Annotated[ProposalFilter, Query()]) -> ProposalPage:
    """What was proposed, newest first."""
    before = cursor.decode(LISTING, wanted.cursor) if wanted.cursor else None
    page = read_page(
        lambda before, limit: memory.proposals(state=wanted.state, before=before, limit=limit),
        attrgetter("id"),
        before,
        limit=wanted.limit,
    )
    items = [ProposalBody.model_validate(each) for each in page.items]
    return ProposalPage(items=items, next_cursor=cursor.encode_next(LISTING, page.end))


@router.post("/proposals/{id}/apply")
def apply_proposal(memory: CurrentAgent, id: ProposalId) -> ProposalBody:
    """Let the proposed memory stand for those it takes in, if they are still as they were. They are kept."""
    return ProposalBody.model_validate(memory.apply_proposal(id))


@router.post("/proposals/{id}/reject")
def reject_proposal(memory: CurrentAgent, id: ProposalId) -> ProposalBody:
    """Leave everything as it is. The same is not proposed again."""
    return ProposalBody.model_validate(memory.reject_proposal(id))


@router.post("/proposals/{id}/undo")
def undo_proposal(memory: CurrentAgent, id: ProposalId) -> ProposalBody:
    """Take an applied proposal back: what it took in is as it was, and what it made is gone."""
    return ProposalBody.model_validate(memory.undo_proposal(id))
