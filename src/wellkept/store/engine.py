"""Interface between `SqlStore` and a database engine, and the units of work that store methods run in.

Work is passed as a function that receives a `Unit`, one transaction of one tenant. This allows SQLite to run the work
of many callers in one commit on its writer thread, and PostgreSQL to set the tenant for row-level security at the start
of each transaction. Never call a model inside: compute first, then write.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from itertools import chain
from pathlib import Path
from random import getrandbits
from typing import IO, TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from wellkept.errors import Invalid, NotFound, ReadOnly, RequestInProgress, StoreError
from wellkept.model import NO_USER, BackupReport, ClusterNode, Owner
from wellkept.model.stored import CLAIM, SOON, Claim, Vector

if TYPE_CHECKING:
    from wellkept.memory.rules_filters import Condition
    from wellkept.store.conditions import Clause
    from wellkept.store.search.memory_search import MemorySearch

Progress = Callable[[int, int], None]
"""Callback that receives the number of steps done and the total."""

R = TypeVar("R", bound=Any)
T = TypeVar("T")

CLOSED = "This store is closed; open a new one."
FORKED = "This store was opened before a fork; open a new one in the child process."
UNSTORABLE = "A number or text is too large for the database; use a smaller one."
SCHEMA_INCOMPLETE = (
    "The database lacks a table or column. If a newer wellkept has opened it, stop this one and start the newer; "
    "otherwise run `wellkept doctor` to see what is missing."
)
WAITING, CHANGED = "texts without a vector", "changed"
"""Keys in `Unit.memo`: what the transaction leaves to the embedder and to maintenance."""

ID_BITS = 62
"""Size of the random id of a queued row."""

MARK_SECONDS = 10.0
"""Seconds for which a process relies on a mark that it has set: maintenance visits a tenant that changed twice."""

MAX_MARKED = 10_000
Row = Sequence[Any]

U = TypeVar("U", bound="Unit")


class Unit(Protocol):
    """One transaction of one tenant, which runs named statements."""

    tenant: str
    began: float  # `time.monotonic()` just before its snapshot was taken
    memo: dict[Any, Any]  # what its statements have found out and later ones need

    def all(self, name: str, where: Clause | None = None, /, **values: Any) -> Sequence[Row]:
        """Return the rows of a statement, in which `where` replaces `{where}`."""

    def one(self, name: str, /, **values: Any) -> Row | None: ...

    def run(self, name: str, /, **values: Any) -> int:
        """Run a statement; return the number of changed rows."""

    def put(self, name: str, /, **values: Any) -> None:
        """Run a statement without waiting for it. If it fails, the next result or the commit raises its error."""

    def ask(self, name: str, /, **values: Any) -> Callable[[], Row | None]:
        """Send a query and return the function that waits for its first row."""

    def run_many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None: ...


@dataclass(frozen=True, slots=True)
class RegisteredEmbedder:
    """Embedder registered in this database, with the id that its vectors carry."""

    id: int
    name: str
    dimensions: int

    def check(self, vectors: Sequence[Vector | None]) -> None:
        """Check that the vectors can be from this embedder. Raises: Invalid."""
        for vector in vectors:
            if vector is not None and not self.id:
                raise Invalid("A vector was given but no embedder is known; call use_embedder first.")
            if vector is not None and vector.shape != (self.dimensions,):
                shape = " by ".join(map(str, vector.shape))
                raise Invalid(f"The embedder {self.name!r} makes vectors of {self.dimensions} dimensions, not {shape}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    """Question to an index: words and a vector, and the rows that count.

    They are in one of the groups (if any), started by `until` and have not expired at `now`. `where` limits those that
    may be found; the others still count for comparison.
    """

    terms: Sequence[str] = ()
    vector: Vector | None = None
    groups: Collection[str] = ()
    now: float = float("-inf")
    until: float | None = None
    where: Condition | None = None


class Engine(Protocol):
    """Database that runs units of work."""

    name: str
    has_single_writer: bool  # a transaction that writes excludes all others
    index: MemorySearch
    content_folder: Path | None  # folder in which version 0.2 kept the texts of details, if it did

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` on one consistent snapshot. Raises: StoreError."""

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        """Run `work`; all its reads of this tenant on this thread share one snapshot, if the engine supports that.

        A failed read does not affect the others: if it ended the transaction, the next read begins a new one.

        Raises: StoreError.
        """

    def write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` in one transaction, which is durable when this returns.

        Raises: StoreError, and the errors of `work`; nothing is written then.
        """

    def use_embedder(self, embedder: RegisteredEmbedder) -> None:
        """Write and search vectors of `embedder` from now on."""

    def forget(self, tenant: str) -> None:
        """Drop the cached data of a tenant."""

    def scrub(self, tables: Sequence[str], *, compact: bool | None) -> Sequence[str]:
        """Remove the bytes of deleted rows, outside a unit of work; return where some may remain, and until when.

        Raises: StoreError.
        """

    def back_up(self, file: IO[bytes], *, scratch: Path, now: datetime, progress: Progress | None) -> BackupReport:
        """Write a backup of one moment to `file`, with temporary files in `scratch`.

        Raises: Invalid when the engine has its own backups; StoreError, Conflict.
        """

    def problems(self) -> Sequence[str]:
        """Return the current problems as sentences, without waiting for the database."""

    def check_nodes(self) -> Sequence[ClusterNode]:
        """Ask the other nodes of a cluster, unless that was done a moment ago. Raises: StoreError."""

    def own_indexes(self, embedder: RegisteredEmbedder) -> Mapping[str, str]: ...  # only make searches faster; with SQL
    def close(self) -> None: ...


def owner_params(of: Owner | str) -> dict[str, Any]:
    """Return the parameters that every statement takes on the rows of a tenant, or of an owner: with `user` it is
    limited to that user."""
    if isinstance(of, str):
        return {"tenant": of}
    params: dict[str, Any] = {"tenant": of.tenant, "agent": of.agent}
    if of.user is not None:
        params |= {"user": of.user, "also": NO_USER if of.with_shared else None}
    return params


def merge_parts(found: Sequence[Sequence[R]], limit: int, key: Callable[[R], Any]) -> Sequence[R]:
    """Return the first `limit` records by descending key; `found` has such a listing for each of `Owner.parts`."""
    return found[0] if len(found) == 1 else nlargest(limit, chain.from_iterable(found), key=key)


class Units:
    """Engine and current transaction of each thread; base of all rows."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._current = threading.local()
        self._write_problem = ""  # error of the latest write, if the database was read-only
        # Tenants that this process marked as due for maintenance, and when.
        self._marked: dict[str, float] = {}

    def transaction(self, tenant: str, work: Callable[[], T]) -> T:
        """Run `work` in one transaction: its store calls (for this tenant only) are committed together or not at all.

        On SQLite `work` runs on the writer's thread, so it must not wait for another thread, a model or a network.
        """
        committed: list[Callable[[], None]] = []

        def work_in_unit(unit: Unit) -> T:
            self._current.unit, self._current.committed = unit, committed
            try:
                return work()
            finally:
                self._current.unit = None

        if self._unit(tenant) is not None:
            return work()
        done = self._commit(tenant, work_in_unit)
        for note in committed:
            note()
        return done

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        """Run `work`; the reads it makes (of this tenant, on this thread) share one snapshot.

        A read that fails does not keep the next one from trying.
        """
        if self._unit(tenant) is not None:
            return work()
        before = getattr(self._current, "together", None)
        self._current.together = tenant
        try:
            return self._engine.read_together(tenant, work)
        finally:
            self._current.together = before

    def problems(self) -> Sequence[str]:
        """Return the current problems as sentences, without a query."""
        failed = (f"Writes fail: {self._write_problem}",) if self._write_problem else ()
        return (*failed, *self._engine.problems())

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` in the current transaction, or on a snapshot of its own."""
        unit = self._unit(tenant)
        return self._engine.read(tenant, work) if unit is None else work(unit)

    def write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` in the current transaction, or in one of its own."""
        unit = self._unit(tenant)
        return self._commit(tenant, work) if unit is None else work(unit)

    def _one(self, of: Owner | str, name: str, /, **values: Any) -> Row | None:
        """Read the first row of a statement on the rows of an owner or a tenant."""
        place = owner_params(of)
        return self.read(place["tenant"], lambda unit: unit.one(name, **place, **values))

    def _get(self, of: Owner | str, name: str, missing: str, /, **values: Any) -> Row:
        """Read the only row of a statement. Raises: NotFound, which says `missing`."""
        row = self._one(of, name, **values)
        if row is None:
            raise NotFound(missing)
        return row

    def _all(self, of: Owner | str, name: str, where: Clause | None = None, /, **values: Any) -> Sequence[Row]:
        """Read all rows of a statement."""
        place = owner_params(of)
        return self.read(place["tenant"], lambda unit: unit.all(name, where, **place, **values))

    def _list(
        self,
        owner: Owner,
        name: str,
        convert: Callable[[Row], R],
        key: Callable[[R], Any],
        where: Clause | None = None,
        /,
        *,
        limit: int,
        **values: Any,
    ) -> Sequence[R]:
        """List the first `limit` records of an owner by descending key.

        Each of the owner's parts is listed on its own, because an index has the rows of one user in order.
        """

        def read(unit: Unit) -> Sequence[Sequence[R]]:
            rows = (unit.all(name, where, **owner_params(part), limit=limit, **values) for part in owner.parts)
            return [[*map(convert, each)] for each in rows]

        return merge_parts(self.read(owner.tenant, read), limit, key)

    def _run(self, of: Owner | str, name: str, /, **values: Any) -> int:
        """Run a statement in the current transaction, or in one of its own; return the number of changed rows."""
        place = owner_params(of)
        return self.write(place["tenant"], lambda unit: unit.run(name, **place, **values))

    def is_in_transaction(self, tenant: str) -> bool:
        """Return True inside `transaction` on this thread."""
        return self._unit(tenant) is not None

    def close(self) -> None:
        self._engine.close()

    def _is_together(self, tenant: str) -> bool:
        """Return True inside `read_together` of this tenant on this thread."""
        return getattr(self._current, "together", None) == tenant

    def _read_sealed(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` on a snapshot in which the audit log is complete: see `AuditRows`."""
        return self.read(tenant, work)

    def _commit(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Write in a new transaction, which also takes the idempotency key of the current request, if any.

        Raises: RequestInProgress when another request holds that key; nothing is written then.
        """
        claim = CLAIM.get()
        if claim is None or claim.is_written or claim.is_over or claim.tenant != tenant:
            claim = None

        committed: list[Callable[[], None]] = []

        def work_and_finish(unit: Unit) -> T:
            done = work(unit)
            # Take the key after the work: on PostgreSQL this waits for a request with the same key. A waiting request
            # already holds its other locks, so two requests cannot deadlock.
            if claim is not None and not take_key(unit, claim):
                claim.is_lost = True
                raise RequestInProgress
            committed[:] = self._finish(unit)
            return done

        done = self._write_and_note(tenant, work_and_finish)
        for note in committed:
            note()
        if claim is not None:
            claim.is_written = True
        return done

    def _finish(self, unit: Unit) -> Sequence[Callable[[], None]]:
        """Run the last statements of a transaction, whose locks are held only for the commit.

        Returns what to call when it is durable.
        """
        if count := unit.memo.get(WAITING, 0):
            queue_texts(unit, count)
        now, tenant = time.monotonic(), unit.tenant
        if CHANGED not in unit.memo or now - self._marked.get(tenant, -MARK_SECONDS) < MARK_SECONDS:
            return ()
        unit.put("mark_due", tenant=tenant, soon=SOON)
        if len(self._marked) >= MAX_MARKED:
            self._marked.clear()
        return (lambda: self._marked.update({tenant: now}),)

    def _write_and_note(self, tenant: str, work: Callable[[Unit], T]) -> T:
        try:
            done = self._engine.write(tenant, work)
        except ReadOnly as error:
            self._write_problem = str(error)
            raise
        self._write_problem = ""
        return done

    def _after_commit(self, note: Callable[[], None]) -> None:
        """Call `note` when the current `transaction` is durable; never, if it fails or there is none."""
        if getattr(self._current, "unit", None) is not None:
            self._current.committed.append(note)

    def _search(self, tenant: str) -> MemorySearch:
        self._check_outside(tenant)
        return self._engine.index

    def _check_outside(self, tenant: str) -> None:
        # A search would wait for its own transaction, or miss the writes of it.
        if self._unit(tenant) is not None:
            raise StoreError("A search sees only committed rows. Search before or after the transaction.")

    def _unit(self, tenant: str) -> Unit | None:
        unit: Unit | None = getattr(self._current, "unit", None)
        if unit is not None and unit.tenant != tenant:
            raise StoreError("One transaction cannot touch two tenants.")
        return unit


def queue_texts(unit: Unit, count: int, *, due_at: datetime = SOON) -> None:
    """Queue texts of the tenant that wait for a vector, to be embedded after `due_at`."""
    unit.put("queue_texts", tenant=unit.tenant, id=getrandbits(ID_BITS), texts=count, due_at=due_at)


def take_key(unit: Unit, claim: Claim) -> bool:
    """Claim the idempotency key for this request. Return False if another request holds it."""
    return bool(
        unit.run(
            "take_key",
            tenant=claim.tenant,
            key_hash=claim.key_hash,
            holder=claim.holder,
            at=claim.at,
            expires_at=claim.expires_at,
        )
    )


class Snapshots(Generic[U]):
    """Shared read transaction of each thread, if it has one."""

    def __init__(self) -> None:
        self._current = threading.local()

    def find(self, tenant: str) -> U | None:
        """Return the transaction this thread shares between its reads of `tenant`."""
        unit: U | None = getattr(self._current, "unit", None)
        return unit if unit is not None and unit.tenant == tenant else None

    @contextmanager
    def share(self, unit: U) -> Iterator[None]:
        """Let all reads of this thread use `unit`."""
        before: U | None = getattr(self._current, "unit", None)
        self._current.unit = unit
        try:
            yield
        finally:
            self._current.unit = before
