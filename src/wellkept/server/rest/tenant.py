"""All of a tenant's data, `/api/export`, `/api/import`, `/api/erase`, `/api/secrets`, `/api/maintenance`, and its keys.

An export is first written to a temporary file, or to memory while it is small: it is complete before the first byte is
sent, and a slow client holds no transaction open. An import is written to a file first because it is read twice.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import IO, Annotated, Any, cast

import fastapi
from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.datastructures import FormData, UploadFile

from wellkept.access.rules_keys import MAX_AGENTS
from wellkept.errors import DiskFull, Invalid
from wellkept.model import ApiKey, ErasureFinding, ImportReport, KeyScope, Receipt, RefusedItem
from wellkept.model.stored import Place
from wellkept.providers.archives import open_compressed
from wellkept.secrets.check import Sighting
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.routing import ADMIN, OPERATOR, TRANSFER, Router
from wellkept.server.paging import PagedList, decode_place
from wellkept.server.rest import shapes
from wellkept.server.rest.shapes import RecordBody, RequestBody, describes, field
from wellkept.upkeep.maintain import MaintenanceReport


class Compression(StrEnum):
    """Compression of an export."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


class ExportParameters(shapes.Query):
    """Options of an export."""

    compression: Compression = Compression.NONE
    user: str | None = field(None, "Only the records of this end user; null: of all.")


class ImportParameters(shapes.Query):
    """Options of an import."""

    format: str | None = field(None, "The program that wrote the file; omitted: detected.", example="wellkept")
    agent: str | None = field(None, "Agent for memories that name none.")
    merge: bool = field(False, "Where ids clash, keep the existing item.")
    remember: bool = field(False, "Also store the messages of conversations as episodes.")
    trusted: bool = field(False, "Believe an export that is not signed; otherwise its core memories wait for review.")
    with_erased: bool = field(False, "Bring back what was erased here.")
    dry_run: bool = field(False, "Write nothing, and report what would happen.")


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
BINARY: dict[str, Any] = {"schema": shapes.FILE_FIELD}
_BODY = shapes.describe_form({"file": shapes.FILE_FIELD}, ["file"], {"application/octet-stream": BINARY})

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
        if shapes.is_form(request):
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
        raise Invalid(shapes.NO_FILE)
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

    subject: str = field(
        description="user:ID, agent:ID, session:ID, memory:AGENT/ID, tenant:ID for everything, or text:WORDS for "
        "all that mentions them. Without a kind, an existing id is meant, otherwise a text.",
        example="text:Mara Lindqvist",
    )
    dry_run: bool = field(False, "Only list what would be erased.")
    compact: bool | None = field(
        None,
        "Rewrite the database files. Takes an operator's key, because every tenant waits meanwhile. "
        "null: overwrite unused parts of SQLite's.",
    )
    with_agents: bool | None = field(
        None,
        "Delete agents whose ids are made from the words of a text, or keep them. null: delete them "
        "for several words, and answer 409 for a single one.",
    )


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

    text: str = field(minLength=1, example="AKIAIOSFODNN7EXAMPLE")


@describes(MaintenanceReport)
class MaintenanceAnswer(RecordBody):
    """Result of a maintenance run."""

    archived: int = field(description="expired, faded and over_quota together")


@describes(Sighting)
class SightingBody(RecordBody):
    """A record that seems to contain a secret; never the secret."""


class ScanAnswer(BaseModel):
    """Stored records that seem to contain a secret."""

    items: list[SightingBody]


class AllowSecretAnswer(BaseModel):
    """Result of allowing a text."""

    allowed: int = field(description="Number of matches in the text.")


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


class NewKey(RequestBody):
    """A new key."""

    scope: Annotated[str, field(enum=[*KeyScope])] = field(description="Each scope includes those before it.")
    name: str = field("", "A label for people.", maxLength=100)
    expires_at: shapes.Moment | None = field(None, "null: never")
    agents: list[str] | None = field(
        None, "The agents it is limited to; omitted or null: all of the tenant.", minItems=1, maxItems=MAX_AGENTS
    )
    trust: shapes.OriginName | None = field(None, "The most trusted origin it may claim; null: any")
    user: str | None = field(None, "The end user it is limited to; null: all")


@describes(ApiKey)
class KeyBody(RecordBody):
    """A key, without its secret."""


class IssuedKeyBody(KeyBody):
    """A key that was just created."""

    key: str = field(description="The value for Authorization: Bearer …; it is not shown again.")


class KeyPage(shapes.Page[KeyBody]):
    """Keys, oldest first."""


KEYS = PagedList[Place | None]("keys", decode_place, attrgetter("created_at", "id"), None)

keys = Router(prefix="/api/keys", tags=["keys"])
KeyId = Annotated[str, fastapi.Path(description="The key's id: the part of it between tenant and secret.")]


@keys.get("", scope=ADMIN)
def list_keys(tenant: CurrentTenant, paging: Annotated[shapes.Paging, Query()]) -> KeyPage:
    """List the tenant's keys, oldest first, with revoked and expired ones, never their secrets."""
    found, cursor = KEYS.read(tenant.keys.list, paging)
    return KeyPage(items=[KeyBody.of(each) for each in found], next_cursor=cursor)


@keys.post("", scope=ADMIN, status_code=201)
def create_key(tenant: CurrentTenant, body: NewKey) -> IssuedKeyBody:
    """Create a key for this tenant, with at most the rights of yours. It is shown once; only its hash is stored."""
    issued = tenant.keys.create(**dict(body))
    return IssuedKeyBody.of(issued.record, key=issued.key)


@keys.delete("/{id}", scope=ADMIN, status_code=204)
def revoke_key(tenant: CurrentTenant, id: KeyId) -> None:
    """Revoke a key. It stays in the list."""
    tenant.keys.revoke(id)
