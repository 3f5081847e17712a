"""Actions on several memories at once, after a preview."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Form, Request
from fastapi.responses import Response

from wellkept.access.rules_keys import is_allowed
from wellkept.errors import Forbidden, Invalid, NotFound, WellkeptError
from wellkept.model import Change, KeyScope, Memory, State
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.http.auth import CurrentAgent, CurrentTenant
from wellkept.server.http.routing import WRITE, is_console

MAX_SELECTED = 120

router = page_router("/agents/{agent}/bulk")


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForm:
    """Fields of the forms: the selected memories, what to do with them, and where to go back to."""

    id: Annotated[list[str] | None, Form()] = None
    action: Annotated[str, Form()] = ""
    value: Annotated[str, Form()] = ""
    back: Annotated[str, Form()] = ""


SentForm = Annotated[BulkForm, Depends()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action: its words, how it is done, and a reason why a memory is left out."""

    label: str
    done: str
    run: Callable[[CurrentAgent, Memory, str], object]
    refuse: Callable[[Memory, State, str], str]
    needs_tag: bool = False
    can_be_undone: bool = True


ACTIONS: Mapping[str, Action] = {
    "tag": Action(
        label="Add the tag",
        done="tagged",
        needs_tag=True,
        run=lambda agent, each, tag: agent.update(each.id, tags=[*each.tags, tag], version=each.version),
        refuse=lambda each, state, tag: "it has this tag" if tag in each.tags else "",
    ),
    "untag": Action(
        label="Remove the tag",
        done="changed",
        needs_tag=True,
        run=lambda agent, each, tag: agent.update(
            each.id, tags=[kept for kept in each.tags if kept != tag], version=each.version
        ),
        refuse=lambda each, state, tag: "" if tag in each.tags else "it has no such tag",
    ),
    "restore": Action(
        label="Restore",
        done="restored",
        run=lambda agent, each, tag: agent.restore(each.id),
        refuse=lambda each, state, tag: "" if state in (State.ARCHIVED, State.EXPIRED) else f"it is {state.value}",
    ),
    "approve": Action(
        label="Approve",
        done="approved",
        run=lambda agent, each, tag: agent.review.approve(each.id),
        refuse=lambda each, state, tag: "" if each.flag or each.held_at else "it does not wait for a review",
    ),
    "delete": Action(
        label="Delete",
        done="deleted",
        run=lambda agent, each, tag: agent.forget(each.id),
        can_be_undone=False,
        refuse=lambda each, state, tag: "" if each.item_key is None else "an item; delete it under its key",
    ),
}


@router.post("", scope=WRITE)
def preview_action(request: Request, tenant: CurrentTenant, memory: CurrentAgent, form: SentForm) -> Response:
    """Show what an action would do."""
    action, tag, problem = _find_action(request, form), form.value.strip(), ""
    selected, now = _select(memory, form.id or []), request.app.state.wellkept.now()
    if not selected:
        problem = "Nothing is selected. Check the boxes of the memories first."
    elif action.needs_tag and not tag:
        problem = "Enter a tag beside the action."
    rows = [(each, action.refuse(each, each.state(now), tag)) for each in selected]
    return _page(request, tenant, memory, form, action, rows=rows, problem=problem)


@router.post("/run", scope=WRITE)
def run_action(request: Request, tenant: CurrentTenant, memory: CurrentAgent, form: SentForm) -> Response:
    """Do it to all of them as one change, which can be undone, or to none."""
    action, tag, selected = _find_action(request, form), form.value.strip(), _select(memory, form.id or [])
    if not action.can_be_undone:
        for each in selected:
            action.run(memory, each, tag)
        return _page(request, tenant, memory, form, action, done=len(selected))
    reason = f"{action.label}{f' {tag}' if action.needs_tag else ''}."
    try:
        changes = memory.changes.edit(
            [each.id for each in selected], lambda each: action.run(memory, each, tag), reason=reason
        )
    except WellkeptError as error:
        return _page(request, tenant, memory, form, action, done=0, problem=f"Nothing was changed: {error}")
    return _page(request, tenant, memory, form, action, done=len(selected), changes=changes)


def _page(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    form: BulkForm,
    action: Action,
    *,
    rows: Sequence[tuple[Memory, str]] = (),
    done: int | None = None,
    changes: Sequence[Change] = (),
    problem: str = "",
) -> Response:
    is_ours = is_console(form.back.partition("?")[0])
    return page(
        request,
        "bulk.html",
        status=400 if problem else 200,
        agent=tenant.agents.get(memory.owner.agent),
        name=form.action,
        action=action,
        value=form.value.strip() if action.needs_tag else "",
        rows=rows,
        ready=[each for each, refused in rows if not refused],
        done=done,
        changes=changes,
        back=form.back if is_ours else place("agents", memory.owner.agent),
        problem=problem,
    )


def _find_action(request: Request, form: BulkForm) -> Action:
    """Raises: Invalid, Forbidden."""
    if form.action not in ACTIONS:
        raise Invalid(f"There is no such action; choose {', '.join(ACTIONS)}.")
    if form.action == "approve" and not is_allowed(request.state.access.scope, KeyScope.ADMIN):
        raise Forbidden("Approving takes a key of the scope admin.")
    return ACTIONS[form.action]


def _select(memory: CurrentAgent, ids: Sequence[str]) -> list[Memory]:
    """Return the memories that still exist."""
    found = []
    for id in ids[:MAX_SELECTED]:
        try:
            found.append(memory.get(id))
        except NotFound:
            continue
    return found
