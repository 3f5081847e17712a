"""Agents: `/api/agents`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, ClassVar, cast

from fastapi import Path, Query
from pydantic import BaseModel, Field, Strict, create_model

from wellkept.api.wellkept import TenantMemory
from wellkept.memory.rules_kinds import MAX_CHARS, MAX_TOOLS, AgentFields
from wellkept.model import Agent, Kind
from wellkept.server.http.auth import CurrentTenant
from wellkept.server.http.routing import ADMIN, READ, WRITE, Router
from wellkept.server.paging import READ_LARGE_AT_ONCE, PagedList, decode_cursor
from wellkept.server.rest.shapes import Page, Paging, Patch, RecordBody, describes


class AgentPatch(Patch):
    """Changes to an agent; omitted fields stay. `active` is accepted for `is_active`."""

    other_names: ClassVar[Mapping[str, str]] = {"active": "is_active"}
    name: Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_CHARS["name"]})] = ""
    system_prompt: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["system_prompt"]})] = ""
    model: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["model"]})] = ""
    tools: Annotated[
        list[str], Field(description="Names of tools or sets; empty: all.", json_schema_extra={"maxItems": MAX_TOOLS})
    ] = []
    knowledge_categories: Annotated[
        list[str],
        Field(description="Categories of documents it may search; empty: all.", json_schema_extra={"maxItems": 100}),
    ] = []
    colour: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["colour"]})] = ""
    icon: Annotated[str, Field(json_schema_extra={"maxLength": MAX_CHARS["icon"]})] = ""
    is_active: Annotated[bool, Strict()] = True


class NewAgent(AgentPatch):
    """A new agent; the name defaults to its id."""

    id: Annotated[
        str,
        Field(
            description="Letters, digits and . _ - @ : +; begins with a letter, digit or _.",
            json_schema_extra={"minLength": 1, "maxLength": 128},
            examples=["atlas"],
        ),
    ]


# One field for each kind, so that a new kind needs no change here.
_KINDS: dict[str, Any] = {kind.value: int for kind in Kind}
MemoriesCount: type[BaseModel] = create_model(
    "MemoriesCount", __doc__="Number of memories of each kind, without archived ones.", **_KINDS
)


@describes(Agent)
class AgentBody(RecordBody):
    """An agent."""

    id: str
    active: Annotated[bool, Field(description="The same as is_active.")]
    memories_count: MemoriesCount  # type: ignore[valid-type]


class AgentPage(Page[AgentBody]):
    """Agents by id."""


LISTING = PagedList("agents", decode_cursor, attrgetter("id"), "", READ_LARGE_AT_ONCE)

router = Router(prefix="/api/agents", tags=["agents"])
AgentId = Annotated[str, Path(description="The agent's id.", examples=["atlas"])]


@router.get("", scope=READ)
def list_agents(tenant: CurrentTenant, paging: Annotated[Paging, Query()]) -> AgentPage:
    """List all agents, by id."""
    found, cursor = LISTING.read(tenant.agents.list, paging)
    return AgentPage(items=_bodies(tenant, found), next_cursor=cursor)


@router.post("", scope=WRITE, status_code=201)
def create_agent(tenant: CurrentTenant, body: NewAgent) -> AgentBody:
    """Create an agent with a name and a prompt. The first memory of an agent creates it, too."""
    fields = body.model_dump(exclude_unset=True, exclude={"id"})
    return _body(tenant, tenant.agents.add(body.id, **cast(AgentFields, fields)))


@router.get("/{agent}", scope=READ)
def get_agent(tenant: CurrentTenant, agent: AgentId) -> AgentBody:
    """Return an agent, with the number of its memories of each kind."""
    return _body(tenant, tenant.agents.get(agent))


@router.patch("/{agent}", scope=WRITE)
def update_agent(tenant: CurrentTenant, agent: AgentId, body: AgentPatch) -> AgentBody:
    """Change an agent; omitted fields stay."""
    fields = body.model_dump(exclude_unset=True)
    return _body(tenant, tenant.agents.update(agent, **cast(AgentFields, fields)))


@router.delete("/{agent}", scope=ADMIN, status_code=204)
def delete_agent(tenant: CurrentTenant, agent: AgentId) -> None:
    """Delete an agent and everything it owns permanently."""
    tenant.agents.delete(agent)


def _body(tenant: TenantMemory, agent: Agent) -> AgentBody:
    return _bodies(tenant, [agent])[0]


def _bodies(tenant: TenantMemory, agents: Sequence[Agent]) -> list[AgentBody]:
    counts = tenant.agents.count_memories_by_agent([agent.id for agent in agents])
    return [AgentBody.of(each, memories_count=counts[each.id], active=each.is_active) for each in agents]
