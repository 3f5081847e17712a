"""Upkeep: settings in force, maintenance with a preview, and a backup of the whole store."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from wellkept.caller import current_caller
from wellkept.errors import Conflict
from wellkept.model import MaintenancePreview
from wellkept.server.console.charts import describe_bytes
from wellkept.server.console.pages import page, page_router
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.routing import ADMIN, OPERATOR, TRANSFER
from wellkept.settings.choices import describe_settings
from wellkept.store import is_postgres
from wellkept.upkeep.maintain import MaintenanceReport

LISTED = 100
"""Memories that a preview of maintenance lists."""

router = page_router()


@router.get("/settings", scope=OPERATOR)
def show_settings(
    request: Request,
    wellkept: CurrentWellkept,
    q: Annotated[str, Query()] = "",
    changed: Annotated[str, Query()] = "",
) -> Response:
    """Show the settings in force, without secrets, and where each comes from."""
    every = describe_settings(wellkept.settings)
    needle = q.strip().casefold()
    listed = [
        each
        for each in every
        if needle in f"{each.name} {each.meaning}".casefold() and (not changed or each.source != "default")
    ]
    set_here = sum(each.source != "default" for each in every)
    return page(request, "settings.html", settings=listed, q=q, changed=changed, count=len(every), set_here=set_here)


@router.get("/maintenance", scope=ADMIN)
def show_maintenance(request: Request, wellkept: CurrentWellkept) -> Response:
    """Show the last and the next run."""
    current_caller().check_whole_tenant()
    return _maintenance_page(request, wellkept)


@router.get("/maintenance/preview", queue="upkeep", scope=ADMIN)
def preview_maintenance(request: Request, wellkept: CurrentWellkept, tenant: CurrentTenant) -> Response:
    """Show what a run would archive now; change nothing."""
    return _maintenance_page(request, wellkept, preview=tenant.upkeep.preview(limit=LISTED))


@router.post("/maintenance", queue="upkeep", scope=ADMIN)
def run_maintenance(request: Request, wellkept: CurrentWellkept, tenant: CurrentTenant) -> Response:
    """Run maintenance for this tenant and show the result."""
    try:
        return _maintenance_page(request, wellkept, report=tenant.upkeep.maintain())
    except Conflict as error:
        return _maintenance_page(request, wellkept, problem=str(error))


def _maintenance_page(
    request: Request,
    wellkept: CurrentWellkept,
    *,
    preview: MaintenancePreview | None = None,
    report: MaintenanceReport | None = None,
    problem: str = "",
) -> Response:
    return page(
        request,
        "maintenance.html",
        status=409 if problem else 200,
        schedule=wellkept.maintenance.refresh(),
        preview=preview,
        report=report,
        problem=problem,
    )


@router.get("/backup", scope=OPERATOR)
def show_backup(request: Request, wellkept: CurrentWellkept) -> Response:
    """Show what a backup holds, and how to write one elsewhere."""
    is_offered = not is_postgres(wellkept.settings.store_url)
    return page(request, "backup.html", is_offered=is_offered, size=describe_bytes(wellkept.count_bytes()))


@router.get("/backup/file", queue=TRANSFER, scope=OPERATOR)
def download_backup(wellkept: CurrentWellkept) -> Response:
    """Return a backup of the whole store, all tenants. Raises: Invalid on PostgreSQL."""
    name = f"wellkept-{wellkept.now():%Y-%m-%d-%H%M%S}.tar.zst"
    with ExitStack() as on_failure:
        folder = on_failure.enter_context(tempfile.TemporaryDirectory(prefix="wellkept-"))
        wellkept.backup(Path(folder) / name)
        # From here on the response deletes the file, when it has been sent.
        sent = BackgroundTask(on_failure.pop_all().close)
    return FileResponse(Path(folder) / name, filename=name, media_type="application/octet-stream", background=sent)
