"""Who is asking. The one place that decides whose memories a request may touch."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Request

from recollect.api import AgentMemory, Recollect, TenantMemory


async def current_recollect(request: Request) -> Recollect:
    """The store this app serves."""
    recollect: Recollect = request.app.state.recollect
    return recollect


async def current_tenant(request: Request) -> TenantMemory:
    """The tenant of this request: without a login, the one the app was made for."""
    tenant: TenantMemory = request.app.state.tenant
    return tenant


CurrentRecollect = Annotated[Recollect, Depends(current_recollect)]
CurrentTenant = Annotated[TenantMemory, Depends(current_tenant)]


async def current_agent(
    tenant: CurrentTenant,
    agent: Annotated[str, Path(description="The agent's id.", examples=["atlas"])],
) -> AgentMemory:
    """The memory of the agent in the path, within the tenant of this request."""
    return tenant.agent(agent)


CurrentAgent = Annotated[AgentMemory, Depends(current_agent)]
