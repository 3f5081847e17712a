"""What services need to move, erase and check a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import IO, Protocol

from recollect.model import Erased, ForeignItem, IndexGaps, Json, Key, Owner, StoreState, Trace, WrongWords
from recollect.ports.content import ContentDraft
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


class ErasureStore(Protocol):
    """What is needed to leave no trace."""

    def list_traces(
        self,
        tenant: str,
        table: str,
        *,
        agent: str = "",
        session_id: str = "",
        after: Key = (),
        limit: int = 500,
    ) -> Sequence[Trace]:
        """The rows of a table with all their texts, by key, beginning behind `after`. A table of agents' rows is read
        for one agent; `session_id` leaves out what belongs to no session or to another."""

    def list_hanging(self, tenant: str, parents: Sequence[Trace]) -> Sequence[Trace]:
        """Return the messages, passages and steps of the sessions, documents and workflows among `parents`, without
        their texts."""

    def plan_sealing(self, tenant: str, cleared: Sequence[Trace]) -> object:
        """Work out how the audit log is sealed without the texts of these events, for `erase_traces`. It takes long and
        writes nothing: call it before the transaction."""

    def erase_traces(
        self, tenant: str, gone: Sequence[Trace], cleared: Sequence[Trace], *, sealing: object = None
    ) -> Erased:
        """Remove rows with all that hangs on them, and put a mark in place of the texts of others; what is not there
        any more is left alone. The audit log stays a chain, unless somebody had broken it before."""

    def forget_cached(self, tenant: str) -> None:
        """Let go of what is held in memory of a tenant's rows; it is read again when it is needed."""

    def scrub(self, *, compact: bool | None = None) -> Sequence[str]:
        """Free the bytes of removed rows; return where some may be left, and until when. `compact` writes the files
        anew, which keeps writers waiting; None does what lets them in between."""


class CheckupStore(Protocol):
    """What a store knows about its own condition. All but `mend_index` and `mend_words` change nothing."""

    def describe_store(self) -> StoreState: ...

    def find_damage(self, *, is_quick: bool = False) -> Sequence[str]:
        """What the database finds wrong with itself, a sentence each; at most a few. Otherwise every page is read."""

    def count_index_gaps(self, tenant: str) -> IndexGaps: ...

    def mend_index(self, tenant: str, *, limit: int = 500) -> int:
        """Take out of the search index what is out of date and put in, at most `limit` texts, what is missing, to be
        embedded later; how many entries that were."""

    def find_wrong_words(self, tenant: str) -> Iterator[WrongWords]:
        """Walk over every entry of the search index, a page in memory at a time, and yield those that hold other words
        than their text. An entry that `count_index_gaps` counts as surplus may be left out."""

    def mend_words(self, tenant: str, entries: Sequence[WrongWords]) -> int:
        """Write the words of these entries anew and keep their vectors; return how many were still wrong."""

    def count_orphans(self, tenant: str, *, stored_before: datetime) -> int:
        """How many contents `sweep_contents` would remove."""

    def count_unknown_contents(self, tenant: str, *, stored_before: datetime) -> int:
        """Count the contents beside the database that it never knew."""

    def find_damaged_notes(self, owner: Owner) -> Sequence[str] | None:
        """The lines of the agent's file of notes that are none, and why; None if its notes are in the database. A file
        that is nobody's yet is looked at for whoever asks."""
