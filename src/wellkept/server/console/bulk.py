"""Actions on several memories at once: a preview, the action, and its undo.

Nothing is kept between the requests: the page that reports an action holds what its undo needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Form, Request
from fastapi.responses import Response
from pydantic_core import to_json

from wellkept.access.rules_keys import is_allowed
from wellkept.errors import Forbidden, Invalid, NotFound, WellkeptError
from wellkept.model import KeyScope, Memory, State
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.http.auth import CurrentAgent, CurrentTenant
from wellkept.server.http.routing import WRITE, is_console

MAX_SELECTED = 120
MAX_UNDO_BYTES = 60_000
"""Size of what an undo needs; the page that holds it stays below 100 kB."""

COPIED = """text kind tags scope role session_id importance category origin created_at expires_at valid_from user
    metadata""".split()
"""Fields that a memory keeps when it is stored again."""

TIMES = ("created_at", "expires_at", "valid_from")
NO_UNDO = "This is no undo of the console; open the page that offered it again."
NO_ITEM = "an item; delete it under its key"

router = page_router("/agents/{agent}/bulk")


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForm:
    """Fields of the forms: the selected memories, what to do with them, and where to go back to."""

    id: Annotated[list[str] | None, Form()] = None
    action: Annotated[str, Form()] = ""
    value: Annotated[str, Form()] = ""
    back: Annotated[str, Form()] = ""
    undo: Annotated[str, Form()] = ""


SentForm = Annotated[BulkForm, Depends()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action: its words, its value, and a reason why a memory is left out."""

    label: str
    done: str
    needs: str = ""  # name of the value it needs
    undo: str = ""  # what an undo does; empty: it cannot be undone
    refuse: Callable[[Memory, State, str], str] = lambda memory, state, value: ""


def _refuse_item(memory: Memory, state: State, value: str) -> str:
    return NO_ITEM if memory.item_key is not None else ""


ACTIONS: Mapping[str, Action] = {
    "tag": Action(
        label="Add the tag",
        done="tagged",
        needs="a tag",
        undo="gives back the former tags",
        refuse=lambda memory, state, value: "it has this tag" if value in memory.tags else "",
    ),
    "untag": Action(
        label="Remove the tag",
        done="changed",
        needs="a tag",
        undo="gives back the former tags",
        refuse=lambda memory, state, value: "" if value in memory.tags else "it has no such tag",
    ),
    "restore": Action(
        label="Restore",
        done="restored",
        undo="archives them again",
        refuse=lambda memory, state, value: "" if state in (State.ARCHIVED, State.EXPIRED) else f"it is {state.value}",
    ),
    "approve": Action(
        label="Approve",
        done="approved",
        undo="holds them for review again; what they corrected stays corrected",
        refuse=lambda memory, state, value: "" if memory.flag or memory.held_at else "it does not wait for a review",
    ),
    "move": Action(
        label="Move to",
        done="moved",
        needs="the id of an agent",
        undo="moves them back, under new ids",
        refuse=_refuse_item,
    ),
    "delete": Action(
        label="Delete",
        done="deleted",
        undo="stores them again, under new ids and without their history",
        refuse=_refuse_item,
    ),
}


@router.post("", scope=WRITE)
def preview_action(request: Request, tenant: CurrentTenant, memory: CurrentAgent, form: SentForm) -> Response:
    """Show what an action would do."""
    chosen, value = _find_action(request, form.action), form.value.strip()
    selected, now = _select(memory, form.id or []), request.app.state.wellkept.now()
    problem = ""
    if not selected:
        problem = "Nothing is selected. Check the boxes of the memories first."
    elif chosen.needs and not value:
        problem = f"Enter {chosen.needs} beside the action."
    elif form.action == "move":
        value = tenant.get_agent(value).id
    rows = [(each, chosen.refuse(each, each.state(now), value)) for each in selected]
    return page(
        request,
        "bulk.html",
        status=400 if problem else 200,
        agent=tenant.get_agent(memory.owner.agent),
        name=form.action,
        action=chosen,
        value=value,
        rows=rows,
        ready=[each for each, refused in rows if not refused],
        back=_check_back(memory, form.back),
        problem=problem,
    )


@router.post("/run", scope=WRITE)
def run_action(request: Request, tenant: CurrentTenant, memory: CurrentAgent, form: SentForm) -> Response:
    """Do it to each memory and report what was refused."""
    chosen, value, refused, undo = _find_action(request, form.action), form.value.strip(), [], []
    for each in _select(memory, form.id or []):
        try:
            undo.append(_apply(tenant, memory, form.action, value, each))
        except WellkeptError as error:
            refused.append((each.id, str(error)))
    packed = to_json(undo).decode() if chosen.undo and undo else ""
    kept = packed if len(packed) <= MAX_UNDO_BYTES else ""
    return _report(request, tenant, memory, form, chosen, done=len(undo), refused=refused, undo=kept)


