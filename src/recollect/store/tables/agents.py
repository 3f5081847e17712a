"""Rows of agents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import getrandbits

from recollect.errors import Conflict, NotFound
from recollect.model import Agent, Kind, Owner
from recollect.store.engine import Unit, Units
from recollect.store.tables.rows import agent_from, agent_values, owner_params

LIFE_BITS = 62
"""Size of the random number that tells one generation of an agent's index from the next."""

NO_SUCH_AGENT = "There is no such agent."


def make_agent(unit: Unit, agent: Agent) -> bool:
    """Add the agent, and its tenant if missing. Return False if the agent exists."""
    unit.run("add_tenant", tenant=agent.owner.tenant, now=agent.created_at)
    return unit.run("add_agent", **agent_values(agent)) > 0


class AgentRows(Units):
    """Implementation of `ports.AgentStore`."""

    def add_agent(self, agent: Agent) -> Agent:
        if not self._write(agent.owner.tenant, lambda unit: make_agent(unit, agent)):
            raise Conflict(f"Agent {agent.id!r} already exists.")
        return agent

    def get_agent(self, owner: Owner) -> Agent:
        agent = self.find_agent(owner)
        if agent is None:
            raise NotFound(NO_SUCH_AGENT)
        return agent

    def find_agent(self, owner: Owner) -> Agent | None:
        row = self._read(owner.tenant, lambda unit: unit.one("find_agent", **owner_params(owner)))
        return None if row is None else agent_from(row)

    def list_agents(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Agent]:
        rows = self._read(tenant, lambda unit: unit.all("list_agents", tenant=tenant, after=after, limit=limit))
        return [agent_from(row) for row in rows]

    def update_agent(self, agent: Agent) -> Agent:
        if not self._write(agent.owner.tenant, lambda unit: unit.run("update_agent", **agent_values(agent))):
            raise NotFound(NO_SUCH_AGENT)
        return agent

    def delete_agent(self, owner: Owner) -> None:
        if not self._write(owner.tenant, lambda unit: unit.run("delete_agent", **owner_params(owner))):
            raise NotFound(NO_SUCH_AGENT)

    def count_memories(self, owner: Owner) -> Mapping[Kind, int]:
        if owner.user is None:
            return self.count_memories_by_agent(owner.tenant, [owner.agent])[owner.agent]
        rows = self._read(owner.tenant, lambda unit: unit.all("count_memories_of_user", **owner_params(owner)))
        return dict.fromkeys(Kind, 0) | {Kind(kind): count for kind, count in rows}

    def count_memories_by_agent(self, tenant: str, agents: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        counts = {agent: dict.fromkeys(Kind, 0) for agent in agents}
        if counts:
            values = {"tenant": tenant, "first": min(counts), "last": max(counts)}
            for agent, kind, count in self._read(tenant, lambda unit: unit.all("count_memories", **values)):
                if agent in counts:
                    counts[agent][Kind(kind)] = count
        return counts


def renew_index(unit: Unit, agent: str) -> None:
    """Make every process discard its cached copy of the agent's index and reload it completely."""
    unit.run("renew_index", tenant=unit.tenant, agent=agent, life=getrandbits(LIFE_BITS))
