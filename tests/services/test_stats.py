"""Counts by day: what took long to count is repeated for a while, and forgotten by an erasure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wellkept import Settings, Wellkept
from wellkept.caller import Caller, use_caller
from wellkept.errors import Forbidden, Invalid
from wellkept.model import TenantStats
from wellkept.upkeep import stats as module
from wellkept.upkeep.stats import CountTenant

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Counts:
    """A store that counts how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[datetime] = []

    def count_days(self, tenant: str, *, since: datetime, now: datetime, expiring: int) -> TenantStats:
        self.asked.append(since)
        return TenantStats(counted_at=now, first_day=since.date())


def count_with(store: Any) -> CountTenant:
    return CountTenant(store, lambda: NOW)


def test_a_quick_count_is_not_kept() -> None:
    store = Counts()
    count = count_with(store)

    count("acme", 30)
    count("acme", 30)

    assert len(store.asked) == 2
    assert store.asked[0] == datetime(2026, 1, 31, tzinfo=UTC), "today is one of the days"


def test_a_slow_count_is_repeated_until_an_erasure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUICK", -1.0)
    monkeypatch.setattr(module, "REST", 10**9)
    store = Counts()
    count = count_with(store)

    first = count("acme", 30)
    assert count("acme", 30) is first
    count("acme", 7)
    count("other", 30)
    assert len(store.asked) == 3
    count.forget("acme")
    count("acme", 30)
    count("other", 30)

    assert len(store.asked) == 4, "only what belongs to the tenant is counted again"


@pytest.mark.parametrize("days", [0, 367, True, "7"])
def test_days_have_bounds(days: Any) -> None:
    with pytest.raises(Invalid, match="`days` is a whole number from 1 to 366"):
        count_with(Counts())("acme", days)


def test_an_erasure_leaves_no_text_of_what_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUICK", -1.0)
    monkeypatch.setattr(module, "REST", 10**9)
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/memory.db")) as wellkept:
        tenant, ann = wellkept.tenant(), wellkept.agent("ann")
        ann.remember("Kim likes tea", user="kim", expires_at=wellkept.now() + timedelta(days=1))
        assert [each.text for each in tenant.upkeep.stats().expiring] == ["Kim likes tea"]

        tenant.data.erase("user:kim")

        assert tenant.upkeep.stats().expiring == ()


def test_a_user_gets_no_numbers_of_the_tenant(tmp_path: Path) -> None:
    with (
        Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/memory.db")) as wellkept,
        use_caller(Caller(user="kim")),
        pytest.raises(Forbidden),
    ):
        wellkept.tenant().upkeep.stats()
