"""Taking all of a tenant's memories away as a file, and bringing a file in."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from recollect.caller import current_caller
from recollect.errors import Conflict, Invalid
from recollect.model import Imported
from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page
from recollect.server.auth import CurrentTenant
from recollect.server.rest import transfer
from recollect.server.rest.transfer_shapes import Compression, ExportWishes

TRY, MERGE = "try", "merge"
MAX_FIELDS = 8

router = APIRouter(prefix=PATH, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Sent:
    """What the form holds: a file, on disk for as long as the request takes, and what to do with it."""

    path: Path
    wish: str
    format: str
    agent: str


@router.get("/moving")
def show_moving(request: Request, tenant: CurrentTenant) -> Response:
    """The two forms."""
    current_caller().check_whole_tenant()
    return _forms(request, tenant)


@router.get("/export")
def download(tenant: CurrentTenant, compression: Annotated[Compression, Query()] = Compression.NONE) -> Response:
    """Everything the tenant has, except keys."""
    return transfer.export(tenant, ExportWishes(compression=compression))


async def _sent(request: Request) -> AsyncIterator[Sent]:
    """Raises: Invalid."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            path = await transfer.kept_file(form, folder)
            fields = {name: value.strip() for name, value in form.items() if isinstance(value, str)}
        yield Sent(path, fields.get("wish", TRY), fields.get("format", ""), fields.get("agent", ""))


@router.post("/import")
def import_file(request: Request, tenant: CurrentTenant, sent: Annotated[Sent, Depends(_sent)]) -> Response:
    """Brings it in, or only says what would happen. What is there already stays as it is."""
    try:
        imported = tenant.import_(
            sent.path,
            format=sent.format or None,
            agent=sent.agent or None,
            merge=sent.wish == MERGE,
            dry_run=sent.wish == TRY,
        )
    except (Invalid, Conflict) as error:
        return _forms(request, tenant, problem=str(error))
    return _forms(request, tenant, imported=imported)


def _forms(request: Request, tenant: CurrentTenant, *, problem: str = "", imported: Imported | None = None) -> Response:
    status, formats = 400 if problem else 200, tenant.import_formats()
    return page(request, "moving.html", status=status, formats=formats, problem=problem, imported=imported)
