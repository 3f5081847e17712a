"""Readers for the files of other memory programs, one module for each format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wellkept.errors import Invalid
from wellkept.importers.chatgpt import ChatGpt
from wellkept.importers.claude import Claude
from wellkept.importers.files import ForeignFormat
from wellkept.importers.langgraph import LangGraph
from wellkept.importers.mcp_memory import McpMemory
from wellkept.importers.mem0 import Mem0

FORMATS: Sequence[ForeignFormat] = (ChatGpt(), Claude(), McpMemory(), LangGraph(), Mem0())
"""Formats in the order in which they are tried on a file, most specific first."""

OWN = "wellkept"
"""Name of wellkept's own export format."""


class Importers:
    """All formats of other programs that can be imported."""

    @property
    def names(self) -> Sequence[str]:
        return [each.name for each in FORMATS]

    def named(self, name: str) -> ForeignFormat:
        """Raises: Invalid."""
        for each in FORMATS:
            if each.name == name:
                return each
        raise Invalid(f"There is no format {name[:40]!r}; choose {', '.join([OWN, *self.names])}.")

    def recognise(self, path: Path) -> ForeignFormat:
        """Raises: Invalid."""
        try:
            for each in FORMATS:
                if each.recognises(path):
                    return each
        except OSError as error:
            raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error
        known = ", ".join([OWN, *self.names])
        raise Invalid(f"{path.name}: is not in a format that can be imported; name the format: {known}.")
