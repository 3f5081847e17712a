"""The caller of the current request: its name in the audit log and the limits of its key.

The server sets it for every request; threads and tasks inherit it. A program that uses the library has no limits and
can name itself with `acting_as`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from wellkept.arguments import checked
from wellkept.errors import Forbidden, Invalid
from wellkept.model import KeyScope, Origin

OPERATOR, CLI, MCP = "operator", "cli", "mcp"
OWN_ACTORS = (OPERATOR, CLI, MCP)
"""Actors that are wellkept's programs: a server without keys, the command line, MCP over stdio."""

MAX_ACTOR_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Identity of the caller and the limits of its key."""

    actor: str = ""  # a key's id, or a program's name; empty: unnamed
    scope: KeyScope | None = None  # None: no key, so everything is allowed
    agents: tuple[str, ...] = ()  # empty: all agents
    trust: Origin | None = None  # the most trusted origin it may claim; None: any
    user: str | None = None  # the only user it acts for, by its key or its request; None: any

    def is_allowed(self, agent: str) -> bool:
        """Return True if the caller may use this agent."""
        return not self.agents or agent in self.agents

    def check_agent(self, agent: str) -> None:
        """Refuse agents outside the key's limit, whether or not they exist, so that the answer leaks nothing.

        Raises: Forbidden.
        """
        if not self.is_allowed(agent):
            raise Forbidden(f"This key is limited to the agents {', '.join(self.agents)}.")

    def own_user(self, user: str | None) -> str | None:
        """Return the user to act for: the one of the caller, or else the one named. Raises: Forbidden."""
        if self.user is not None and user not in (None, self.user):
            raise Forbidden(f"This request is limited to the user {self.user}.")
        return user if self.user is None else self.user

    def check_all_users(self) -> None:
        """Refuse a caller that acts for one user. Raises: Forbidden."""
        if self.user is not None:
            raise Forbidden("This does not belong to one user; use a key and a request that are not limited to a user.")

    def check_whole_tenant(self) -> None:
        """Refuse a key that is limited to some agents or to a user. Raises: Forbidden."""
        self.check_all_users()
        if self.agents:
            raise Forbidden("This affects all agents of the tenant; use a key that is not limited to agents.")

    def own_agent(self, agent: str | None) -> str | None:
        """Return the agent to record something for: the one named, or else the only one of a limited key.

        Raises: Invalid when the key is limited to several agents and none is named.
        """
        if agent is not None or not self.agents:
            return agent
        if len(self.agents) > 1:
            raise Invalid(f"This key is limited to several agents; name one of them: {', '.join(self.agents)}.")
        return self.agents[0]

    def default_agent(self, fallback: str) -> str:
        """Return the agent to use when a request names none: the key's own, if it is limited to one."""
        return self.agents[0] if len(self.agents) == 1 else fallback


_CALLER: ContextVar[Caller] = ContextVar("wellkept_caller", default=Caller())  # noqa: B039  it is frozen


def current_caller() -> Caller:
    """Return the caller of the current thread or task."""
    return _CALLER.get()


@contextmanager
def use_caller(caller: Caller) -> Iterator[None]:
    """Set the caller for the block."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)


@contextmanager
@checked
def acting_as(actor: str) -> Iterator[None]:
    """Set the actor that the audit log names for the block: `with acting_as("nightly-job"): …`. Raises: Invalid."""
    if not 1 <= len(actor) <= MAX_ACTOR_CHARS or not actor.isprintable():
        raise Invalid(f"An actor is a name of 1 to {MAX_ACTOR_CHARS} printable characters on one line.")
    with use_caller(replace(current_caller(), actor=actor)):
        yield
