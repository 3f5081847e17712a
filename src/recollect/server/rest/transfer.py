"""Moving a tenant: `/api/export` and `/api/import`.

An export is written to a nameless file first, or to memory while it is small, and sent from there: it is whole before
the first byte leaves, and a slow client holds no transaction open. An import is written to a file before it is read,
twice.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated, Any, cast

from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from starlette.datastructures import FormData, UploadFile

from recollect.errors import DiskFull, Invalid
from recollect.providers.archives import packed
from recollect.server.auth import CurrentTenant
from recollect.server.rest.transfer_shapes import Compression, ExportWishes, ImportedBody, ImportParameters

PIECE_BYTES = 1024 * 1024
SPOOLED_BYTES = 16 * 1024 * 1024
"""So much of an export needs no disk."""

NO_ROOM = (
    "There is no room for an export of this size in the folder for temporary files. Free some space, or write it "
    "elsewhere on the server: recollect export PATH"
)
MEDIA = {
    Compression.NONE: "application/x-ndjson",
    Compression.GZIP: "application/gzip",
    Compression.ZSTD: "application/zstd",
}
SUFFIXES = {Compression.NONE: ".jsonl", Compression.GZIP: ".jsonl.gz", Compression.ZSTD: ".jsonl.zst"}
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
FORM = "multipart/form-data"
NO_FILE = "The form has no file; send it as the field `file`, with its name."
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": BINARY,
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
        },
    }
}

router = APIRouter(prefix="/api", tags=["transfer"])


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": dict.fromkeys(MEDIA.values(), BINARY), "description": "The export, as a file."}},
)
def export(tenant: CurrentTenant, wishes: Annotated[ExportWishes, Query()]) -> StreamingResponse:
    """Everything the tenant has, except keys, as one file that any store can import."""
    suffix, media = SUFFIXES[wishes.compression], MEDIA[wishes.compression]
    with ExitStack() as on_failure:
        file = on_failure.enter_context(tempfile.SpooledTemporaryFile(max_size=SPOOLED_BYTES))
        try:
            with packed(cast(IO[bytes], file), Path(suffix).suffix) as content:
                tenant.export(content)
            size = file.tell()
            file.seek(0)
        except OSError as error:
            raise DiskFull(NO_ROOM) from error
        on_failure.pop_all()  # from here on it is closed when it has been sent
    headers = {"Content-Disposition": f'attachment; filename="{tenant.id}{suffix}"', "Content-Length": str(size)}
    return StreamingResponse(_pieces(cast(IO[bytes], file)), media_type=media, headers=headers)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE_BYTES):
            yield piece


async def _sent(request: Request) -> AsyncIterator[Path]:
    """The file that was sent, on disk for as long as the request takes.

    Raises: Invalid.
    """
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM:
            async with request.form(max_files=1, max_fields=0) as form:
                path = await kept_file(form, folder)
        else:
            path = Path(folder) / "import"
            with path.open("wb") as file:
                async for piece in request.stream():
                    await run_in_threadpool(file.write, piece)
        yield path


async def kept_file(form: FormData, folder: str) -> Path:
    """The form's file, written to a folder.

    Raises: Invalid.
    """
    sent = form.get("file")
    if not isinstance(sent, UploadFile) or not sent.filename:
        raise Invalid(NO_FILE)
    suffix = Path(sent.filename).suffix[:16]
    path = Path(folder) / f"import{suffix if suffix[1:].isalnum() else ''}"  # a name may hold what no file can have
    with path.open("wb") as file:
        await run_in_threadpool(shutil.copyfileobj, sent.file, file)
    return path


@router.post("/import", openapi_extra=_BODY)
def import_file(
    tenant: CurrentTenant,
    wishes: Annotated[ImportParameters, Query()],
    path: Annotated[Path, Depends(_sent)],
) -> ImportedBody:
    """Take in a file, sent as the body or as the field `file` of a form: an export, or what another program remembered.
    What is there already stays as it is, so sending it twice changes nothing. 409 where ids clash, unless `merge`."""
    return ImportedBody.of(
        tenant.import_(path, format=wishes.format, agent=wishes.agent, merge=wishes.merge, dry_run=wishes.dry_run)
    )
