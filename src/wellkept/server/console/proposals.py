"""Proposals of consolidation, and the decisions on them."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from wellkept.api.agent_details import ANY_STATE, PAGE
from wellkept.errors import NotFound
from wellkept.model import ProposalState
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.http.auth import CurrentAgent, CurrentTenant
from wellkept.server.http.routing import ADMIN, READ, WRITE
from wellkept.server.paging import read_page

router = page_router("/agents/{agent}/proposals")
ProposalId = Annotated[str, Path()]


@router.get("", scope=READ)
def list_proposals(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    state: Annotated[str, Query()] = ProposalState.OPEN.value,
    before: Annotated[str, Query()] = "",
) -> Response:
    """Show proposals, newest first, with the memories they replace."""
    agent = tenant.agents.get(memory.owner.agent)
    listed = read_page(
        lambda before, limit: memory.proposals(state=state or ANY_STATE, before=before, limit=limit),
        attrgetter("id"),
        before or None,
        limit=PAGE,
    )
    return page(
        request,
        "proposals.html",
        agent=agent,
        proposals=[(each, [_find_text(memory, fold.id) for fold in each.folds]) for each in listed.items],
        state=state,
        choices=[*ProposalState, ANY_STATE],
        older=listed.end or "",
    )


def _find_text(memory: CurrentAgent, id: str) -> tuple[str, str]:
    """Return the id and the text of a memory; the text is empty if it was deleted."""
    try:
        return id, memory.get(id).text
    except NotFound:
        return id, ""


@router.post("", scope=WRITE)
def consolidate(memory: CurrentAgent, tenant: CurrentTenant) -> Response:
    """Look for more proposals."""
    tenant.agents.get(memory.owner.agent)
    memory.consolidate()
    return _back(memory, ANY_STATE)


@router.post("/{id}/apply", scope=ADMIN)
def apply_proposal(memory: CurrentAgent, id: ProposalId) -> Response:
    """Apply a proposal."""
    memory.apply_proposal(id)
    return _back(memory, ProposalState.APPLIED)


@router.post("/{id}/reject", scope=ADMIN)
def reject_proposal(memory: CurrentAgent, id: ProposalId) -> Response:
    """Reject a proposal."""
    memory.reject_proposal(id)
    return _back(memory, ProposalState.OPEN)


@router.post("/{id}/undo", scope=ADMIN)
def undo_proposal(memory: CurrentAgent, id: ProposalId) -> Response:
    """Undo an applied proposal."""
    memory.undo_proposal(id)
    return _back(memory, ProposalState.UNDONE)


def _back(memory: CurrentAgent, state: str) -> Response:
    return RedirectResponse(place("agents", memory.owner.agent, "proposals", state=state), status_code=303)
