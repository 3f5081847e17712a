"""What is held in memory stays right when something happens between two of its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.services.conftest import Clock, Place
from wellkept.access.keys import ApiKeys
from wellkept.errors import StoreError
from wellkept.store.sqlstore import SqlStore


def test_search_for_a_part_recovers_after_a_failed_read(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        ann = store.agent("ann")
        ann.remember("Prefers tabs")
        assert [len(ann.search("tabs")) for _ in range(3)] == [1, 1, 1]  # the texts are in memory now
        ann.remember("Tabs in Makefiles, too")
        fresh_place.sql("ALTER TABLE memories RENAME COLUMN folded TO elsewhere")
        with pytest.raises(StoreError):
            ann.search("tabs")
        fresh_place.sql("ALTER TABLE memories RENAME COLUMN elsewhere TO folded")

        assert len(ann.search("tabs")) == 2


class _Interrupted:
    """A store in which something happens right after a key was looked up."""

    def __init__(self, store: SqlStore, happens: Callable[[], None]) -> None:
        self._store = store
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def find_key(self, tenant: str, id: str) -> Any:
        found = self._store.find_key(tenant, id)
        # Once: what happens may look keys up, too.
        happens, self._happens = self._happens, lambda: None
        happens()
        return found


def test_key_revoked_during_a_lookup_is_refused_at_once(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as opened:
        store = opened._services.store
        keys = ApiKeys(_Interrupted(store, lambda: keys.revoke("acme", issued.record.id)), clock)  # type: ignore[arg-type]
        issued = keys.add("acme", "read")

        keys.verify(issued.key)

        assert keys.recent(issued.key) is None
        keys.close()
