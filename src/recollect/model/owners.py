"""Owners of records: an agent inside a tenant, or one end user of it."""

from __future__ import annotations

from dataclasses import dataclass

NO_USER = ""
"""User of an `Owner` that has only the records of no user."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of memories, one agent inside one tenant; with a `user`, narrowed to the records of one end user.

    A record names its agent as owner and its user in a field of its own.
    """

    tenant: str
    agent: str
    user: str | None = None  # None: all records of the agent; `NO_USER`: those of no user
    with_shared: bool = True  # a user also reads the records of no user

    @property
    def whole(self) -> Owner:
        """The agent with all its users."""
        return self if self.user is None else Owner(self.tenant, self.agent)

    def of(self, user: str | None) -> Owner:
        """Return the owner of exactly one user's records, or of those of no user."""
        return Owner(self.tenant, self.agent, user or NO_USER, with_shared=False)

    @property
    def parts(self) -> tuple[Owner, ...]:
        """The owners that together have what this one reads, each of one user at most."""
        return (self.of(self.user), self.of(None)) if self.user and self.with_shared else (self,)

    def has(self, user: str | None) -> bool:
        """Return True if it reads the records of `user`."""
        return self.user is None or (user or NO_USER) == self.user or (user is None and self.with_shared)
