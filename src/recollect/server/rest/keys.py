"""Who may come in: `/api/keys`, for admins."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query

from recollect.server.auth import CurrentTenant
from recollect.server.paging import read_page
from recollect.server.rest import cursor
from recollect.server.rest.answers import IssuedKeyBody, KeyBody, KeyPage
from recollect.server.rest.bodies import NewKey, Paging

LISTING = "keys"

router = APIRouter(prefix="/api/keys", tags=["keys"])
KeyId = Annotated[str, Path(description="The key's id: the part of it between tenant and secret.")]


@router.get("")
def list_keys(tenant: CurrentTenant, paging: Annotated[Paging, Query()]) -> KeyPage:
    """The tenant's keys, oldest first, also those that were revoked or have expired. Never the keys themselves."""
    after = cursor.decode_place(LISTING, paging.cursor) if paging.cursor else None
    page = read_page(
        lambda after, limit: tenant.list_keys(after=after, limit=limit),
        attrgetter("created_at", "id"),
        after,
        limit=paging.limit,
    )
    return KeyPage(items=[KeyBody.of(each) for each in page.items], next_cursor=cursor.encode_next(LISTING, page.end))


@router.post("", status_code=201)
def create_key(tenant: CurrentTenant, body: NewKey) -> IssuedKeyBody:
    """Make a key for this tenant, which can do no more than yours. It is told this once; only its hash is kept."""
    issued = tenant.add_key(
        body.scope, name=body.name, expires_at=body.expires_at, agents=body.agents, trust=body.trust
    )
    return IssuedKeyBody.of(issued.record, key=issued.key)


@router.delete("/{id}", status_code=204)
def revoke_key(tenant: CurrentTenant, id: KeyId) -> None:
    """From now on the key opens nothing. It stays in the list."""
    tenant.revoke_key(id)
