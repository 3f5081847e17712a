"""Keys: `/api/keys`, for admins."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from wellkept.access.rules_keys import MAX_AGENTS
from wellkept.model import ApiKey
from wellkept.model.stored import Place
from wellkept.server.http.auth import CurrentTenant
from wellkept.server.http.routing import ADMIN, Router
from wellkept.server.paging import PagedList, decode_place
from wellkept.server.rest.shapes import (
    KeyScopeName,
    Moment,
    OriginName,
    Page,
    Paging,
    RecordBody,
    RequestBody,
    describes,
)


class NewKey(RequestBody):
    """A new key."""

    scope: Annotated[KeyScopeName, Field(description="Each scope includes those before it.")]
    name: Annotated[str, Field(description="A label for people.", json_schema_extra={"maxLength": 100})] = ""
    expires_at: Annotated[Moment | None, Field(description="null: never")] = None
    agents: Annotated[
        list[str] | None,
        Field(
            description="The agents it is limited to; omitted or null: all of the tenant.",
            json_schema_extra={"minItems": 1, "maxItems": MAX_AGENTS},
        ),
    ] = None
    trust: Annotated[OriginName | None, Field(description="The most trusted origin it may claim; null: any")] = None
    user: Annotated[str | None, Field(description="The end user it is limited to; null: all")] = None


@describes(ApiKey)
class KeyBody(RecordBody):
    """A key, without its secret."""


class IssuedKeyBody(KeyBody):
    """A key that was just created."""

    key: Annotated[str, Field(description="The value for Authorization: Bearer …; it is not shown again.")]


class KeyPage(Page[KeyBody]):
    """Keys, oldest first."""


LISTING = PagedList[Place | None]("keys", decode_place, attrgetter("created_at", "id"), None)

router = Router(prefix="/api/keys", tags=["keys"])
KeyId = Annotated[str, Path(description="The key's id: the part of it between tenant and secret.")]


@router.get("", scope=ADMIN)
def list_keys(tenant: CurrentTenant, paging: Annotated[Paging, Query()]) -> KeyPage:
    """List the tenant's keys, oldest first, with revoked and expired ones, never their secrets."""
    found, cursor = LISTING.read(tenant.keys.list, paging)
    return KeyPage(items=[KeyBody.of(each) for each in found], next_cursor=cursor)


@router.post("", scope=ADMIN, status_code=201)
def create_key(tenant: CurrentTenant, body: NewKey) -> IssuedKeyBody:
    """Create a key for this tenant, with at most the rights of yours. It is shown once; only its hash is stored."""
    issued = tenant.keys.create(**dict(body))
    return IssuedKeyBody.of(issued.record, key=issued.key)


@router.delete("/{id}", scope=ADMIN, status_code=204)
def revoke_key(tenant: CurrentTenant, id: KeyId) -> None:
    """Revoke a key. It stays in the list."""
    tenant.keys.revoke(id)
