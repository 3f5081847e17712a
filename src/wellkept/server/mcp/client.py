"""The context of an MCP client: its agent's memory, its sets of tools, and whether it may write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wellkept.api.wellkept import AgentMemory
from wellkept.errors import Invalid
from wellkept.tools import catalog
from wellkept.tools.guidance import guidance
from wellkept.tools.spec import Tool

NAME, TITLE = "wellkept", "Wellkept"
READ_ONLY = "This connection may only read your memory: nothing can be stored, changed or deleted over it."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientContext:
    """The sets select resources and prompts, too."""

    memory: AgentMemory
    sets: Sequence[str]
    may_write: bool = True
    session_id: str | None = None  # conversation of the host, if it names one

    def for_reader(self) -> ClientContext:
        """Return the context with the memory of the conversation's user, if it has one. Reads the store."""
        view = self.memory if self.session_id is None else self.memory.sessions.reader(self.session_id)
        return replace(self, memory=view) if view.owner.user else self

    @property
    def tools(self) -> Sequence[Tool]:
        """Tools that can be called."""
        return [tool for tool in self.known_tools if self.may_write or tool.is_read_only]

    @property
    def known_tools(self) -> Sequence[Tool]:
        """Tools of the sets, with those that require the right to write."""
        return catalog.select_tools(self.sets)

    @property
    def instructions(self) -> str:
        """Instructions for the model."""
        advice = guidance({tool.set for tool in self.tools})
        return advice if self.may_write else f"{advice}\n\n{READ_ONLY}"


def select_sets(requested: Iterable[str]) -> Sequence[str]:
    """Return the requested sets if all of them exist.

    Raises: Invalid, also if there are none.
    """
    sets = list(requested)
    if not sets:
        raise Invalid(f"No tools are selected; the sets are {', '.join(catalog.SETS)}.")
    catalog.select_tools(sets)
    return sets
