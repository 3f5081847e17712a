"""Iteration over a tenant's agents, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from wellkept.model import Owner

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

Progress = Callable[[int, int], None]
"""Callback that receives the number of steps done and the total."""


def iter_owners(store: SqlStore, tenant: str) -> Iterator[Owner]:
    """Yield the owner of every agent of a tenant, ordered by id."""
    after = ""
    while agents := store.list_agents(tenant, after=after):
        yield from (agent.owner for agent in agents)
        after = agents[-1].id
