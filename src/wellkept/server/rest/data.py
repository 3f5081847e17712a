"""All of a tenant's data: `/api/export`, `/api/import`, `/api/erase`, `/api/secrets`, `/api/maintenance`.

An export is first written to a temporary file, or to memory while it is small: it is complete before the first byte is
sent, and a slow client holds no transaction open. An import is written to a file first because it is read twice.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, cast

from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.datastructures import FormData, UploadFile

from wellkept.errors import DiskFull, Invalid
from wellkept.model import ErasureFinding, ImportReport, Receipt, RefusedItem
from wellkept.providers.archives import open_compressed
from wellkept.secrets.check import Sighting
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.routing import ADMIN, OPERATOR, TRANSFER, Router
from wellkept.server.rest.shapes import FILE_FIELD, NO_FILE, RecordBody, RequestBody, describe_form, describes, is_form
from wellkept.upkeep.maintain import MaintenanceReport


class Compression(StrEnum):
    """Compression of an export."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


class ExportParameters(RequestBody):
    """Options of an export."""

    is_query: ClassVar[bool] = True
    compression: Compression = Compression.NONE
    user: Annotated[str | None, Field(description="Only the records of this end user; null: of all.")] = None


class ImportParameters(RequestBody):
    """Options of an import."""

    is_query: ClassVar[bool] = True
    format: Annotated[
        str | None, Field(description="The program that wrote the file; omitted: detected.", examples=["wellkept"])
    ] = None
    agent: Annotated[str | None, Field(description="Agent for memories that name none.")] = None
    merge: Annotated[bool, Field(description="Where ids clash, keep the existing item.")] = False
    remember: Annotated[bool, Field(description="Also store the messages of conversations as episodes.")] = False
    trusted: Annotated[
        bool, Field(description="Believe an export that is not signed; otherwise its core memories wait for review.")
    ] = False
    with_erased: Annotated[bool, Field(description="Bring back what was erased here.")] = False
    dry_run: Annotated[bool, Field(description="Write nothing, and report what would happen.")] = False


@describes(RefusedItem)
class RefusedBody(RecordBody):
    """An item of the file that was not imported, or imported and flagged."""


@describes(ImportReport)
class ImportedBody(RecordBody):
    """Result of an import, or of a dry run."""


PIECE_BYTES = 1024 * 1024
SPOOLED_BYTES = 16 * 1024 * 1024
"""Bytes of an export that are held in memory."""

NO_ROOM = (
    "The folder for temporary files has no room for an export of this size. Free some space, or write it "
    "elsewhere on the server: wellkept data export PATH"
)
MEDIA = {
    Compression.NONE: "application/x-ndjson",
    Compression.GZIP: "application/gzip",
    Compression.ZSTD: "application/zstd",
}
SUFFIXES = {Compression.NONE: ".jsonl", Compression.GZIP: ".jsonl.gz", Compression.ZSTD: ".jsonl.zst"}
BINARY: dict[str, Any] = {"schema": FILE_FIELD}
_BODY = describe_form({"file": FILE_FIELD}, ["file"], {"application/octet-stream": BINARY})

router = Router(prefix="/api")


@router.get(
    "/export",
    queue=TRANSFER,
    scope=ADMIN,
    tags=["transfer"],
    response_class=StreamingResponse,
    responses={200: {"content": dict.fromkeys(MEDIA.values(), BINARY), "description": "The export, as a file."}},
)
def export(tenant: CurrentTenant, options: Annotated[ExportParameters, Query()]) -> StreamingResponse:
    """Export everything the tenant has, except keys, as one file that any store can import."""
    suffix, media = SUFFIXES[options.compression], MEDIA[options.compression]
    with ExitStack() as on_failure:
        file = on_failure.enter_context(tempfile.SpooledTemporaryFile(max_size=SPOOLED_BYTES))
        try:
            with open_compressed(cast(IO[bytes], file), Path(suffix).suffix) as content:
                tenant.data.export(content, user=options.user)
            size = file.tell()
            file.seek(0)
        except OSError as error:
            raise DiskFull(NO_ROOM) from error
        # From here on `_pieces` closes the file.
        on_failure.pop_all()
    headers = {"Content-Disposition": f'attachment; filename="{tenant.id}{suffix}"', "Content-Length": str(size)}
    return StreamingResponse(_pieces(cast(IO[bytes], file)), media_type=media, headers=headers)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE_BYTES):
            yield piece


async def _receive_file(request: Request) -> AsyncIterator[Path]:
    """Yield the uploaded file, which is on disk while the request runs. Raises: Invalid."""
    with tempfile.TemporaryDirectory(prefix="wellkept-") as folder:
        if is_form(request):
            async with request.form(max_files=1, max_fields=0) as form:
                path = await save_file(form, folder)
        else:
            path = Path(folder) / "import"
            with path.open("wb") as file:
                async for piece in request.stream():
                    await run_in_threadpool(file.write, piece)
        yield path


