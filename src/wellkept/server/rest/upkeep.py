"""Maintenance of the store, `/api/maintenance`, and secrets in it, `/api/secrets`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.routes import Router
from wellkept.server.http.routing import ADMIN, OPERATOR
from wellkept.server.rest.shapes import RecordBody, RequestBody


class AllowSecretBody(RequestBody):
    """A text that only looks like a secret."""

    text: Annotated[str, Field(json_schema_extra={"minLength": 1}, examples=["AKIAIOSFODNN7EXAMPLE"])]


class MaintenanceAnswer(RecordBody):
    """Result of a maintenance run."""

    agents: int
    examined: int
    archived: Annotated[int, Field(description="expired, faded and over_quota together")]
    expired: int
    faded: int
    over_quota: int
    gisted: Annotated[int, Field(description="Expired memories of which the gist was kept.")]
    items: Annotated[int, Field(description="Expired items that were archived.")]
    deleted: Annotated[int, Field(description="Expired items that were archived a week ago, and deleted now.")]
    swept: Annotated[int, Field(description="Unused texts of details that were removed.")]
    embedded: int
    embedding_problem: Annotated[str, Field(description="Reason for missing vectors, if any.")]


class SightingBody(RecordBody):
    """A record that seems to contain a secret; never the secret."""

    shelf: Annotated[str, Field(description="Where it is stored.", examples=["memories"])]
    agent: Annotated[str | None, Field(description="null: it belongs to all agents.")]
    id: str
    rules: Annotated[list[str], Field(description="Rules that matched.")]


class ScanAnswer(BaseModel):
    """Stored records that seem to contain a secret."""

    items: list[SightingBody]


class AllowSecretAnswer(BaseModel):
    """Result of allowing a text."""

    allowed: Annotated[int, Field(description="Number of matches in the text.")]


router = Router(prefix="/api", tags=["upkeep"])


@router.post("/maintenance", scope=OPERATOR)
def maintain(wellkept: CurrentWellkept) -> MaintenanceAnswer:
    """Run maintenance on the whole store: archive expired, decayed and excess memories, and create missing vectors.
    Requires an operator key. 409 while another process runs it."""
    return MaintenanceAnswer.of(wellkept.maintain())


@router.post("/secrets/scan", scope=ADMIN)
def scan_for_secrets(tenant: CurrentTenant) -> ScanAnswer:
    """Scan everything the tenant has stored for secrets: memories and their versions, conversations, details,
    documents, workflows, logged prompts, audit events and agents."""
    return ScanAnswer(items=[SightingBody.of(each) for each in tenant.scan()])


@router.post("/secrets/allow", scope=ADMIN)
def allow_secret(tenant: CurrentTenant, body: AllowSecretBody) -> AllowSecretAnswer:
    """Allow a text that only looks like a secret. Only its hash is stored."""
    return AllowSecretAnswer(allowed=tenant.allow_secret(body.text))
