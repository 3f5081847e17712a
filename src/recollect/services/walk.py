"""Going over everything a tenant has, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from recollect.model import Owner
from recollect.ports import AgentStore

Progress = Callable[[int, int], None]
"""Is told how much is done, of how much."""


def owners(store: AgentStore, tenant: str) -> Iterator[Owner]:
    """Every agent of a tenant, by id."""
    after = ""
    while agents := store.list_agents(tenant, after=after):
        yield from (agent.owner for agent in agents)
        after = agents[-1].id