async def save_file(form: FormData, folder: str) -> Path:
    """Write the file of a form to a folder and return its path. Raises: Invalid."""
    sent = form.get("file")
    if not isinstance(sent, UploadFile) or not sent.filename:
        raise Invalid(NO_FILE)
    suffix = Path(sent.filename).suffix[:16]
    # The name comes from the client and may be no valid file name.
    path = Path(folder) / f"import{suffix if suffix[1:].isalnum() else ''}"
    with path.open("wb") as file:
        await run_in_threadpool(shutil.copyfileobj, sent.file, file)
    return path


@router.post("/import", queue=TRANSFER, scope=ADMIN, tags=["transfer"], openapi_extra=_BODY)
def import_file(
    tenant: CurrentTenant, options: Annotated[ImportParameters, Query()], path: Annotated[Path, Depends(_receive_file)]
) -> ImportedBody:
    """Import a file, sent as the body or as the field `file` of a form: an export, or the memories of another program.
    Existing items stay unchanged, so sending it twice changes nothing. 409 where ids clash, unless `merge`."""
    imported = tenant.data.import_(path, **dict(options))
    return ImportedBody.of(imported, dry_run=imported.is_dry_run)


class EraseBody(RequestBody):
    """The subject to erase."""

    subject: Annotated[
        str,
        Field(
            description="user:ID, agent:ID, session:ID, memory:AGENT/ID, tenant:ID for everything, or text:WORDS for "
            "all that mentions them. Without a kind, an existing id is meant, otherwise a text.",
            examples=["text:Mara Lindqvist"],
        ),
    ]
    dry_run: Annotated[bool, Field(description="Only list what would be erased.")] = False
    compact: Annotated[
        bool | None,
        Field(
            description="Rewrite the database files. Takes an operator's key, because every tenant waits meanwhile. "
            "null: overwrite unused parts of SQLite's."
        ),
    ] = None
    with_agents: Annotated[
        bool | None,
        Field(
            description="Delete agents whose ids are made from the words of a text, or keep them. null: delete them "
            "for several words, and answer 409 for a single one."
        ),
    ] = None


@describes(ErasureFinding)
class FindingBody(RecordBody):
    """An item that a dry run found."""


@describes(Receipt)
class ReceiptBody(RecordBody):
    """Receipt of an erasure. It holds nothing of what was erased."""


@router.post("/erase", queue="upkeep", scope=ADMIN, tags=["erasure"])
def erase(tenant: CurrentTenant, body: EraseBody) -> ReceiptBody:
    """Erase a subject permanently from every table, file and cache, and return a receipt."""
    return ReceiptBody.of(tenant.data.erase(**dict(body)))


class AllowSecretBody(RequestBody):
    """A text that only looks like a secret."""

    text: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["AKIAIOSFODNN7EXAMPLE"])]


@describes(MaintenanceReport)
class MaintenanceAnswer(RecordBody):
    """Result of a maintenance run."""

    archived: Annotated[int, Field(description="expired, faded and over_quota together")]


@describes(Sighting)
class SightingBody(RecordBody):
    """A record that seems to contain a secret; never the secret."""


class ScanAnswer(BaseModel):
    """Stored records that seem to contain a secret."""

    items: list[SightingBody]


class AllowSecretAnswer(BaseModel):
    """Result of allowing a text."""

    allowed: Annotated[int, Field(description="Number of matches in the text.")]


@router.post("/maintenance", queue="upkeep", scope=OPERATOR, tags=["upkeep"])
def maintain(wellkept: CurrentWellkept) -> MaintenanceAnswer:
    """Run maintenance on the whole store: archive expired, decayed and excess memories, and create missing vectors.
    Requires an operator key. 409 while another process runs it."""
    return MaintenanceAnswer.of(wellkept.maintain())


@router.post("/secrets/scan", queue="upkeep", scope=ADMIN, tags=["upkeep"])
def scan_for_secrets(tenant: CurrentTenant) -> ScanAnswer:
    """Scan everything the tenant has stored for secrets: memories and their versions, conversations, details,
    documents, workflows, logged prompts, audit events and agents."""
    return ScanAnswer(items=[SightingBody.of(each) for each in tenant.secrets.scan()])


@router.post("/secrets/allow", scope=ADMIN, tags=["upkeep"])
def allow_secret(tenant: CurrentTenant, body: AllowSecretBody) -> AllowSecretAnswer:
    """Allow a text that only looks like a secret. Only its hash is stored."""
    return AllowSecretAnswer(allowed=tenant.secrets.allow(body.text))
