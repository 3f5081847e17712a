"""Read transactions shared by all reads of a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from recollect.store.engine import Unit

U = TypeVar("U", bound=Unit)


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
