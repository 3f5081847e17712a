"""What is needed to see whether a store is in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from recollect.model import IndexGaps, Owner, StoreState, WrongWords


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
