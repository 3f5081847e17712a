"""Maintenance of the store, `/api/maintenance`, and secrets in it, `/api/secrets`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from wellkept.secrets.check import Sighting
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.routing import ADMIN, OPERATOR, Router
from wellkept.server.rest.shapes import RecordBody, RequestBody, describes
from wellkept.upkeep.maintain import MaintenanceReport


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


router = Router(prefix="/api", tags=["upkeep"])


@router.post("/maintenance", queue="upkeep", scope=OPERATOR)
def maintain(wellkept: CurrentWellkept) -> MaintenanceAnswer:
    """Run maintenance on the whole store: archive expired, decayed and excess memories, and create missing vectors.
    Requires an operator key. 409 while another process runs it."""
    return MaintenanceAnswer.of(wellkept.maintain())


@router.post("/secrets/scan", queue="upkeep", scope=ADMIN)
def scan_for_secrets(tenant: CurrentTenant) -> ScanAnswer:
    """Scan everything the tenant has stored for secrets: memories and their versions, conversations, details,
    documents, workflows, logged prompts, audit events and agents."""
    return ScanAnswer(items=[SightingBody.of(each) for each in tenant.secrets.scan()])


@router.post("/secrets/allow", scope=ADMIN)
def allow_secret(tenant: CurrentTenant, body: AllowSecretBody) -> AllowSecretAnswer:
    """Allow a text that only looks like a secret. Only its hash is stored."""
    return AllowSecretAnswer(allowed=tenant.secrets.allow(body.text))
