"""Administration: keys, export and import of a tenant, settings in force, maintenance, and a backup of the store."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Form, Query, Request
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from wellkept.access.rules_keys import is_allowed
from wellkept.caller import current_caller
from wellkept.errors import Conflict, Forbidden, Invalid
from wellkept.memory.rules_trust import is_within
from wellkept.model import ImportReport, KeyScope, MaintenancePreview, Origin
from wellkept.server.console.pages import AtTenant, describe_bytes, go, page_router
from wellkept.server.http.routing import ADMIN, OPERATOR, READ, TRANSFER
from wellkept.server.rest.tenant import Compression, ExportParameters, export, save_file
from wellkept.settings.choices import describe_settings
from wellkept.store import is_postgres
from wellkept.upkeep.maintain import MaintenanceReport

LISTED = 100
"""Memories that a preview of maintenance lists."""

TRY, MERGE = "try", "merge"
MAX_FIELDS = 8

router = page_router()


@router.get("/manage", scope=READ)
def list_admin_pages(visit: AtTenant) -> Response:
    """Show links to the pages that administer a tenant and the store."""
    return visit.page("manage.html")


@router.get("/keys", scope=ADMIN)
def list_keys(visit: AtTenant) -> Response:
    """Show all keys, with revoked and expired ones."""
    return _keys_page(visit)


@router.post("/keys", scope=ADMIN)
def create_key(
    visit: AtTenant,
    scope: Annotated[str, Form()] = KeyScope.READ.value,
    name: Annotated[str, Form()] = "",
    agents: Annotated[str, Form()] = "",
    trust: Annotated[str, Form()] = "",
    user: Annotated[str, Form()] = "",
) -> Response:
    """Create a key and show it once."""
    named = [each.strip() for each in agents.split(",")] if agents.strip() else None
    try:
        made = visit.tenant.keys.create(scope, name=name, agents=named, trust=trust or None, user=user.strip() or None)
        return _keys_page(visit, key=made.key)
    except (Invalid, Forbidden) as error:
        return _keys_page(visit, problem=str(error))


@router.post("/keys/{id}/revoke", scope=ADMIN)
def revoke_key(visit: AtTenant, id: Annotated[str, PathParameter()]) -> Response:
    """Revoke a key and end its logins."""
    visit.tenant.keys.revoke(id)
    return go("keys")


def _keys_page(visit: AtTenant, *, key: str = "", problem: str = "") -> Response:
    caller = current_caller()
    return visit.page(
        "keys.html",
        keys=visit.tenant.keys.list(),
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
def show_transfer(visit: AtTenant) -> Response:
    """Show the forms for export and import."""
    current_caller().check_whole_tenant()
    return _transfer_page(visit)


@router.get("/export", queue=TRANSFER, scope=ADMIN)
def download(visit: AtTenant, compression: Annotated[Compression, Query()] = Compression.NONE) -> Response:
    """Export everything the tenant has, except keys."""
    return export(visit.tenant, ExportParameters(compression=compression))


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
def import_file(visit: AtTenant, sent: Annotated[ImportForm, Depends(_receive_form)]) -> Response:
    """Import a file, or report what would happen. Existing items stay unchanged."""
    try:
        imported = visit.tenant.data.import_(
            sent.path,
            format=sent.format or None,
            agent=sent.agent or None,
            merge=sent.action == MERGE,
            trusted=sent.is_trusted,
            dry_run=sent.action == TRY,
        )
    except (Invalid, Conflict) as error:
        return _transfer_page(visit, problem=str(error))
    return _transfer_page(visit, imported=imported)


def _transfer_page(visit: AtTenant, *, problem: str = "", imported: ImportReport | None = None) -> Response:
    formats = visit.tenant.data.import_formats()
    return visit.page("moving.html", formats=formats, problem=problem, imported=imported)


@router.get("/settings", scope=OPERATOR)
def show_settings(visit: AtTenant, q: Annotated[str, Query()] = "", changed: Annotated[str, Query()] = "") -> Response:
    """Show the settings in force, without secrets, and where each comes from."""
    every = describe_settings(visit.wellkept.settings)
    needle = q.strip().casefold()
    listed = [
        each
        for each in every
        if needle in f"{each.name} {each.meaning}".casefold() and (not changed or each.source != "default")
    ]
    set_here = sum(each.source != "default" for each in every)
    return visit.page("settings.html", settings=listed, q=q, changed=changed, count=len(every), set_here=set_here)


@router.get("/maintenance", scope=ADMIN)
def show_maintenance(visit: AtTenant) -> Response:
    """Show the last and the next run."""
    current_caller().check_whole_tenant()
    return _maintenance_page(visit)


@router.get("/maintenance/preview", queue="upkeep", scope=ADMIN)
def preview_maintenance(visit: AtTenant) -> Response:
    """Show what a run would archive now; change nothing."""
    return _maintenance_page(visit, preview=visit.tenant.upkeep.preview(limit=LISTED))


@router.post("/maintenance", queue="upkeep", scope=ADMIN)
def run_maintenance(visit: AtTenant) -> Response:
    """Run maintenance for this tenant and show the result."""
    try:
        return _maintenance_page(visit, report=visit.tenant.upkeep.maintain())
    except Conflict as error:
        return _maintenance_page(visit, problem=str(error))


def _maintenance_page(
    visit: AtTenant,
    *,
    preview: MaintenancePreview | None = None,
    report: MaintenanceReport | None = None,
    problem: str = "",
) -> Response:
    return visit.page(
        "maintenance.html",
        status=409 if problem else 200,
        schedule=visit.wellkept.maintenance.refresh(),
        preview=preview,
        report=report,
        problem=problem,
    )


@router.get("/backup", scope=OPERATOR)
def show_backup(visit: AtTenant) -> Response:
    """Show what a backup holds, and how to write one elsewhere."""
    is_offered = not is_postgres(visit.wellkept.settings.store_url)
    return visit.page("backup.html", is_offered=is_offered, size=describe_bytes(visit.wellkept.count_bytes()))


@router.get("/backup/file", queue=TRANSFER, scope=OPERATOR)
def download_backup(visit: AtTenant) -> Response:
    """Return a backup of the whole store, all tenants. Raises: Invalid on PostgreSQL."""
    name = f"wellkept-{visit.wellkept.now():%Y-%m-%d-%H%M%S}.tar.zst"
    with ExitStack() as on_failure:
        folder = on_failure.enter_context(tempfile.TemporaryDirectory(prefix="wellkept-"))
        visit.wellkept.backup(Path(folder) / name)
        # From here on the response deletes the file, when it has been sent.
        sent = BackgroundTask(on_failure.pop_all().close)
    return FileResponse(Path(folder) / name, filename=name, media_type="application/octet-stream", background=sent)
