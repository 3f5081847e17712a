"""Who may come in: the tenant's keys."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request
from fastapi.responses import RedirectResponse, Response

from recollect.caller import current_caller
from recollect.errors import Forbidden, Invalid
from recollect.model import KeyScope, Origin
from recollect.policy.keys import allows
from recollect.policy.memories.trust import is_within
from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page
from recollect.server.auth import CurrentTenant

router = APIRouter(prefix=f"{PATH}/keys", include_in_schema=False)


@router.get("")
def list_keys(request: Request, tenant: CurrentTenant) -> Response:
    """Also those that were revoked or have expired."""
    return _listed(request, tenant)


@router.post("")
def create_key(
    request: Request,
    tenant: CurrentTenant,
    scope: Annotated[str, Form()] = KeyScope.READ.value,
    name: Annotated[str, Form()] = "",
    agents: Annotated[str, Form()] = "",
    trust: Annotated[str, Form()] = "",
) -> Response:
    """Makes one, and shows it on this page and never again."""
    named = [each.strip() for each in agents.split(",")] if agents.strip() else None
    try:
        made = tenant.add_key(scope, name=name, agents=named, trust=trust or None)
        return _listed(request, tenant, key=made.key)
    except (Invalid, Forbidden) as error:
        return _listed(request, tenant, problem=str(error))


@router.post("/{id}/revoke")
def revoke_key(tenant: CurrentTenant, id: Annotated[str, Path()]) -> Response:
    """From now on it opens nothing, and its logins end."""
    tenant.revoke_key(id)
    return RedirectResponse(f"{PATH}/keys", status_code=303)


def _listed(request: Request, tenant: CurrentTenant, *, key: str = "", problem: str = "") -> Response:
    caller = current_caller()
    return page(
        request,
        "keys.html",
        status=400 if problem else 200,
        keys=tenant.list_keys(),
        scopes=[each for each in KeyScope if caller.scope is None or allows(caller.scope, each)],
        origins=[each for each in Origin if is_within(each, caller.trust)],
        key=key,
        problem=problem,
    )
