"""Saying once what was said many times: what is proposed, and a person's word on it."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from recollect.api.agent_details import ANY_STATE, PAGE
from recollect.model import ProposalState
from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page, place
from recollect.server.auth import CurrentAgent, CurrentTenant
from recollect.server.paging import read_page

router = APIRouter(prefix=f"{PATH}/agents/{{agent}}/proposals", include_in_schema=False)
ProposalId = Annotated[str, Path()]


@router.get("")
def list_proposals(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    state: Annotated[str, Query()] = ProposalState.OPEN.value,
    before: Annotated[str, Query()] = "",
) -> Response:
    """Newest first, each beside the memories it takes in."""
    agent = tenant.get_agent(memory.owner.agent)
    shown = read_page(
        lambda before, limit: memory.proposals(state=state or ANY_STATE, before=before, limit=limit),
        attrgetter("id"),
        before or None,
        limit=PAGE,
    )
    return page(
        request,
        "proposals.html",
        agent=agent,
        proposals=shown.items,
        state=state,
        choices=[*ProposalState, ANY_STATE],
        older=shown.end or "",
    )


@router.post("")
def consolidate(memory: CurrentAgent, tenant: CurrentTenant) -> Response:
    """Looks for more."""
    tenant.get_agent(memory.owner.agent)
    memory.consolidate()
    return _back(memory, ANY_STATE)


@router.post("/{id}/apply")
def apply_proposal(memory: CurrentAgent, id: ProposalId) -> Response:
    """Lets the proposed memory stand for those it takes in."""
    memory.apply_proposal(id)
    return _back(memory, ProposalState.APPLIED)


@router.post("/{id}/reject")
def reject_proposal(memory: CurrentAgent, id: ProposalId) -> Response:
    """Leaves everything as it is."""
    memory.reject_proposal(id)
    return _back(memory, ProposalState.OPEN)


@router.post("/{id}/undo")
def undo_proposal(memory: CurrentAgent, id: ProposalId) -> Response:
    """Takes an applied one back."""
    memory.undo_proposal(id)
    return _back(memory, ProposalState.UNDONE)


def _back(memory: CurrentAgent, state: str) -> Response:
    return RedirectResponse(place("agents", memory.owner.agent, "proposals", state=state), status_code=303)
