"""How store methods reach the database: alone, each in its own transaction, or together inside `transaction`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from recollect.errors import StoreError
from recollect.store.engine import Engine, SearchIndex, Unit

T = TypeVar("T")


class Units:
    """An engine, and the transaction the current thread is in, if any."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._current = threading.local()

    def transaction(self, tenant: str, work: Callable[[], T]) -> T:
        def bound(unit: Unit) -> T:
            self._current.unit = unit
            try:
                return work()
            finally:
                self._current.unit = None

        return self._engine.write(tenant, bound) if self._unit(tenant) is None else work()

    def close(self) -> None:
        self._engine.close()

    def _read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        unit = self._unit(tenant)
        return self._engine.read(tenant, work) if unit is None else work(unit)

    def _write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        unit = self._unit(tenant)
        return self._engine.write(tenant, work) if unit is None else work(unit)

    def _search(self, tenant: str) -> SearchIndex:
        self._check_outside(tenant)
        return self._engine.index

    def _check_outside(self, tenant: str) -> None:
        if self._unit(tenant) is not None:  # it would wait for itself, or search without the transaction's own writes
            raise StoreError("A search sees only what is committed; search before the transaction or after it.")

    def _unit(self, tenant: str) -> Unit | None:
        unit: Unit | None = getattr(self._current, "unit", None)
        if unit is not None and unit.tenant != tenant:
            raise StoreError("One transaction cannot touch two tenants.")
        return unit