@router.post("/undo", scope=WRITE)
def undo_action(request: Request, tenant: CurrentTenant, memory: CurrentAgent, form: SentForm) -> Response:
    """Undo an action, as far as its report says."""
    _find_action(request, form.action)
    steps, refused = _parse_undo(form.undo), []
    for each in steps:
        try:
            _revert(tenant, memory, form.action, form.value.strip(), each)
        except WellkeptError as error:
            refused.append((str(each.get("id", "")), str(error)))
        except (TypeError, ValueError):
            # Somebody changed the form.
            refused.append((str(each.get("id", "")), NO_UNDO))
    done = Action(label="Undo", done="brought back")
    return _report(request, tenant, memory, form, done, done=len(steps) - len(refused), refused=refused)


def _report(
    request: Request,
    tenant: CurrentTenant,
    memory: CurrentAgent,
    form: BulkForm,
    action: Action,
    *,
    done: int,
    refused: Sequence[tuple[str, str]],
    undo: str = "",
) -> Response:
    return page(
        request,
        "bulk_done.html",
        agent=tenant.get_agent(memory.owner.agent),
        name=form.action,
        action=action,
        value=form.value,
        done=done,
        refused=refused,
        undo=undo,
        back=_check_back(memory, form.back),
    )


def _apply(tenant: CurrentTenant, memory: CurrentAgent, action: str, value: str, record: Memory) -> dict[str, Any]:
    """Do it, and return what its undo needs. Raises: WellkeptError."""
    if action in ("tag", "untag"):
        kept = [each for each in record.tags if each != value]
        updated = memory.update(record.id, tags=[*kept, value] if action == "tag" else kept, version=record.version)
        return {"id": record.id, "tags": record.tags, "version": updated.version}
    if action == "restore":
        return {"id": record.id, "version": memory.restore(record.id)[0].version}
    if action == "approve":
        return {"id": record.id, "version": memory.approve(record.id).version, "flag": record.flag}
    if action == "move":
        moved = tenant.agent(value).remember(**_copy(record))
        memory.forget(record.id)
        # If the other agent had a note of this text, an undo must not take that one away.
        return {"id": moved.id} if moved.created_at == record.created_at else {"id": "", **_copy(record)}
    memory.forget(record.id)
    return {"id": record.id, **_copy(record)}


def _revert(tenant: CurrentTenant, memory: CurrentAgent, action: str, value: str, undo: Mapping[str, Any]) -> None:
    """Raises: WellkeptError."""
    if action in ("tag", "untag"):
        memory.update(str(undo.get("id")), tags=undo.get("tags"), version=undo.get("version"))
    elif action in ("restore", "approve"):
        state: Literal["held", "archived"] = "held" if action == "approve" else "archived"
        flag = str(undo.get("flag") or "")
        memory.set_aside(str(undo.get("id")), state, version=undo.get("version", 0), flag=flag)
    elif action == "move" and undo.get("id"):
        there = tenant.agent(value)
        record = there.get(str(undo.get("id")))
        memory.remember(**_copy(record))
        there.forget(record.id)
    elif action in ("move", "delete"):
        fields = {name: undo[name] for name in COPIED if undo.get(name) is not None}
        memory.remember(**fields | {name: datetime.fromisoformat(fields[name]) for name in TIMES if name in fields})


def _copy(record: Memory) -> dict[str, Any]:
    return {name: value for name in COPIED if (value := getattr(record, name)) is not None}


def _parse_undo(text: str) -> list[dict[str, Any]]:
    """Raises: Invalid."""
    try:
        steps = json.loads(text)
    except (ValueError, RecursionError):
        steps = None
    if not isinstance(steps, list) or not all(isinstance(each, dict) for each in steps):
        raise Invalid(NO_UNDO)
    return steps[:MAX_SELECTED]


def _find_action(request: Request, name: str) -> Action:
    """Raises: Invalid, Forbidden."""
    if name not in ACTIONS:
        raise Invalid(f"There is no such action; choose {', '.join(ACTIONS)}.")
    if name == "approve" and not is_allowed(request.state.access.scope, KeyScope.ADMIN):
        raise Forbidden("Approving takes a key of the scope admin.")
    return ACTIONS[name]


def _select(memory: CurrentAgent, ids: Sequence[str]) -> list[Memory]:
    """Return the memories that still exist."""
    found = []
    for id in ids[:MAX_SELECTED]:
        try:
            found.append(memory.get(id))
        except NotFound:
            continue
    return found


def _check_back(memory: CurrentAgent, address: str) -> str:
    """Return the page to go back to, if it belongs to the console; otherwise the list of memories."""
    is_ours = is_console(address.partition("?")[0])
    return address if is_ours else place("agents", memory.owner.agent)
