"""What a tenant is moved by: its rows, and files of other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from recollect.model import ForeignItem


class ForeignFormat(Protocol):
    """How another program writes its memories to a file."""

    name: str  # what `--from` is given: "mem0"

    def recognises(self, path: Path) -> bool:
        """Whether a file looks like one of this format; reads no more of it than that takes, and never raises Invalid.

        Raises: OSError.
        """

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Everything in the file, piece by piece; what makes no sense as `Refused`, so that the rest still comes in.

        Raises: Invalid when the file as a whole is not of this format; OSError.
        """


class ForeignFormats(Protocol):
    """The formats of other programs that can be read."""

    @property
    def names(self) -> Sequence[str]: ...

    def named(self, name: str) -> ForeignFormat:
        """Raises: Invalid, which lists the names there are."""

    def recognise(self, path: Path) -> ForeignFormat:
        """The format a file looks like.

        Raises: Invalid when it looks like none of them, or cannot be read.
        """
