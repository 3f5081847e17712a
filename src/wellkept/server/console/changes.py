"""Changes of several memories, and the decisions on them."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from wellkept.api.agent import ANY_STATE, PAGE
from wellkept.model import ChangeState
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.http.auth import CurrentAgent, CurrentTenant
from wellkept.server.http.routing import ADMIN, READ, WRITE
from wellkept.server.paging import read_page

router = page_router("/agents/{agent}/changes")
ChangeId = Annotated[str, Path()]


@router.get("", scope=READ)
def list_changes(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    state: Annotated[str, Query()] = ChangeState.PROPOSED.value,
    before: Annotated[str, Query()] = "",
) -> Response:
    """Show changes, newest first, with what they do to each memory."""
    agent = tenant.agents.get(memory.owner.agent)
    listed = read_page(
        lambda before, limit: memory.changes.list(state=state or ANY_STATE, before=before, limit=limit),
        attrgetter("id"),
        before or None,
        limit=PAGE,
    )
    return page(
        request,
        "changes.html",
        agent=agent,
        changes=listed.items,
        state=state,
        choices=[*ChangeState, ANY_STATE],
        older=listed.end or "",
    )


@router.post("", queue="upkeep", scope=WRITE)
def consolidate(memory: CurrentAgent, tenant: CurrentTenant) -> Response:
    """Consolidate now."""
    tenant.agents.get(memory.owner.agent)
    memory.changes.consolidate()
    return _back(memory, ANY_STATE)


@router.post("/{id}/apply", scope=ADMIN)
def apply_change(memory: CurrentAgent, id: ChangeId) -> Response:
    """Apply a proposed change."""
    memory.changes.apply(id)
    return _back(memory, ChangeState.APPLIED)


@router.post("/{id}/reject", scope=ADMIN)
def reject_change(memory: CurrentAgent, id: ChangeId) -> Response:
    """Reject a proposed change."""
    memory.changes.reject(id)
    return _back(memory, ChangeState.PROPOSED)


@router.post("/{id}/undo", scope=ADMIN)
def undo_change(memory: CurrentAgent, id: ChangeId) -> Response:
    """Undo an applied change."""
    memory.changes.undo(id)
    return _back(memory, ChangeState.UNDONE)


def _back(memory: CurrentAgent, state: str) -> Response:
    return RedirectResponse(place("agents", memory.owner.agent, "changes", state=state), status_code=303)
