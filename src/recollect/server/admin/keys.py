"""Who may come in: the tenant's keys."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request
from fastapi.responses import RedirectResponse, Response

from recollect.errors import Invalid
from recollect.model import KeyScope
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
) -> Response:
    """Makes one, and shows it on this page and never again."""
    try:
        return _listed(request, tenant, key=tenant.add_key(scope, name=name).key)
    except Invalid as error:
        return _listed(request, tenant, problem=str(error))


@router.post("/{id}/revoke")
def revoke_key(tenant: CurrentTenant, id: Annotated[str, Path()]) -> Response:
    """From now on it opens nothing, and its logins end."""
    tenant.revoke_key(id)
    return RedirectResponse(f"{PATH}/keys", status_code=303)


def _listed(request: Request, tenant: CurrentTenant, *, key: str = "", problem: str = "") -> Response:
    status = 400 if problem else 200
    keys, scopes = tenant.list_keys(), [*KeyScope]
    return page(request, "keys.html", status=status, keys=keys, scopes=scopes, key=key, problem=problem)
