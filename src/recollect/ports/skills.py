"""Where skills come from."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

from recollect.model import Skill


class SkillFiles(Protocol):
    """Files that each hold one skill."""

    def stamps(self) -> Mapping[str, Hashable]:
        """Every file there is, with something that changes when the file does. Cheap enough for every call.

        Raises: Invalid when a folder cannot be read.
        """

    def read(self, path: str) -> Skill:
        """Raises: Invalid, which names the file and the line."""
