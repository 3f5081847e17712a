"""Rows of agents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from random import getrandbits

from wellkept.errors import Conflict, NotFound
from wellkept.model import Agent, DayCount, Kind, Owner, TenantStats, UserCount
from wellkept.store.engine import Row, Unit, Units, owner_params
from wellkept.store.tables.rows import agent_from, agent_values, memory_from, moment, note_change

LIFE_BITS = 62
"""Size of the random number that tells one generation of an agent's index from the next."""

MAX_COUNTED_EVENTS = 20_000
"""Newest events of the audit log that are counted by day; the log has no index by time."""

MAX_COUNTED_USERS = 8
"""Users of each agent whose memories are counted by day, those who wrote most."""

NO_SUCH_AGENT = "There is no such agent."


def make_agent(unit: Unit, agent: Agent) -> bool:
    """Add the agent, and its tenant if missing. Return False if the agent exists."""
    unit.put("add_tenant", tenant=agent.owner.tenant, now=agent.created_at)
    return unit.run("add_agent", **agent_values(agent)) > 0


def ensure_agent(unit: Unit, owner: Owner, now: datetime) -> None:
    """Add the agent, under its id as name, if it is missing."""
    make_agent(unit, Agent(owner=owner, name=owner.agent, created_at=now, updated_at=now))


