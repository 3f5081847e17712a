"""Protocol of a file format of another memory program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from wellkept.model import ForeignItem


class ForeignFormat(Protocol):
    """File format of another memory program."""

    name: str  # the value of `--from`, such as "mem0"

    def recognises(self, path: Path) -> bool:
        """Return True if the file looks like this format. Reads as little as possible and never raises Invalid.

        Raises: OSError.
        """

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Yield every item of the file; invalid ones as `RefusedItem`, so that the rest is still imported.

        Raises: Invalid when the file as a whole is not of this format; OSError.
        """
