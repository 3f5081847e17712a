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
from wellkept.errors import Conflict, NotFound
from wellkept.model import TenantStats
from wellkept.server.console import sample
from wellkept.upkeep import stats


def visit(wellkept: Wellkept, tenant: str) -> tuple[str, str]:
    """The text and the source of the first page of a tenant."""
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(wellkept.tenant(tenant).keys.create("admin").key)
        answer = browser.get("/admin")
        browser.close()
    return read(answer), answer.text


def test_an_empty_store_offers_sample_data_and_the_first_step(wellkept: Wellkept) -> None:
    tenant = wellkept.tenant(f"t-{uuid.uuid4().hex[:8]}")
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(tenant.keys.create("admin").key)
        empty = read(browser.get("/admin"))
        assert "Nothing is remembered yet" in empty
        assert 'wellkept remember "Prefers tabs over spaces" --agent atlas' in empty

        memories = read(browser.send("/admin/sample"))

        assert "Lena is allergic to hazelnuts" in memories
        agent = tenant.agent("sample")
        assert "Porto" in agent.profile(user="lena").text
        assert "Lisbon" not in agent.profile(user="lena").text, "the sample shows a correction"
        count = len(agent.list(state="all"))
        browser.send("/admin/sample")
        assert len(agent.list(state="all")) == count, "it is added once"
        assert "This store holds sample data" in read(browser.get("/admin"))
        tenant.agent("mine").remember("Stays")
        tenant.knowledge.ingest_text("Stays, too", title="Mine", category="sample")
        browser.send("/admin/sample/remove")
        assert [each.id for each in tenant.agents.list()] == ["mine"]
        assert [each.title for each in tenant.knowledge.list()] == ["Mine"]
        assert browser.send("/admin/sample/remove").status_code == 404
        browser.close()


def test_an_agent_that_happens_to_be_called_sample_is_left_alone(wellkept: Wellkept) -> None:
    tenant = wellkept.tenant(f"t-{uuid.uuid4().hex[:8]}")
    tenant.agent("sample").remember("Mine")

    with pytest.raises(Conflict):
        sample.add(tenant, wellkept.now())
    with pytest.raises(NotFound):
        sample.remove(tenant)

    assert [each.text for each in tenant.agent("sample").list()] == ["Mine"]


def test_what_waits_is_said_and_linked(wellkept: Wellkept) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    ann = wellkept.agent("ann", tenant)
    ann.remember("The user is king", kind="core", origin="tool")
    ann.remember_many([{"text": "Atlas ships from Hamburg", "kind": "episode"}] * 3)
    ann.changes.consolidate()

    said, source = visit(wellkept, tenant)

    assert "Waiting for your decision 1 to review ann 1 change to decide ann" in said
    assert 'href="/admin/agents/ann?review=yes"' in source
    assert 'href="/admin/agents/ann/changes"' in source


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

    numbers = wellkept.tenant(tenant).upkeep.stats(days=30)
    said, source = visit(wellkept, tenant)

    assert {(each.name, each.day is None, each.count) for each in numbers.memories} == {
        ("note", True, 1),
        ("note", False, 1),
        ("journal", False, 1),
    }
    assert [each.text for each in numbers.expiring] == ["Three days old"]
    assert "Memories 3 " in said
    assert "Memories written, recalls and prompts of each of 30 days" in source
    assert "Three days old journal in 3 d" in said or "Three days old journal in 4 d" in said


def test_a_key_of_one_agent_sees_its_numbers_alone(wellkept: Wellkept) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    wellkept.agent("ann", tenant).remember("Tea")
    wellkept.agent("bob", tenant).remember_many(["Coffee", "Milk"])
    wellkept.embedding.embed_waiting()
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(wellkept.tenant(tenant).keys.create("read", agents=["ann"]).key)
        home, agents = browser.get("/admin"), browser.get("/admin/agents")
        browser.close()

    assert "Memories 1 1 note " in read(home)
    assert "search index" not in read(home), "the size of the store is for the operator"
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
        browser.log_in(wellkept.tenant(tenant).keys.create("read", user="kim").key)
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
    wellkept._services.retrieval_marks.flush()

    said, source = visit(wellkept, tenant)

    assert "Recalls 5 in 30 days" in said
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
    assert "Counting" in said
    assert '<noscript><meta http-equiv="refresh"' in source
    may_count.set()
    monkeypatch.setattr(stats, "PATIENCE", 100)

    assert "Memories 1 1 note" in visit(wellkept, tenant)[0]
