"""The profile: what stands of a user, and of whoever the user spoke about, in a stable order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wellkept.extension import Clock
from wellkept.facts.rules_profile import PROFILE_HEADING, is_about, select_lines
from wellkept.model import Memory, Owner, Profile
from wellkept.prompt.rules_escaping import escape_item

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_FACTS = 1_000
"""Newest facts that are read."""


class Profiles:
    """Service that reads profiles."""

    def __init__(self, store: SqlStore, now: Clock) -> None:
        self._store = store
        self._now = now

    def __call__(self, owner: Owner, subject: str | None = None) -> Profile:
        """Return the profile of a user, or only what is about `subject`: "user", a name, a relation or a thing."""
        told = self.list_told(owner)
        facts = [each for each in told if each.fact is not None]
        if subject is not None:
            facts = is_about(facts, subject)
        lines = select_lines(told if subject is None else facts)
        text = "\n".join([PROFILE_HEADING, *(f"- {escape_item(each.text)}" for each in lines)]) if lines else ""
        return Profile(facts=tuple(facts), text=text)

    def list_told(self, owner: Owner) -> Sequence[Memory]:
        """Return what stands of what users said, newest first: facts and remarks."""
        return self._store.list_told(owner, now=self._now(), limit=MAX_FACTS)
