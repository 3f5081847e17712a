"""Protocols to transfer, erase, check and consolidate a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import IO, Protocol

from wellkept.model import (
    BackupReport,
    Erased,
    ForeignItem,
    IndexGaps,
    Json,
    Key,
    Owner,
    Proposal,
    ProposalState,
    StoreState,
    Trace,
    WrongWords,
)
from wellkept.ports.content import ContentDraft
from wellkept.ports.providers import Vector


class TransferStore(Protocol):
    """A whole tenant as engine-independent rows; `docs/transfer.md` describes them."""

    def export_rows(self, tenant: str, take: Callable[[str, Json], None], *, user: str | None = None) -> None:
        """Pass every row, with the name of its table, to `take`, as of one moment.

        Rows come after the rows they refer to. Long texts come in pieces, as rows of `detail_contents`.
        """

    def check_row(self, table: str, row: object) -> None:
        """Check that a row could occur in an export. Raises: Invalid."""

    def has_rows(self, tenant: str, table: str) -> bool: ...

    def find_rows(self, tenant: str, table: str, rows: Sequence[Json]) -> Sequence[bool | None]:
        """Return for each row: None if its key is free here, else True if the stored record is the same."""

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
        """Add the rows with free keys, all or none, with the `text` they refer to; return how many were added.

        Memories and passages bring their vectors. Passages and steps get new numbers where theirs are taken. Events are
        stored unchanged, so they must follow the existing ones.

        Raises: Conflict.
        """

    def last_imported(self, tenant: str, log: str) -> int:
        """Return the highest number in log `log` among the events copied from it."""

    def count_events(self, tenant: str) -> int:
        """Return the number of the last audit event."""


class ArchiveFiles(Protocol):
    """Files of lines on disk, plain or compressed."""

    def create(self, path: Path) -> AbstractContextManager[IO[bytes]]:
        """Create a file, compressed according to its name (.gz, .zst), readable only by its owner.

        It gets its name, and replaces an older file, only when it is complete and on disk.

        Raises: Invalid when it cannot be written.
        """

    def lines(self, path: Path, *, max_bytes: int) -> Iterator[tuple[bytes, int]]:
        """Yield every unpacked line with the number of file bytes read so far.

        Raises: Invalid when it cannot be read or unpacked, or a line is longer than `max_bytes`.
        """

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes. Raises: Invalid."""


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


class ForeignFormats(Protocol):
    """All formats of other programs that can be imported."""

    @property
    def names(self) -> Sequence[str]: ...

    def named(self, name: str) -> ForeignFormat:
        """Return the format with this name. Raises: Invalid, which lists the known names."""

    def recognise(self, path: Path) -> ForeignFormat:
        """Detect the format of a file. Raises: Invalid when it looks like none of them, or cannot be read."""


class ErasureStore(Protocol):
    """Erasure of rows without a trace."""

    def list_traces(
        self,
        tenant: str,
        table: str,
        *,
        agent: str = "",
        session_id: str = "",
        user: str | None = None,
        after: Key = (),
        limit: int = 500,
    ) -> Sequence[Trace]:
        """List the rows of a table with all their texts, by key, starting after `after`.

        Tables of agents' rows are read for one agent; `session_id` limits the listing to that session, `user` to the
        rows of that user, or with "" to those of no user.
        """

    def list_hanging(self, tenant: str, parents: Sequence[Trace]) -> Sequence[Trace]:
        """List the messages, passages and steps that belong to the sessions, documents and workflows in `parents`.

        Their texts are not loaded.
        """

    def plan_sealing(self, tenant: str, cleared: Sequence[Trace]) -> object:
        """Compute the sealed audit log without the texts of these events, for `erase_traces`.

        This is slow and writes nothing: call it before the transaction.
        """

    def erase_traces(
        self, tenant: str, gone: Sequence[Trace], cleared: Sequence[Trace], *, sealing: object = None
    ) -> Erased:
        """Delete the `gone` rows with their dependents, and replace the texts of the `cleared` ones by a mark.

        Rows that no longer exist are skipped. An intact audit log stays an intact chain.
        """

    def keep_erased(self, tenant: str, marks: Collection[str], *, now: datetime) -> None:
        """Remember that rows with these marks were erased. Only salted hashes are stored."""

    def find_erased(self, tenant: str, marks: Collection[str]) -> Mapping[str, datetime]:
        """Return those of the marks that were erased, and when they last were."""

    def forget_cached(self, tenant: str) -> None:
        """Drop the cached rows of a tenant."""

    def scrub(self, *, compact: bool | None = None) -> Sequence[str]:
        """Free the bytes of deleted rows; return where some may remain, and until when.

        `compact` rewrites the files while writers wait; None does only what lets them in between.
        """


class CheckupStore(Protocol):
    """Self-checks of a store. Only `mend_index` and `mend_words` change anything."""

    def describe_store(self) -> StoreState: ...

    def back_up(
        self, file: IO[bytes], *, scratch: Path, now: datetime, progress: Callable[[int, int], None] | None = None
    ) -> BackupReport:
        """Write a backup of one moment to `file`, with temporary files in `scratch`.

        Raises: Invalid when the engine has its own backups; StoreError, Conflict.
        """

    def find_damage(self, *, is_quick: bool = False) -> Sequence[str]:
        """Describe damage the database finds in itself, in a few sentences; `is_quick` does not read every page."""

    def count_index_gaps(self, tenant: str) -> IndexGaps: ...

    def mend_index(self, tenant: str, *, limit: int = 500) -> int:
        """Remove outdated entries from the search index and add at most `limit` missing texts, to be embedded later.

        Returns the number of changed entries.
        """

    def find_wrong_words(self, tenant: str) -> Iterator[WrongWords]:
        """Yield index entries whose words differ from their text, with one page in memory at a time.

        Entries that `count_index_gaps` counts as surplus may be left out.
        """

    def mend_words(self, tenant: str, entries: Sequence[WrongWords]) -> int:
        """Rewrite the words of these entries and keep their vectors; return how many were still wrong."""

    def count_orphans(self, tenant: str, *, stored_before: datetime) -> int:
        """Count the contents `sweep_contents` would remove."""

    def count_unknown_contents(self, tenant: str, *, stored_before: datetime) -> int:
        """Count the contents beside the database that it never recorded."""

    def find_damaged_notes(self, owner: Owner) -> Sequence[str] | None:
        """List the invalid lines of the agent's notes file with the reason; None if its notes are in the database.

        A file without an owner yet is checked for any agent.
        """


class ProposalStore(Protocol):
    """Consolidation proposals of an agent and their state."""

    def add_proposals(self, owner: Owner, proposals: Sequence[Proposal]) -> Sequence[Proposal]:
        """Add proposals and return them with their ids; skip those with a memory of another open proposal."""

    def get_proposal(self, owner: Owner, id: str) -> Proposal:
        """Return one proposal. Raises: NotFound."""

    def list_proposals(
        self, owner: Owner, *, state: ProposalState | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[Proposal]:
        """List proposals, newest first, starting after the number `before`; `state` None lists all."""

    def decide_proposal(self, proposal: Proposal, *, was: ProposalState) -> Proposal:
        """Store the decision about a proposal.

        Raises: NotFound; Conflict when it is no longer in the state it `was` in.
        """
