"""Changes of several memories: actions on selected ones after a preview, and decisions on what is proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Annotated

from fastapi import Depends, Form, Path, Query
from fastapi.responses import Response

from wellkept.access.rules_keys import is_allowed
from wellkept.api.views import ANY_STATE, PAGE
from wellkept.errors import Forbidden, Invalid, NotFound, WellkeptError
from wellkept.model import Change, ChangeState, KeyScope, Memory, State
from wellkept.server.console.pages import AtAgent, page_router, place
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import ADMIN, READ, WRITE, is_console
from wellkept.server.paging import read_page

MAX_SELECTED = 120

router = page_router("/agents/{agent}")


class Decision(StrEnum):
    """A decision on a change."""

    APPLY = "apply"
    REJECT = "reject"
    UNDO = "undo"


@router.get("/changes", scope=READ)
def list_changes(
    visit: AtAgent, state: Annotated[str, Query()] = ChangeState.PROPOSED.value, before: Annotated[str, Query()] = ""
) -> Response:
    """Show changes, newest first, with what they do to each memory."""
    listed = read_page(
        lambda before, limit: visit.memory.changes.list(state=state or ANY_STATE, before=before, limit=limit),
        attrgetter("id"),
        before or None,
        limit=PAGE,
    )
    return visit.page(
        "changes.html", changes=listed.items, state=state, choices=[*ChangeState, ANY_STATE], older=listed.end or ""
    )


@router.post("/changes", queue="upkeep", scope=WRITE)
def consolidate(visit: AtAgent) -> Response:
    """Consolidate now."""
    visit.tenant.agents.get(visit.id)
    visit.memory.changes.consolidate()
    return visit.go("changes", state=ANY_STATE)


@router.post("/changes/{id}/{decision}", scope=ADMIN)
def decide(visit: AtAgent, id: Annotated[str, Path()], decision: Annotated[Decision, Path()]) -> Response:
    """Apply or reject a proposed change, or undo an applied one."""
    known = visit.memory.changes
    decided = {Decision.APPLY: known.apply, Decision.REJECT: known.reject, Decision.UNDO: known.undo}[decision](id)
    return visit.go("changes", state=ChangeState.PROPOSED if decision is Decision.REJECT else decided.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForm:
    """Fields of the forms: the selected memories, what to do with them, and where to go back to."""

    id: Annotated[list[str] | None, Form()] = None
    action: Annotated[str, Form()] = ""
    value: Annotated[str, Form()] = ""
    back: Annotated[str, Form()] = ""


SentForm = Annotated[BulkForm, Depends()]


@dataclass(frozen=True, slots=True)
class Action:
    """An action on several memories, in words."""

    label: str
    done: str
    needs_tag: bool = False
    can_be_undone: bool = True


ACTIONS: Mapping[str, Action] = {
    "tag": Action("Add the tag", "tagged", needs_tag=True),
    "untag": Action("Remove the tag", "changed", needs_tag=True),
    "restore": Action("Restore", "restored"),
    "approve": Action("Approve", "approved"),
    "delete": Action("Delete", "deleted", can_be_undone=False),
}


def _refuse(action: str, memory: Memory, state: State, tag: str) -> str:
    """Return the reason why a memory is left out; empty if it is not."""
    match action:
        case "tag":
            return "it has this tag" if tag in memory.tags else ""
        case "untag":
            return "" if tag in memory.tags else "it has no such tag"
        case "restore":
            return "" if state in (State.ARCHIVED, State.EXPIRED) else f"it is {state.value}"
        case "approve":
            return "" if memory.flag or memory.held_at else "it does not wait for a review"
    return "" if memory.item_key is None else "an item; delete it under its key"


def _do(action: str, agent: CurrentAgent, memory: Memory, tag: str) -> None:
    match action:
        case "tag":
            agent.update(memory.id, tags=[*memory.tags, tag], version=memory.version)
        case "untag":
            agent.update(memory.id, tags=[each for each in memory.tags if each != tag], version=memory.version)
        case "restore":
            agent.restore(memory.id)
        case "approve":
            agent.review.approve(memory.id)
        case "delete":
            agent.forget(memory.id)


@router.post("/bulk", scope=WRITE)
def preview_action(visit: AtAgent, form: SentForm) -> Response:
    """Show what an action would do."""
    action, tag, problem = _find_action(visit, form), form.value.strip(), ""
    selected, now = _select(visit, form.id or []), visit.wellkept.now()
    if not selected:
        problem = "Nothing is selected. Check the boxes of the memories first."
    elif action.needs_tag and not tag:
        problem = "Enter a tag beside the action."
    rows = [(each, _refuse(form.action, each, each.state(now), tag)) for each in selected]
    return _page(visit, form, action, rows=rows, problem=problem)


@router.post("/bulk/run", scope=WRITE)
def run_action(visit: AtAgent, form: SentForm) -> Response:
    """Do it to all of them as one change, which can be undone, or to none."""
    action, tag, selected = _find_action(visit, form), form.value.strip(), _select(visit, form.id or [])
    if not action.can_be_undone:
        for each in selected:
            _do(form.action, visit.memory, each, tag)
        return _page(visit, form, action, done=len(selected))
    reason = f"{action.label}{f' {tag}' if action.needs_tag else ''}."
    try:
        changes = visit.memory.changes.edit(
            [each.id for each in selected], lambda each: _do(form.action, visit.memory, each, tag), reason=reason
        )
    except WellkeptError as error:
        return _page(visit, form, action, done=0, problem=f"Nothing was changed: {error}")
    return _page(visit, form, action, done=len(selected), changes=changes)


def _page(
    visit: AtAgent,
    form: BulkForm,
    action: Action,
    *,
    rows: Sequence[tuple[Memory, str]] = (),
    done: int | None = None,
    changes: Sequence[Change] = (),
    problem: str = "",
) -> Response:
    is_ours = is_console(form.back.partition("?")[0])
    return visit.page(
        "bulk.html",
        name=form.action,
        action=action,
        value=form.value.strip() if action.needs_tag else "",
        rows=rows,
        ready=[each for each, refused in rows if not refused],
        done=done,
        changes=changes,
        back=form.back if is_ours else place("agents", visit.id),
        problem=problem,
    )


def _find_action(visit: AtAgent, form: BulkForm) -> Action:
    """Raises: Invalid, Forbidden."""
    if form.action not in ACTIONS:
        raise Invalid(f"There is no such action; choose {', '.join(ACTIONS)}.")
    if form.action == "approve" and not is_allowed(visit.access.scope, KeyScope.ADMIN):
        raise Forbidden("Approving takes a key of the scope admin.")
    return ACTIONS[form.action]


def _select(visit: AtAgent, ids: Sequence[str]) -> list[Memory]:
    """Return the memories that still exist."""
    found = []
    for id in ids[:MAX_SELECTED]:
        try:
            found.append(visit.memory.get(id))
        except NotFound:
            continue
    return found
