"""What a tenant is moved by: its rows, and files of other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import IO, Protocol

from recollect.model import ForeignItem, Json
from recollect.ports.details import ContentDraft
from recollect.ports.providers import Vector


class TransferStore(Protocol):
    """A whole tenant as rows that mean the same to every engine: `docs/transfer.md` tells what is in them."""

    def export_rows(self, tenant: str, take: Callable[[str, Json], None]) -> None:
        """Hand every row, with the name of its table, to `take`: what others refer to comes first, and all of it is as
        it was at one moment. Long texts come in pieces, as rows of `detail_contents`."""

    def check_row(self, table: str, row: object) -> None:
        """Raises: Invalid when there is no such row in any export."""

    def has_rows(self, tenant: str, table: str) -> bool: ...

    def find_rows(self, tenant: str, table: str, rows: Sequence[Json]) -> Sequence[bool | None]:
        """For each row: None when nothing has its key here, otherwise whether what has it is the same thing."""

    def import_rows(
        self,
        tenant: str,
        table: str,
        rows: Sequence[Json],
        *,
        now: datetime,
        vectors: Sequence[Vector | None] = (),
        text: ContentDraft | None = None,
    ) -> int:
        """Add the rows whose keys are free, all or none, with the `text` they refer to; how many those were. Memories
        and passages bring their vectors. Numbers of passages and steps that are taken here are given anew; events are
        kept as they are, and so must follow those that are there.

        Raises: Conflict.
        """

    def last_imported(self, tenant: str, log: str) -> int:
        """The highest number an event had in the log it was copied from, among those copied from this one."""

    def count_events(self, tenant: str) -> int:
        """The number of the last event of the audit log."""


class ArchiveFiles(Protocol):
    """Files of lines, plain or compressed, on disk."""

    def create(self, path: Path) -> AbstractContextManager[IO[bytes]]:
        """A new file, compressed as its name says (.gz, .zst). It has its name, and takes the place of an older one,
        only when it is whole and on disk; nobody but its owner may read it.

        Raises: Invalid when it cannot be written.
        """

    def lines(self, path: Path, *, max_bytes: int) -> Iterator[tuple[bytes, int]]:
        """Every line, unpacked, and how much of the file has been read by then.

        Raises: Invalid when it cannot be read or unpacked, or a line is longer than `max_bytes`.
        """

    def size(self, path: Path) -> int:
        """Raises: Invalid."""


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
