"""Units of work: store methods run in their own transaction, or together inside `transaction`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from recollect.errors import ReadOnly, RequestInProgress, StoreError
from recollect.ports.history import CLAIM, Claim
from recollect.store.engine import Engine, SearchIndex, Unit

T = TypeVar("T")


class Units:
    """Engine and current transaction of each thread; base of all rows."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._current = threading.local()
        self._write_problem = ""  # error of the latest write, if the database was read-only

    def transaction(self, tenant: str, work: Callable[[], T]) -> T:
        def work_in_unit(unit: Unit) -> T:
            self._current.unit = unit
            try:
                return work()
            finally:
                self._current.unit = None

        return self._commit(tenant, work_in_unit) if self._unit(tenant) is None else work()

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        return self._engine.read_together(tenant, work) if self._unit(tenant) is None else work()

    def problems(self) -> Sequence[str]:
        """Return the current problems as sentences, without a query."""
        failed = (f"Writes fail: {self._write_problem}",) if self._write_problem else ()
        return (*failed, *self._engine.problems())

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` in the current transaction, or on a snapshot of its own."""
        return self._read(tenant, work)

    def write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` in the current transaction, or in one of its own."""
        return self._write(tenant, work)

    def is_in_transaction(self, tenant: str) -> bool:
        """Return True inside `transaction` on this thread."""
        return self._unit(tenant) is not None

    def close(self) -> None:
        self._engine.close()

    def _read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        unit = self._unit(tenant)
        return self._engine.read(tenant, work) if unit is None else work(unit)

    def _write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        unit = self._unit(tenant)
        return self._commit(tenant, work) if unit is None else work(unit)

    def _commit(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Write in a new transaction, which also takes the idempotency key of the current request, if any.

        Raises: RequestInProgress when another request holds that key; nothing is written then.
        """
        claim = CLAIM.get()
        if claim is None or claim.is_written or claim.is_over or claim.tenant != tenant:
            return self._write_and_note(tenant, work)

        def work_and_claim(unit: Unit) -> T:
            done = work(unit)
            # Take the key last: on PostgreSQL this waits for a request with the same key. A waiting request already
            # holds all its other locks, so two requests cannot deadlock.
            if not take_key(unit, claim):
                claim.is_lost = True
                raise RequestInProgress
            return done

        done = self._write_and_note(tenant, work_and_claim)
        claim.is_written = True
        return done

    def _write_and_note(self, tenant: str, work: Callable[[Unit], T]) -> T:
        try:
            done = self._engine.write(tenant, work)
        except ReadOnly as error:
            self._write_problem = str(error)
            raise
        self._write_problem = ""
        return done

    def _search(self, tenant: str) -> SearchIndex:
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
