"""Who is asking, as the door (`access`) has noted it: the one place that says whose memories a route means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Path, Request
from starlette.types import Scope

from recollect.api.recollect import AgentMemory, Recollect, TenantMemory
from recollect.errors import Forbidden, NotFound, Unauthorized
from recollect.server.access import NO_KEY, NO_SUCH_AGENT, Access


class Asked(NamedTuple):
    """A request, and the parameters in its path."""

    scope: Scope
    path: Mapping[str, str]


def _recollect(asked: Asked) -> Recollect:
    recollect: Recollect = asked.scope["app"].state.recollect
    return recollect


def _possible_access(asked: Asked) -> Access | None:
    access: Access | None = asked.scope["state"]["access"]
    return access


def _access(asked: Asked) -> Access:
    access = _possible_access(asked)
    if access is None:
        raise Unauthorized(NO_KEY)
    return access


def _tenant(asked: Asked) -> TenantMemory:
    return _recollect(asked).tenant(_access(asked).tenant)


def _agent(asked: Asked) -> AgentMemory:
    return _tenant(asked).agent(asked.path["agent"])


def readable_agent(tenant: TenantMemory, id: str) -> AgentMemory:
    """Return the memory of an agent that a query names.

    Raises: Invalid; NotFound when the key is limited to other agents, as for one in the path.
    """
    try:
        return tenant.agent(id)
    except Forbidden:
        raise NotFound(NO_SUCH_AGENT) from None


async def current_recollect(request: Request) -> Recollect:
    """The store this app serves."""
    return _recollect(Asked(request.scope, request.path_params))


async def possible_access(request: Request) -> Access | None:
    """Who is asking, if anybody said so; only for routes without a key."""
    return _possible_access(Asked(request.scope, request.path_params))


async def current_access(request: Request) -> Access:
    """Raises: Unauthorized, should a route without a key ask for it."""
    return _access(Asked(request.scope, request.path_params))


CurrentRecollect = Annotated[Recollect, Depends(current_recollect)]
CurrentAccess = Annotated[Access, Depends(current_access)]
PossibleAccess = Annotated[Access | None, Depends(possible_access)]


async def current_tenant(request: Request) -> TenantMemory:
    """The tenant of this request: the key's, or that of the settings on a server without keys."""
    return _tenant(Asked(request.scope, request.path_params))


CurrentTenant = Annotated[TenantMemory, Depends(current_tenant)]


async def current_agent(
    request: Request, agent: Annotated[str, Path(description="The agent's id.", examples=["atlas"])]
) -> AgentMemory:
    """The memory of the agent in the path, within the tenant of this request."""
    return _agent(Asked(request.scope, {"agent": agent}))


CurrentAgent = Annotated[AgentMemory, Depends(current_agent)]

DEPENDENCIES: Mapping[object, Callable[[Asked], Any]] = {
    current_recollect: _recollect,
    possible_access: _possible_access,
    current_access: _access,
    current_tenant: _tenant,
    current_agent: _agent,
}
"""The same without the framework; see `direct`."""
