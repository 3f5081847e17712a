"""Keys, export and import of a tenant."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Form, Query, Request
from fastapi import Path as PathParameter
from fastapi.responses import RedirectResponse, Response

from wellkept.access.rules_keys import is_allowed
from wellkept.caller import current_caller
from wellkept.errors import Conflict, Forbidden, Invalid
from wellkept.memory.rules_trust import is_within
from wellkept.model import ImportReport, KeyScope, Origin
from wellkept.server.console.logins import PATH
from wellkept.server.console.pages import page, page_router
from wellkept.server.http.auth import CurrentTenant
from wellkept.server.http.routing import ADMIN, TRANSFER
from wellkept.server.rest.tenant import Compression, ExportParameters, export, save_file

TRY, MERGE = "try", "merge"
MAX_FIELDS = 8

router = page_router()


@router.get("/keys", scope=ADMIN)
def list_keys(request: Request, tenant: CurrentTenant) -> Response:
    """Show all keys, with revoked and expired ones."""
    return _keys_page(request, tenant)


@router.post("/keys", scope=ADMIN)
def create_key(
    request: Request,
    tenant: CurrentTenant,
    scope: Annotated[str, Form()] = KeyScope.READ.value,
    name: Annotated[str, Form()] = "",
    agents: Annotated[str, Form()] = "",
    trust: Annotated[str, Form()] = "",
    user: Annotated[str, Form()] = "",
) -> Response:
    """Create a key and show it once."""
    named = [each.strip() for each in agents.split(",")] if agents.strip() else None
    try:
        made = tenant.keys.create(scope, name=name, agents=named, trust=trust or None, user=user.strip() or None)
        return _keys_page(request, tenant, key=made.key)
    except (Invalid, Forbidden) as error:
        return _keys_page(request, tenant, problem=str(error))


@router.post("/keys/{id}/revoke", scope=ADMIN)
def revoke_key(tenant: CurrentTenant, id: Annotated[str, PathParameter()]) -> Response:
    """Revoke a key and end its logins."""
    tenant.keys.revoke(id)
    return RedirectResponse(f"{PATH}/keys", status_code=303)


def _keys_page(request: Request, tenant: CurrentTenant, *, key: str = "", problem: str = "") -> Response:
    caller = current_caller()
    return page(
        request,
        "keys.html",
        status=400 if problem else 200,
        keys=tenant.keys.list(),
        scopes=[each for each in KeyScope if caller.scope is None or is_allowed(caller.scope, each)],
        origins=[each for each in Origin if is_within(each, caller.trust)],
        key=key,
        problem=problem,
    )


@dataclass(frozen=True, slots=True)
class ImportForm:
    """The form: a file, which is on disk while the request runs, and what to do with it."""

    path: Path
    action: str
    format: str
    agent: str
    is_trusted: bool


@router.get("/moving", scope=ADMIN)
def show_transfer(request: Request, tenant: CurrentTenant) -> Response:
    """Show the forms for export and import."""
    current_caller().check_whole_tenant()
    return _transfer_page(request, tenant)


@router.get("/export", queue=TRANSFER, scope=ADMIN)
def download(tenant: CurrentTenant, compression: Annotated[Compression, Query()] = Compression.NONE) -> Response:
    """Export everything the tenant has, except keys."""
    return export(tenant, ExportParameters(compression=compression))


async def _receive_form(request: Request) -> AsyncIterator[ImportForm]:
    """Raises: Invalid."""
    with tempfile.TemporaryDirectory(prefix="wellkept-") as folder:
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            path = await save_file(form, folder)
            fields = {name: value.strip() for name, value in form.items() if isinstance(value, str)}
        yield ImportForm(
            path,
            fields.get("wish", TRY),
            fields.get("format", ""),
            fields.get("agent", ""),
            bool(fields.get("trusted")),
        )


@router.post("/import", queue=TRANSFER, scope=ADMIN)
def import_file(
    request: Request, tenant: CurrentTenant, sent: Annotated[ImportForm, Depends(_receive_form)]
) -> Response:
    """Import a file, or report what would happen. Existing items stay unchanged."""
    try:
        imported = tenant.data.import_(
            sent.path,
            format=sent.format or None,
            agent=sent.agent or None,
            merge=sent.action == MERGE,
            trusted=sent.is_trusted,
            dry_run=sent.action == TRY,
        )
    except (Invalid, Conflict) as error:
        return _transfer_page(request, tenant, problem=str(error))
    return _transfer_page(request, tenant, imported=imported)


def _transfer_page(
    request: Request, tenant: CurrentTenant, *, problem: str = "", imported: ImportReport | None = None
) -> Response:
    status, formats = 400 if problem else 200, tenant.data.import_formats()
    return page(request, "moving.html", status=status, formats=formats, problem=problem, imported=imported)
