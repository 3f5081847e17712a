"""What `SqlStore` needs from a database, and nothing more.

Work is handed over as a function that gets a `Unit`, one transaction bound to one tenant. That shape is what lets
SQLite run many callers' work in one commit on its writer thread, and lets PostgreSQL set the tenant for row-level
security at the start of each transaction. No model call belongs inside: compute first, then write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from recollect.errors import Invalid
from recollect.model import Kind, Match, Owner
from recollect.policy.recall.similarity import Evidence
from recollect.ports import Vector

T = TypeVar("T")

CLOSED = "This store is closed; open a new one."
FORKED = "This store was opened before a fork; open a new one in the child process."
UNSTORABLE = "A number or a text is beyond what the database can hold; give a smaller one."
LACKING = "The database lacks a table or column; was its schema changed by hand? recollect doctor names it."
Row = Sequence[Any]


class Unit(Protocol):
    """One transaction of one tenant, speaking in named statements."""

    tenant: str
    began: float  # `time.monotonic()` just before its snapshot was taken

    def all(self, name: str, /, **values: Any) -> Sequence[Row]: ...

    def one(self, name: str, /, **values: Any) -> Row | None: ...

    def run(self, name: str, /, **values: Any) -> int:
        """The number of rows changed."""

    def run_many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None: ...


@dataclass(frozen=True, slots=True)
class Registered:
    """An embedder this database knows, and the number its vectors are marked with."""

    id: int
    name: str
    dimensions: int

    def check(self, vectors: Sequence[Vector | None]) -> None:
        """Raises: Invalid when a vector cannot be one of this embedder's."""
        for vector in vectors:
            if vector is not None and not self.id:
                raise Invalid("A vector was given but no embedder is known; call use_embedder first.")
            if vector is not None and vector.shape != (self.dimensions,):
                given = " by ".join(map(str, vector.shape))
                raise Invalid(f"The embedder {self.name!r} makes vectors of {self.dimensions} dimensions, not {given}.")


class SearchIndex(Protocol):
    """How one engine keeps and asks the words and vectors of its records."""

    def encoded(self, terms: Sequence[Sequence[str]], vectors: Sequence[Vector | None]) -> Sequence[Mapping[str, Any]]:
        """The index columns of each record, for the engine's `index_…` and `set_…_vector` statements."""

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
        """The numbers of an agent's memories whose folded text holds `needle`, newest first, at least of all that are
        live; None if the database has to be asked."""

    def search_chunks(
        self, tenant: str, terms: Sequence[str], *, categories: Collection[str], limit: int
    ) -> Sequence[Match]: ...

    def nearest_chunks(
        self, tenant: str, vector: Vector, *, categories: Collection[str], limit: int
    ) -> Sequence[Match]: ...


class Engine(Protocol):
    """A database that runs units of work."""

    name: str
    index: SearchIndex
    content_folder: Path | None  # where the texts of details are kept as files; None: in the database
    store_id: int  # marks that folder as this database's

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` on one consistent snapshot.

        Raises: StoreError.
        """

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        """Run `work`; every `read` it makes of this tenant, on this thread, uses one snapshot.

        A read that fails leaves the others their chance: where the database gives the transaction up, the next read
        begins another one. Raises: StoreError.
        """

    def write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` in one transaction; when this returns, what it wrote is durable.

        Raises: StoreError, and whatever `work` raises, in which case nothing was written.
        """

    def numbers(self, seqs: Sequence[int]) -> Any:
        """A list of numbers as this engine's statements take it."""

    def texts(self, texts: Sequence[str]) -> Any:
        """A list of texts as this engine's statements take it."""

    def use_embedder(self, embedder: Registered) -> None:
        """From now on vectors are written and searched as those of `embedder`."""

    def forget(self, tenant: str) -> None:
        """Let go of what is held in memory of a tenant's rows."""

    def scrub(self, tables: Sequence[str], *, compact: bool | None) -> Sequence[str]:
        """Free the bytes of removed rows, never inside a unit of work; where some may be left, and until when.

        Raises: StoreError.
        """

    def problems(self) -> Sequence[str]:
        """What is wrong at the moment, in sentences, as far as that is known without waiting for the database."""

    def close(self) -> None: ...
