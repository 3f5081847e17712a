"""`ports.KeyStore`, by the contract that authors of other back ends use, and the kit as such an author uses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from wellkept.ports import Store
from wellkept.store import open_store
from wellkept.testing.conformance import KeyConformance, StoreConformance


class TestKeys(KeyConformance):
    """On every engine."""


class TestOtherStore(StoreConformance):
    """As docs/testing.md shows it."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: open_store(f"sqlite:///{tmp_path}/memory.db", busy_timeout=10, pool_size=2, index_cache_mb=16)
