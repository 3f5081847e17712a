"""Keys: `/api/keys`, for admins."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, Self

from fastapi import Path, Query
from pydantic import BaseModel, Field

from recollect.model import ApiKey, KeyScope, Origin
from recollect.policy.keys import MAX_AGENTS
from recollect.server.http.auth import CurrentTenant
from recollect.server.http.routing import ADMIN, Router
from recollect.server.paging import decode_place, next_cursor, read_page
from recollect.server.rest.shapes import KeyScopeName, Moment, OriginName, Paging, RecordBody, RequestBody


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


class KeyBody(RecordBody):
    """A key, without its secret."""

    id: str
    scope: KeyScope
    name: str
    created_at: datetime
    last_used_at: Annotated[datetime | None, Field(description="To within five minutes; null: never")]
    expires_at: Annotated[datetime | None, Field(description="null: never")]
    revoked_at: datetime | None
    agents: Annotated[list[str], Field(description="The agents it is limited to; empty: all of the tenant.")]
    trust: Annotated[Origin | None, Field(description="The most trusted origin it may claim; null: any")]
    user: Annotated[str | None, Field(description="The end user it is limited to; null: all")]

    @classmethod
    def of(cls, record: ApiKey, **more: Any) -> Self:
        return cls._of(record, agents=list(record.agents), **more)


class IssuedKeyBody(KeyBody):
    """A key that was just created."""

    key: Annotated[str, Field(description="The value for Authorization: Bearer …; it is not shown again.")]


class KeyPage(BaseModel):
    """Keys, oldest first."""

    items: list[KeyBody]
    next_cursor: str | None = None


LISTING = "keys"

router = Router(prefix="/api/keys", tags=["keys"])
KeyId = Annotated[str, Path(description="The key's id: the part of it between tenant and secret.")]


@router.get("", scope=ADMIN)
def list_keys(tenant: CurrentTenant, paging: Annotated[Paging, Query()]) -> KeyPage:
    """List the tenant's keys, oldest first, with revoked and expired ones, never their secrets."""
    after = decode_place(LISTING, paging.cursor) if paging.cursor else None
    page = read_page(
        lambda after, limit: tenant.list_keys(after=after, limit=limit),
        attrgetter("created_at", "id"),
        after,
        limit=paging.limit,
    )
    return KeyPage(items=[KeyBody.of(each) for each in page.items], next_cursor=next_cursor(LISTING, page.end))


@router.post("", scope=ADMIN, status_code=201)
def create_key(tenant: CurrentTenant, body: NewKey) -> IssuedKeyBody:
    """Create a key for this tenant, with at most the rights of yours. It is shown once; only its hash is stored."""
    issued = tenant.add_key(
        body.scope,
        name=body.name,
        expires_at=body.expires_at,
        agents=body.agents,
        trust=body.trust,
        user=body.user,
    )
    return IssuedKeyBody.of(issued.record, key=issued.key)


@router.delete("/{id}", scope=ADMIN, status_code=204)
def revoke_key(tenant: CurrentTenant, id: KeyId) -> None:
    """Revoke a key. It stays in the list."""
    tenant.revoke_key(id)
