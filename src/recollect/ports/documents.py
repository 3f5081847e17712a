"""What turns files into documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from recollect.policy.chunking import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file says: its structure, and the title it gives itself, if any."""

    title: str
    parts: Sequence[Part]


class DocumentFiles(Protocol):
    """Files on disk, and what is in them."""

    def locate(self, given: str | Path) -> Path | None:
        """The file or folder this names; None when it is a text of its own.

        Raises: Invalid when it can only be a path, and nothing is there.
        """

    def is_folder(self, path: Path) -> bool: ...

    def load(self, path: Path) -> bytes:
        """Raises: Invalid when the file cannot be read or is too large."""

    def walk(self, folder: Path, *, include: Sequence[str], exclude: Sequence[str]) -> Sequence[Path]:
        """The files of a folder and all below it that can be read here, by path, relative to the folder.

        Raises: Invalid when the folder cannot be read.
        """

    def read(self, content: bytes, *, name: str) -> Reading:
        """What a file of this name says; without a name it is a text, and read as Markdown.

        Raises: Invalid, which says what is wrong with it.
        """
