"""The console's first page: numbers, charts, and health that is true."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta
from typing import Any

import pytest

from tests.server.conftest import MovableClock
from tests.server.console import Browser, links, read
from tests.server.live import serving
from wellkept import Wellkept
from wellkept.model import TenantStats
from wellkept.upkeep import stats


def visit(wellkept: Wellkept, tenant: str) -> tuple[str, str]:
    """The text and the source of the first page of a tenant."""
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(wellkept.tenant(tenant).add_key("admin").key)
        answer = browser.get("/admin")
        browser.close()
    return read(answer), answer.text


def test_an_empty_store_teaches_the_first_step(wellkept: Wellkept) -> None:
    said, _ = visit(wellkept, f"t-{uuid.uuid4().hex[:8]}")

    assert "The store works and nothing waits for you." in said
    assert "No agent remembers anything yet" in said
    assert 'wellkept remember "Prefers tabs over spaces" --agent atlas' in said


def test_what_waits_is_said_and_linked(wellkept: Wellkept) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    ann = wellkept.agent("ann", tenant)
    ann.remember("The user is king", kind="core", origin="tool")
    ann.remember_many(["The user prefers tabs over spaces", "User prefers tabs over spaces"])
    ann.consolidate()

    said, source = visit(wellkept, tenant)

    assert "2 decisions wait for you" in said
    assert "nothing waits" not in said
    assert "1 to review, 1 proposal" in said
    assert 'href="/admin/agents/ann?review=yes"' in source
    assert 'href="/admin/agents/ann/proposals"' in source


def test_growth_activity_and_expiry_are_counted(wellkept: Wellkept, clock: MovableClock) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    ann = wellkept.agent("ann", tenant)
    clock.ahead = timedelta(days=-60)
    ann.remember("Long known")
    clock.ahead = timedelta(days=-3)
    ann.remember("Three days old", kind="journal")
    clock.ahead = timedelta()
    ann.remember("New")
    ann.context("new?", session="s-1")

    numbers = wellkept.tenant(tenant).stats(days=30)
    said, source = visit(wellkept, tenant)

    assert {(each.name, each.day is None, each.count) for each in numbers.memories} == {
        ("note", True, 1),
        ("note", False, 1),
        ("journal", False, 1),
    }
    assert [each.text for each in numbers.expiring] == ["Three days old"]
    assert "Memories by kind over 30 days, 3 now" in source
    assert "Three days old journal in 3 d" in said or "Three days old journal in 4 d" in said


def test_a_key_of_one_agent_sees_its_numbers_alone(wellkept: Wellkept) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    wellkept.agent("ann", tenant).remember("Tea")
    wellkept.agent("bob", tenant).remember_many(["Coffee", "Milk"])
    wellkept.embed_waiting()
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(wellkept.tenant(tenant).add_key("read", agents=["ann"]).key)
        home, agents = browser.get("/admin"), browser.get("/admin/agents")
        browser.close()

    assert "Memories 1 1 agent " in read(home)
    assert "Vectors missing 0" in read(home), "the size of the store is for the operator"
    assert "bob" not in home.text
    assert links(agents, "ann") == ["/admin/agents/ann"]
    assert "bob" not in agents.text


def test_a_key_of_one_user_opens_the_pages(wellkept: Wellkept) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    ann = wellkept.agent("ann", tenant)
    ann.remember("Tea", user="kim")
    ann.remember("Coffee", user="lee")
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(wellkept.tenant(tenant).add_key("read", user="kim").key)
        home, listed = browser.get("/admin"), browser.get("/admin/agents/ann")
        browser.close()

    assert (home.status_code, listed.status_code) == (200, 200)
    assert "Tea" in read(listed)
    assert "Coffee" not in home.text + listed.text


def test_recalls_and_users_have_their_days(wellkept: Wellkept) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    ann = wellkept.agent("ann", tenant)
    ann.remember_many([{"text": f"Tea number {each}", "user": "kim"} for each in range(3)])
    for _ in range(4):
        ann.recall("tea")
    ann.recall("nothing of the kind", min_relevance=0.99)
    wellkept._services.retrieved.flush()

    said, source = visit(wellkept, tenant)

    assert "Recalls 5 in 30 days" in said
    assert "recalls 5" in said, "the legend of the chart"
    assert "written 3" in said, "a batch counts as its memories"
    assert "kim 3" in said
    assert 'href="/admin/user?id=kim"' in source


def test_the_page_of_a_large_store_does_not_wait_for_its_numbers(
    wellkept: Wellkept, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    wellkept.agent("ann", tenant).remember("Tea")
    counted, may_count = wellkept._store.count_days, threading.Event()

    def count_slowly(*arguments: Any, **options: Any) -> TenantStats:
        assert may_count.wait(100)
        return counted(*arguments, **options)

    monkeypatch.setattr(wellkept._store, "count_days", count_slowly)
    monkeypatch.setattr(stats, "PATIENCE", 0.001)

    said, source = visit(wellkept, tenant)
    assert "The store works. Counting" in said
    assert "nothing waits" not in said
    assert '<noscript><meta http-equiv="refresh"' in source
    may_count.set()
    monkeypatch.setattr(stats, "PATIENCE", 100)

    assert "Memories 1 1 agent" in visit(wellkept, tenant)[0]