class AgentRows(Units):
    """Agents and their settings."""

    def add_agent(self, agent: Agent) -> Agent:
        """Add an agent. Raises: Conflict when the tenant has an agent with that id."""
        if not self.write(agent.owner.tenant, lambda unit: make_agent(unit, agent)):
            raise Conflict(f"Agent {agent.id!r} already exists.")
        return agent

    def get_agent(self, owner: Owner) -> Agent:
        """Return one agent. Raises: NotFound."""
        return agent_from(self._get(owner, "find_agent", NO_SUCH_AGENT))

    def find_agent(self, owner: Owner) -> Agent | None:
        row = self._one(owner, "find_agent")
        return None if row is None else agent_from(row)

    def list_agents(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Agent]:
        """List agents by id, starting after `after`."""
        return [*map(agent_from, self._all(tenant, "list_agents", after=after, limit=limit))]

    def iter_owners(self, tenant: str) -> Iterator[Owner]:
        """Yield the owner of every agent of a tenant, ordered by id."""
        after = ""
        while agents := self.list_agents(tenant, after=after):
            yield from (agent.owner for agent in agents)
            after = agents[-1].id

    def update_agent(self, agent: Agent) -> Agent:
        """Replace the stored fields of an agent. Raises: NotFound."""
        if not self._run(agent.owner.tenant, "update_agent", **agent_values(agent)):
            raise NotFound(NO_SUCH_AGENT)
        return agent

    def delete_agent(self, owner: Owner) -> None:
        """Delete the agent and everything it owns. Raises: NotFound."""
        if not self._run(owner, "delete_agent"):
            raise NotFound(NO_SUCH_AGENT)

    def find_consolidated(self, owner: Owner) -> tuple[int, int]:
        """Return the numbers of an agent's newest memory, and of the newest that consolidation has examined."""
        row = self._one(owner, "find_consolidated")
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def keep_consolidated(self, owner: Owner, seq: int) -> None:
        self._run(owner, "keep_consolidated", seq=seq)

    def find_compared(self, owner: Owner) -> int:
        """Return the number of an agent's newest memory whose facts a model has compared."""
        row = self._one(owner, "find_compared")
        return 0 if row is None else int(row[0])

    def keep_compared(self, owner: Owner, seq: int) -> bool:
        """Store that number, unless another process has stored a higher one; return True if it was stored."""
        return bool(self._run(owner, "keep_compared", seq=seq))

    def count_memories(self, owner: Owner) -> Mapping[Kind, int]:
        """Count memories that are not archived, for every kind."""
        if owner.user is None:
            return self.count_memories_by_agent(owner.tenant, [owner.agent])[owner.agent]
        rows = self._all(owner, "count_memories_of_user")
        return dict.fromkeys(Kind, 0) | {Kind(kind): count for kind, count in rows}

    def count_memories_by_agent(self, tenant: str, agents: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        """Count them for many agents in one query; the result has an entry for each agent."""
        counts = {agent: dict.fromkeys(Kind, 0) for agent in agents}
        if counts:
            for agent, kind, count in self._all(tenant, "count_memories", first=min(counts), last=max(counts)):
                if agent in counts:
                    counts[agent][Kind(kind)] = count
        return counts

    def count_days(self, tenant: str, *, since: datetime, now: datetime, expiring: int) -> TenantStats:
        """Count memories, events, prompts, recalls and what users wrote of each day from `since`, and what waits; list
        what expires next.

        Notes of a workspace's file are left out.
        """
        values = {"tenant": tenant, "since": since}

        def read(unit: Unit) -> TenantStats:
            shelf = unit.one("audit_head", tenant=tenant)
            after = 0 if shelf is None else shelf[0] - MAX_COUNTED_EVENTS
            prompts = unit.all("count_prompts_by_day", **values)
            soon = unit.all("list_expiring", tenant=tenant, now=now, limit=expiring)
            recalls = unit.all("count_recalls_by_day", tenant=tenant, since=since.date().isoformat())
            writers = unit.all("count_users_by_day", **values, limit=MAX_COUNTED_USERS)
            return TenantStats(
                counted_at=now,
                first_day=since.date(),
                memories=tuple(_day_count(*row) for row in unit.all("count_memories_by_day", **values)),
                events=tuple(_day_count(*row) for row in unit.all("count_events_by_day", **values, after=after)),
                prompts=tuple(
                    _day_count(agent, name, day, count)
                    for agent, day, *counts in prompts
                    for name, count in zip(("prompts", "tokens"), counts, strict=True)
                ),
                recalls=tuple(_day_count(agent, "recalls", day, count) for agent, day, count in recalls),
                users=tuple(_day_count(*row) for row in writers),
                review=dict(map(tuple, unit.all("count_for_review", tenant=tenant))),
                changes=dict(map(tuple, unit.all("count_proposed_changes", tenant=tenant))),
                expiring=tuple(map(memory_from, soon)),
                index_bytes=int(unit.all("count_index_bytes", tenant=tenant)[0][0]),
            )

        return self.read(tenant, read)

    def count_users(
        self, tenant: str, *, agents: Collection[str] = (), after: str = "", limit: int = 100
    ) -> Sequence[UserCount]:
        """Count the memories and sessions of each end user, by id, starting after the id `after`.

        `agents` limits the count to these agents.
        """
        values = {"after": after, "is_any": not agents, "names": sorted(agents), "limit": limit}
        rows = self._all(tenant, "count_users", **values)
        return [
            UserCount(user=user, agents=count, memories=int(memories), sessions=int(sessions), last_at=moment(last_at))
            for user, count, memories, sessions, last_at in rows
        ]


def _day_count(agent: str | None, name: str, day: str, count: int) -> DayCount:
    # Records from before the first day have an empty one.
    return DayCount(agent=agent or "", name=name, day=date.fromisoformat(day) if day else None, count=int(count))


def renew_index(unit: Unit, agent: str) -> None:
    """Make every process discard its cached copy of the agent's index and reload it completely."""
    unit.memo.pop(("agent", agent), None)
    unit.put("renew_index", tenant=unit.tenant, agent=agent, life=getrandbits(LIFE_BITS))


def hold_agent(unit: Unit, owner: Owner, now: datetime) -> None:
    """Lock the row of an agent until the transaction ends, so that nobody else writes its memories."""
    keep_agent(unit, owner, ask_agent(unit, owner)(), now)


def ask_agent(unit: Unit, owner: Owner) -> Callable[[], Row | None]:
    """Lock the row of an agent, unless this transaction has; the function returned reads its counters."""
    held = unit.memo.get(("agent", owner.agent))
    return unit.ask("hold_agent", **owner_params(owner)) if held is None else lambda: held


def keep_agent(unit: Unit, owner: Owner, row: Row | None, now: datetime) -> bool:
    """Keep the counters of a locked row: only this transaction can change them now. Return False if it was missing."""
    is_known = row is not None
    if row is None:
        ensure_agent(unit, owner, now)
        # Taking no numbers locks the row.
        row = unit.one("take_numbers", **owner_params(owner), count=0)
    unit.memo["agent", owner.agent] = row
    return is_known


def touch_index(unit: Unit, owner: Owner) -> None:
    """Mark a change of the agent's index other than an append. Locks the agent's row."""
    note_change(unit)
    unit.put("touch_index", **owner_params(owner))
    if (held := unit.memo.get(("agent", owner.agent))) is not None:
        last_seq, life, rewrites = held
        unit.memo["agent", owner.agent] = (last_seq, life, rewrites + 1)


def take_numbers(unit: Unit, owner: Owner, count: int, now: datetime) -> int:
    """Reserve numbers for new memories; return the last of them."""
    held = unit.memo.get(("agent", owner.agent))
    if held is None:
        return run_counter(unit, "take_numbers", owner, now, count=count)
    unit.put("take_numbers", **owner_params(owner), count=count)
    last = int(held[0]) + count
    unit.memo["agent", owner.agent] = (last, *held[1:])
    return last


def run_counter(unit: Unit, name: str, owner: Owner, now: datetime, **values: int) -> int:
    """Run a statement on the counter in the agent's row and return its result. Add the agent if it is missing."""
    row = unit.one(name, **owner_params(owner), **values)
    if row is None:
        ensure_agent(unit, owner, now)
        row = unit.one(name, **owner_params(owner), **values)
    assert row is not None
    unit.memo["agent", owner.agent] = row
    return int(row[0])
