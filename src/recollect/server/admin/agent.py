"""An agent's memories: looked through, read, edited, approved and deleted."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from recollect.api.agent import ANY_STATE, PAGE
from recollect.errors import Conflict, Invalid, NotFound
from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page, place
from recollect.server.auth import CurrentAgent, CurrentTenant
from recollect.server.paging import fit_page, read_page

router = APIRouter(prefix=f"{PATH}/agents/{{agent}}", include_in_schema=False)
MemoryId = Annotated[str, Path()]


@router.get("")
def list_memories(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    q: Annotated[str, Query()] = "",
    kind: Annotated[str, Query()] = "",
    tag: Annotated[str, Query()] = "",
    state: Annotated[str, Query()] = ANY_STATE,
    before: Annotated[str, Query()] = "",
) -> Response:
    """The newest, in whatever state they are."""
    agent = tenant.get_agent(memory.owner.agent)
    listed = partial(memory.list, kind=kind or None, tag=tag, query=q, state=state or ANY_STATE)
    shown = read_page(
        lambda before, limit: listed(before=before, limit=limit), attrgetter("id"), before or None, limit=PAGE
    )
    return page(
        request,
        "agent.html",
        agent=agent,
        count=tenant.count_memories(agent.id),
        memories=shown.items,
        q=q,
        kind=kind,
        tag=tag,
        state=state,
        before=before,
        older=shown.end or "",
    )


@router.get("/memories/{id}")
def show_memory(request: Request, tenant: CurrentTenant, memory: CurrentAgent, id: MemoryId) -> Response:
    """One memory with all of its fields, what it said before, and what says nearly the same."""
    return _one(request, tenant, memory, id)


@router.post("/memories/{id}")
def edit_memory(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    id: MemoryId,
    text: Annotated[str, Form()] = "",
    tags: Annotated[str, Form()] = "",
    importance: Annotated[float | None, Form()] = None,
    version: Annotated[int | None, Form()] = None,
) -> Response:
    """Changes it; what it said before stays in its history. What cannot be, the form says, and keeps the text."""
    words = [word for each in tags.split(",") if (word := each.strip())]
    try:
        memory.update(id, text=_lines(text), tags=words, importance=importance, version=version)
    except (Invalid, Conflict) as error:
        return _one(request, tenant, memory, id, problem=str(error), text=text, tags=tags)
    return RedirectResponse(place("agents", memory.owner.agent, "memories", id), status_code=303)


@router.get("/memories/{id}/delete")
def ask_to_delete(request: Request, tenant: CurrentTenant, memory: CurrentAgent, id: MemoryId) -> Response:
    """Are you sure?"""
    return page(request, "delete.html", agent=tenant.get_agent(memory.owner.agent), memory=memory.get(id))


@router.post("/memories/{id}/delete")
def delete_memory(memory: CurrentAgent, id: MemoryId) -> Response:
    """Deletes it and its history for good."""
    memory.forget(id)
    return RedirectResponse(place("agents", memory.owner.agent), status_code=303)


@router.post("/memories/{id}/approve")
def approve_memory(memory: CurrentAgent, id: MemoryId) -> Response:
    """Lets a memory that is held, or looks suspicious, into use."""
    memory.approve(id)
    return RedirectResponse(place("agents", memory.owner.agent, "memories", id), status_code=303)


def _one(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    id: str,
    *,
    problem: str = "",
    text: str | None = None,
    tags: str | None = None,
) -> Response:
    record = memory.get(id)
    return page(
        request,
        "memory.html",
        status=400 if problem else 200,
        agent=tenant.get_agent(memory.owner.agent),
        memory=record,
        versions=fit_page(memory.history(id, limit=PAGE)),
        similar=memory.similar(id),
        is_conversation=_is_conversation(memory, record.session_id),
        problem=problem,
        text=record.text if text is None else text,
        tags=", ".join(record.tags) if tags is None else tags,
    )


def _is_conversation(memory: CurrentAgent, id: str | None) -> bool:
    """Whether there is something to read: a memory may name a session that nobody logged, or that was deleted."""
    try:
        return id is not None and memory.session(id) is not None
    except NotFound:
        return False


def _lines(text: str) -> str:
    """Browsers send line ends as a printer would want them."""
    return text.replace("\r\n", "\n")
