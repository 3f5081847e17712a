"""Who is asking, as the door (`access`) has noted it: the one place that says whose memories a route means."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Request

from recollect.api import AgentMemory, Recollect, TenantMemory
from recollect.errors import Unauthorized
from recollect.server.access import NO_KEY, Access


async def current_recollect(request: Request) -> Recollect:
    """The store this app serves."""
    recollect: Recollect = request.app.state.recollect
    return recollect


async def possible_access(request: Request) -> Access | None:
    """Who is asking, if anybody said so; only for routes without a key."""
    access: Access | None = request.state.access
    return access


async def current_access(request: Request) -> Access:
    """Raises: Unauthorized, should a route without a key ask for it."""
    access: Access | None = request.state.access
    if access is None:
        raise Unauthorized(NO_KEY)
    return access


CurrentRecollect = Annotated[Recollect, Depends(current_recollect)]
CurrentAccess = Annotated[Access, Depends(current_access)]
PossibleAccess = Annotated[Access | None, Depends(possible_access)]


async def current_tenant(recollect: CurrentRecollect, access: CurrentAccess) -> TenantMemory:
    """The tenant of this request: the key's, or that of the settings on a server without keys."""
    return recollect.tenant(access.tenant)


CurrentTenant = Annotated[TenantMemory, Depends(current_tenant)]


async def current_agent(
    tenant: CurrentTenant,
    agent: Annotated[str, Path(description="The agent's id.", examples=["atlas"])],
) -> AgentMemory:
    """The memory of the agent in the path, within the tenant of this request."""
    return tenant.agent(agent)


CurrentAgent = Annotated[AgentMemory, Depends(current_agent)]
