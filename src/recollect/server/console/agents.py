"""Agents and their memories: the overview of the tenant, and pages to read, edit, approve, restore and delete them."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from fastapi import Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from recollect.api.agent import ANY_STATE, PAGE
from recollect.errors import Conflict, Invalid, NotFound
from recollect.policy.filters.language import parse_filter
from recollect.server.console.pages import page, page_router, place
from recollect.server.http.auth import CurrentAgent, CurrentRecollect, CurrentTenant
from recollect.server.http.routing import ADMIN, READ, WRITE
from recollect.server.paging import READ_LARGE_AT_ONCE, fit_page, read_page
from recollect.server.rest.health import find_problems

AGENTS = 50

router = page_router()


@router.get("", scope=READ)
def show_overview(
    request: Request, recollect: CurrentRecollect, tenant: CurrentTenant, after: Annotated[str, Query()] = ""
) -> Response:
    """Show agents by id, with the number of memories of each kind, and problems of the store."""
    found = read_page(
        lambda after, limit: tenant.list_agents(after=after, limit=limit),
        attrgetter("id"),
        after,
        limit=AGENTS,
        at_once=READ_LARGE_AT_ONCE,
    )
    return page(
        request,
        "overview.html",
        tenant=tenant.id,
        agents=found.items,
        counts=tenant.count_memories_by_agent([agent.id for agent in found.items]),
        more=found.end or "",
        is_first=not after,
        problems=find_problems(recollect, tenant),
        maintenance=recollect.maintenance.refresh(),
    )


MemoryId = Annotated[str, Path()]


@router.get("/agents/{agent}", scope=READ)
def list_memories(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    q: Annotated[str, Query()] = "",
    kind: Annotated[str, Query()] = "",
    tag: Annotated[str, Query()] = "",
    where: Annotated[str, Query()] = "",
    state: Annotated[str, Query()] = ANY_STATE,
    before: Annotated[str, Query()] = "",
) -> Response:
    """Show the newest memories, in any state."""
    agent = tenant.get_agent(memory.owner.agent)
    chosen: dict[str, Any] = {"kind": kind or None, "state": state or ANY_STATE}
    listed, problem = partial(memory.list, tag=tag, query=q, **chosen), ""
    try:
        condition = parse_filter(where)
    except Invalid as error:
        condition, problem = None, str(error)
    found = read_page(
        lambda before, limit: listed(where=condition, before=before, limit=limit),
        attrgetter("id"),
        before or None,
        limit=PAGE,
    )
    return page(
        request,
        "agent.html",
        agent=agent,
        count=tenant.count_memories(agent.id),
        memories=found.items,
        q=q,
        kind=kind,
        tag=tag,
        where=where,
        problem=problem,
        state=state,
        before=before,
        older=found.end or "",
    )


@router.get("/agents/{agent}/memories/{id}", scope=READ)
def show_memory(request: Request, tenant: CurrentTenant, memory: CurrentAgent, id: MemoryId) -> Response:
    """Show a memory with all of its fields, its previous versions and similar memories."""
    return _memory_page(request, tenant, memory, id)


@router.post("/agents/{agent}/memories/{id}", scope=WRITE)
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
    """Edit a memory; the form shows a refusal and keeps the text."""
    words = [word for each in tags.split(",") if (word := each.strip())]
    try:
        memory.update(id, text=_lines(text), tags=words, importance=importance, version=version)
    except (Invalid, Conflict) as error:
        return _memory_page(request, tenant, memory, id, problem=str(error), text=text, tags=tags)
    return RedirectResponse(place("agents", memory.owner.agent, "memories", id), status_code=303)


@router.get("/agents/{agent}/memories/{id}/delete", scope=WRITE)
def ask_to_delete(request: Request, tenant: CurrentTenant, memory: CurrentAgent, id: MemoryId) -> Response:
    """Ask for confirmation."""
    return page(request, "delete.html", agent=tenant.get_agent(memory.owner.agent), memory=memory.get(id))


@router.post("/agents/{agent}/memories/{id}/delete", scope=WRITE)
def delete_memory(memory: CurrentAgent, id: MemoryId) -> Response:
    """Delete a memory and its history permanently."""
    memory.forget(id)
    return RedirectResponse(place("agents", memory.owner.agent), status_code=303)


@router.post("/agents/{agent}/memories/{id}/approve", scope=ADMIN)
def approve_memory(memory: CurrentAgent, id: MemoryId) -> Response:
    """Approve a memory that is held or flagged."""
    memory.approve(id)
    return RedirectResponse(place("agents", memory.owner.agent, "memories", id), status_code=303)


@router.post("/agents/{agent}/memories/{id}/restore", scope=WRITE)
def restore_memory(request: Request, tenant: CurrentTenant, memory: CurrentAgent, id: MemoryId) -> Response:
    """Make an archived or expired memory live again."""
    try:
        memory.restore(id)
    except Conflict as error:
        return _memory_page(request, tenant, memory, id, problem=str(error))
    return RedirectResponse(place("agents", memory.owner.agent, "memories", id), status_code=303)


def _memory_page(
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
    """Return True if the session exists: a memory may name one that was never logged, or was deleted."""
    try:
        return id is not None and memory.session(id) is not None
    except NotFound:
        return False


def _lines(text: str) -> str:
    """Convert the line ends of browsers (CR LF)."""
    return text.replace("\r\n", "\n")
