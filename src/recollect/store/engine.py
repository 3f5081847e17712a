"""Interface between `SqlStore` and a database engine.

Work is passed as a function that receives a `Unit`, one transaction of one tenant. This allows SQLite to run the work
of many callers in one commit on its writer thread, and PostgreSQL to set the tenant for row-level security at the start
of each transaction. Never call a model inside: compute first, then write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from recollect.errors import Invalid
from recollect.model import Kind, Match, Owner
from recollect.policy.passages import PassageEvidence
from recollect.policy.recall.similarity import Evidence
from recollect.ports import Vector

T = TypeVar("T")

CLOSED = "This store is closed; open a new one."
FORKED = "This store was opened before a fork; open a new one in the child process."
UNSTORABLE = "A number or text is too large for the database; use a smaller one."
SCHEMA_INCOMPLETE = (
    "The database lacks a table or column. If a newer recollect has opened it, stop this one and start the newer; "
    "otherwise run `recollect doctor` to see what is missing."
)
Row = Sequence[Any]


class Unit(Protocol):
    """One transaction of one tenant, which runs named statements."""

    tenant: str
    began: float  # `time.monotonic()` just before its snapshot was taken

    def all(self, name: str, /, **values: Any) -> Sequence[Row]: ...

    def one(self, name: str, /, **values: Any) -> Row | None: ...

    def run(self, name: str, /, **values: Any) -> int:
        """Run a statement; return the number of changed rows."""

    def run_many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None: ...


@dataclass(frozen=True, slots=True)
class RegisteredEmbedder:
    """Embedder registered in this database, with the id that its vectors carry."""

    id: int
    name: str
    dimensions: int

    def check(self, vectors: Sequence[Vector | None]) -> None:
        """Check that the vectors can be from this embedder.

        Raises: Invalid.
        """
        for vector in vectors:
            if vector is not None and not self.id:
                raise Invalid("A vector was given but no embedder is known; call use_embedder first.")
            if vector is not None and vector.shape != (self.dimensions,):
                shape = " by ".join(map(str, vector.shape))
                raise Invalid(f"The embedder {self.name!r} makes vectors of {self.dimensions} dimensions, not {shape}.")


class SearchIndex(Protocol):
    """Index of the words and vectors of one engine's records."""

    def encoded(self, terms: Sequence[Sequence[str]], vectors: Sequence[Vector | None]) -> Sequence[Mapping[str, Any]]:
        """Encode the index columns of each record for the statements `index_…` and `set_…_vector`."""

    def has_words(self, stored: Any, terms: Sequence[str]) -> bool:
        """Return True if an entry, as the fragment `stored_words` reads it, holds exactly these words."""

    def search_memories(
        self, owner: Owner, terms: Sequence[str], *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]: ...

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]: ...

    def weigh_memories(
        self,
        owner: Owner,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        kinds: Collection[Kind],
        now: datetime,
        is_past: bool,
    ) -> Evidence: ...

    def numbers_holding(self, owner: Owner, needle: str) -> Iterator[int] | None:
        """Return the numbers of an agent's memories whose folded text contains `needle`, newest first.

        They include at least all live ones. Return None if the database has to search.
        """

    def weigh_chunks(
        self, tenant: str, terms: Sequence[str], vector: Vector | None, *, categories: Collection[str]
    ) -> PassageEvidence: ...


class Engine(Protocol):
    """Database that runs units of work."""

    name: str
    index: SearchIndex
    content_folder: Path | None  # folder of the texts of details; None if they are in the database
    store_id: int  # id in the marker file of that folder

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` on one consistent snapshot.

        Raises: StoreError.
        """

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        """Run `work`; all its reads of this tenant on this thread share one snapshot, if the engine supports that.

        A failed read does not affect the others: if it ended the transaction, the next read begins a new one.

        Raises: StoreError.
        """

    def write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` in one transaction, which is durable when this returns.

        Raises: StoreError, and the errors of `work`; nothing is written then.
        """

    def numbers(self, seqs: Sequence[int]) -> Any:
        """Convert numbers to a parameter of this engine's statements."""

    def texts(self, texts: Sequence[str]) -> Any:
        """Convert texts to a parameter of this engine's statements."""

    def use_embedder(self, embedder: RegisteredEmbedder) -> None:
        """Write and search vectors of `embedder` from now on."""

    def forget(self, tenant: str) -> None:
        """Drop the cached data of a tenant."""

    def scrub(self, tables: Sequence[str], *, compact: bool | None) -> Sequence[str]:
        """Remove the bytes of deleted rows, outside a unit of work; return where some may remain, and until when.

        Raises: StoreError.
        """

    def problems(self) -> Sequence[str]:
        """Return the current problems as sentences, without waiting for the database."""

    def close(self) -> None: ...
