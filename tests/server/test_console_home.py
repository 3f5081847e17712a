"""The console's first page: numbers, charts, and health that is true."""

from __future__ import annotations

import uuid
from datetime import timedelta

from recollect import Recollect
from tests.server.conftest import MovableClock
from tests.server.console import Browser, links, read
from tests.server.live import serving


def visit(recollect: Recollect, tenant: str) -> tuple[str, str]:
    """The text and the source of the first page of a tenant."""
    with serving(recollect, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(recollect.tenant(tenant).add_key("admin").key)
        answer = browser.get("/admin")
        browser.close()
    return read(answer), answer.text


def test_an_empty_store_teaches_the_first_step(recollect: Recollect) -> None:
    said, _ = visit(recollect, f"t-{uuid.uuid4().hex[:8]}")

    assert "The store works and nothing waits for you." in said
    assert "No agent remembers anything yet" in said
    assert 'recollect remember "Prefers tabs over spaces" --agent atlas' in said


def test_what_waits_is_said_and_linked(recollect: Recollect) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    ann = recollect.agent("ann", tenant)
    ann.remember("The user is king", kind="core", origin="tool")
    ann.remember_many(["The user prefers tabs over spaces", "User prefers tabs over spaces"])
    ann.consolidate()

    said, source = visit(recollect, tenant)

    assert "2 decisions wait for you" in said
    assert "nothing waits" not in said
    assert "1 to review, 1 proposal" in said
    assert 'href="/admin/agents/ann?review=yes"' in source
    assert 'href="/admin/agents/ann/proposals"' in source


def test_growth_activity_and_expiry_are_counted(recollect: Recollect, clock: MovableClock) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    ann = recollect.agent("ann", tenant)
    clock.ahead = timedelta(days=-60)
    ann.remember("Long known")
    clock.ahead = timedelta(days=-3)
    ann.remember("Three days old", kind="journal")
    clock.ahead = timedelta()
    ann.remember("New")
    ann.context("s-1", "new?")

    stats = recollect.tenant(tenant).stats(days=30)
    said, source = visit(recollect, tenant)

    assert {(each.name, each.day is None, each.count) for each in stats.memories} == {
        ("note", True, 1),
        ("note", False, 1),
        ("journal", False, 1),
    }
    assert [each.text for each in stats.expiring] == ["Three days old"]
    assert "Memories by kind over 30 days, 3 now" in source
    assert "Three days old journal in 3 d" in said or "Three days old journal in 4 d" in said


def test_a_key_of_one_agent_sees_its_numbers_alone(recollect: Recollect) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    recollect.agent("ann", tenant).remember("Tea")
    recollect.agent("bob", tenant).remember_many(["Coffee", "Milk"])
    with serving(recollect, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(recollect.tenant(tenant).add_key("read", agents=["ann"]).key)
        home, agents = browser.get("/admin"), browser.get("/admin/agents")
        browser.close()

    assert "Memories 1 1 agent " in read(home)
    assert "Vectors missing 0" in read(home), "the size of the store is for the operator"
    assert "bob" not in home.text
    assert links(agents, "ann") == ["/admin/agents/ann"]
    assert "bob" not in agents.text


def test_a_key_of_one_user_opens_the_pages(recollect: Recollect) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    ann = recollect.agent("ann", tenant)
    ann.remember("Tea", user="kim")
    ann.remember("Coffee", user="lee")
    with serving(recollect, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(recollect.tenant(tenant).add_key("read", user="kim").key)
        home, listed = browser.get("/admin"), browser.get("/admin/agents/ann")
        browser.close()

    assert (home.status_code, listed.status_code) == (200, 200)
    assert "Tea" in read(listed)
    assert "Coffee" not in home.text + listed.text
