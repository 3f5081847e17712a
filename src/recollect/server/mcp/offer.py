"""What one client is offered: whose memory, which sets of tools, and whether it may write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recollect.api.recollect import AgentMemory
from recollect.errors import Invalid
from recollect.settings import Settings
from recollect.tools import catalog
from recollect.tools.guidance import guidance
from recollect.tools.spec import Tool

READ_ONLY = "This connection may only read your memory: nothing can be stored, changed or deleted over it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The sets decide about resources and prompts, too: see `resources` and `prompts`."""

    memory: AgentMemory
    sets: Sequence[str]
    may_write: bool = True

    @property
    def tools(self) -> Sequence[Tool]:
        """Those that can be called."""
        return [tool for tool in self.known_tools if self.may_write or tool.is_read_only]

    @property
    def known_tools(self) -> Sequence[Tool]:
        """Those of the sets, also what only somebody who may write can call."""
        return catalog.in_sets(self.sets)

    @property
    def instructions(self) -> str:
        """What a model should know before it uses the tools."""
        advice = guidance({tool.set for tool in self.tools})
        return advice if self.may_write else f"{advice}\n\n{READ_ONLY}"


def existing_sets(wanted: Iterable[str]) -> Sequence[str]:
    """Those of the wanted sets that this version has. The names of the default setting are known even if it has not.

    Raises: Invalid for any other name, or if nothing is left.
    """
    known = Settings().tool_sets
    existing = [name for name in wanted if name in catalog.SETS or name not in known]
    if not existing:
        raise Invalid(f"No tools would be offered; the sets are {', '.join(catalog.SETS)}.")
    catalog.in_sets(existing)
    return existing
