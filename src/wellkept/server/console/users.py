"""End users with their records, and erasure: a preview first, then the receipt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated

from fastapi import Depends, Form, Query
from fastapi.responses import Response
from pydantic import ValidationError

from wellkept.api.views import MAX_PAGE
from wellkept.api.wellkept import Wellkept
from wellkept.caller import current_caller
from wellkept.errors import Conflict, Forbidden, Invalid, NotFound
from wellkept.memory.rules_filters import EQUAL, Comparison
from wellkept.model import Agent, Memory, Receipt
from wellkept.server.console.conversations import find_first_words
from wellkept.server.console.pages import AtTenant, page_router
from wellkept.server.http.routing import ADMIN, READ
from wellkept.server.rest.tenant import ReceiptBody

USERS = 100
AGENTS = 15
"""Agents whose knowledge of a user is shown."""

MEMORIES = 10
"""Facts and newest memories of a user shown for each agent."""

SESSIONS = 20
FOUND = 200
"""Findings shown in a preview."""

KINDS: Mapping[str, str] = {
    "user": "an end user",
    "text": "everything that mentions some words",
    "agent": "an agent",
    "session": "a conversation",
    "memory": "a memory (AGENT/ID)",
    "tenant": "this whole tenant",
}
NOT_A_RECEIPT = "This is no receipt, or it was changed."

router = page_router()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureForm:
    """Fields of the form: kind and id of what to erase."""

    kind: Annotated[str, Form()] = "text"
    id: Annotated[str, Form()] = ""
    with_agents: Annotated[str, Form()] = ""


SentForm = Annotated[ErasureForm, Depends()]


@router.get("/users", scope=READ)
def list_users(visit: AtTenant, after: Annotated[str, Query()] = "") -> Response:
    """Show end users with their last activity, the latest first if one page holds them all, otherwise by id."""
    found = visit.tenant.users.list(after=after, limit=USERS + 1)
    more = found[USERS - 1].user if len(found) > USERS else ""
    listed = found[:USERS] if after or more else sorted(found, key=attrgetter("last_at"), reverse=True)
    return visit.page("users.html", users=listed, more=more, is_first=not after)


@router.get("/user", scope=READ)
def show_user(visit: AtTenant, id: Annotated[str, Query()]) -> Response:
    """Show what each agent knows of a user: the current facts, the newest memories and the conversations."""
    shown: list[tuple[Agent, Sequence[Memory], Sequence[Memory]]] = []
    for agent in visit.tenant.agents.list(limit=MAX_PAGE):
        if len(shown) == AGENTS:
            break
        memory = visit.tenant.agent(agent.id).for_user(id, shared=False)
        facts = memory.profile().facts[:MEMORIES]
        # Turns are shown as conversations.
        newest = memory.list(state="all", where="kind != episode", limit=MEMORIES)
        newest = newest if facts or newest else memory.list(state="all", limit=MEMORIES)
        if facts or newest:
            shown.append((agent, facts, newest))
    sessions = visit.tenant.sessions.list(where=Comparison("user", EQUAL, id), limit=SESSIONS)
    if not shown and not sessions:
        raise NotFound("There is nothing of such a user.")
    named = [(each, find_first_words(visit.tenant.agent(each.owner.agent), each)) for each in sessions]
    written = [each.created_at for _, facts, newest in shown for each in (*facts, *newest)]
    last_at = max([*written, *(each.updated_at for each in sessions)])
    return visit.page("user.html", user=id, shown=shown, sessions=named, last_at=last_at)


@router.get("/erasure", scope=ADMIN)
def show_erasure(visit: AtTenant, kind: Annotated[str, Query()] = "user", id: Annotated[str, Query()] = "") -> Response:
    """Show the form. Raises: Forbidden when the key is limited to agents or a user."""
    current_caller().check_whole_tenant()
    return _erasure_page(visit, ErasureForm(kind=kind, id=id))


@router.post("/erasure/preview", queue="upkeep", scope=ADMIN)
def preview_erasure(visit: AtTenant, form: SentForm) -> Response:
    """Show what an erasure would remove; change nothing."""
    return _erase(visit, form, is_dry_run=True)


@router.post("/erasure", queue="upkeep", scope=ADMIN)
def erase(visit: AtTenant, form: SentForm) -> Response:
    """Erase a subject permanently and show the receipt."""
    return _erase(visit, form, is_dry_run=False)


@router.post("/erasure/receipt", scope=ADMIN)
def download_receipt(receipt: Annotated[str, Form()] = "") -> Response:
    """Return the receipt that the page shows as a file. Raises: Invalid."""
    try:
        body = ReceiptBody.model_validate_json(receipt)
    except ValidationError:
        raise Invalid(NOT_A_RECEIPT) from None
    fields = body.model_dump()
    if not Wellkept.verify_receipt(fields):
        raise Invalid(NOT_A_RECEIPT)
    name = f"erasure-{fields['at']:%Y-%m-%d-%H%M%S}.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body.model_dump_json(indent=2), media_type="application/json", headers=headers)


def _erase(visit: AtTenant, form: ErasureForm, *, is_dry_run: bool) -> Response:
    subject = f"{form.kind}:{visit.tenant.id if form.kind == 'tenant' else form.id.strip()}"
    try:
        if form.kind not in KINDS:
            raise Invalid(f"Choose what to erase: {', '.join(KINDS)}.")
        receipt = visit.tenant.data.erase(subject, dry_run=is_dry_run, with_agents=True if form.with_agents else None)
    except (Invalid, NotFound, Conflict, Forbidden) as error:
        return _erasure_page(visit, form, problem=str(error))
    return _erasure_page(visit, form, receipt=receipt)


def _erasure_page(visit: AtTenant, form: ErasureForm, *, problem: str = "", receipt: Receipt | None = None) -> Response:
    is_done = receipt is not None and not receipt.is_dry_run
    return visit.page(
        "erasure.html",
        kinds_of_subjects=KINDS,
        kind=form.kind,
        id=form.id,
        with_agents=form.with_agents,
        problem=problem,
        receipt=receipt,
        found=() if receipt is None else receipt.found[:FOUND],
        json=ReceiptBody.model_validate(receipt).model_dump_json(indent=2) if is_done else "",
    )
