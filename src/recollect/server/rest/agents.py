"""Agents: `/api/agents`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, cast

from fastapi import APIRouter, Path, Query

from recollect.api.recollect import TenantMemory
from recollect.model import Agent
from recollect.policy.agents import AgentFields
from recollect.server.auth import CurrentTenant
from recollect.server.paging import READ_LARGE_AT_ONCE, read_page
from recollect.server.rest import cursor
from recollect.server.rest.answers import AgentBody, AgentPage, MemoriesCount
from recollect.server.rest.bodies import AgentPatch, NewAgent, Paging

LISTING = "agents"

router = APIRouter(prefix="/api/agents", tags=["agents"])
AgentId = Annotated[str, Path(description="The agent's id.", examples=["atlas"])]


@router.get("")
def list_agents(tenant: CurrentTenant, paging: Annotated[Paging, Query()]) -> AgentPage:
    """All agents, by id."""
    after = cursor.decode(LISTING, paging.cursor) if paging.cursor else ""
    page = read_page(
        lambda after, limit: tenant.list_agents(after=after, limit=limit),
        attrgetter("id"),
        after,
        limit=paging.limit,
        at_once=READ_LARGE_AT_ONCE,
    )
    return AgentPage(items=_bodies(tenant, page.items), next_cursor=cursor.encode_next(LISTING, page.end))


@router.post("", status_code=201)
def create_agent(tenant: CurrentTenant, body: NewAgent) -> AgentBody:
    """Make an agent. It is also made by its first memory; this gives it a name and a prompt beforehand."""
    fields = body.model_dump(exclude_unset=True, exclude={"id"})
    return _body(tenant, tenant.add_agent(body.id, **cast(AgentFields, fields)))


@router.get("/{agent}")
def get_agent(tenant: CurrentTenant, agent: AgentId) -> AgentBody:
    """One agent, with the number of its memories of each kind."""
    return _body(tenant, tenant.get_agent(agent))


@router.patch("/{agent}")
def update_agent(tenant: CurrentTenant, agent: AgentId, body: AgentPatch) -> AgentBody:
    """Change an agent; what is left out stays."""
    fields = body.model_dump(exclude_unset=True)
    return _body(tenant, tenant.update_agent(agent, **cast(AgentFields, fields)))


@router.delete("/{agent}", status_code=204)
def delete_agent(tenant: CurrentTenant, agent: AgentId) -> None:
    """Remove an agent and everything it owns, for good."""
    tenant.delete_agent(agent)


def _body(tenant: TenantMemory, agent: Agent) -> AgentBody:
    return _bodies(tenant, [agent])[0]


def _bodies(tenant: TenantMemory, agents: Sequence[Agent]) -> list[AgentBody]:
    counts = tenant.count_memories_by_agent([agent.id for agent in agents])
    return [
        AgentBody.of(agent, MemoriesCount(**{kind.value: count for kind, count in counts[agent.id].items()}))
        for agent in agents
    ]
