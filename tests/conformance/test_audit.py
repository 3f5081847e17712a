"""`ports.AuditStore`: what was done, in order, and whether anybody has touched it since."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import apsw
import psycopg
import pytest

from recollect.model import Owner
from recollect.ports import Store
from tests.conformance.conftest import Place
from tests.conformance.examples import LATER, event


@pytest.fixture
def tenant(ann: Owner) -> str:
    return ann.tenant


def tamper(place: Place, tenant: str, statement: str) -> None:
    """Change the log past the store, as somebody with the database's password could."""
    if place.name == "sqlite":
        connection = apsw.Connection(place.url.removeprefix("sqlite:///"))
        connection.execute(statement.format(tenant=tenant))
        connection.close()
    else:
        with psycopg.connect(place.url) as connection:
            connection.execute("SELECT set_config('recollect.tenant', %s, true)", [tenant])
            connection.execute(statement.format(tenant=tenant))


def test_an_event_comes_back_as_it_was_added_with_a_number_and_a_hash(store: Store, tenant: str) -> None:
    meta = {"id": "m-1", "count": 3, "nested": ["ü", None, True, 0.5]}
    first = store.add_event(event("Added 'm-1' — 100%", tenant, agent_id="ann", meta=meta))
    second = store.add_event(event("again", tenant, at=LATER))

    assert store.list_events(tenant) == [second, first]
    assert (first.id, second.id) == (1, 2)
    assert second.previous_hash == first.hash != second.hash


def test_events_are_listed_newest_first_in_pages_and_by_needle(store: Store, tenant: str) -> None:
    for number in range(5):
        store.add_event(event(f"Straße {number}", tenant))

    assert [each.id for each in store.list_events(tenant, limit=2)] == [5, 4]
    assert [each.id for each in store.list_events(tenant, before=4, limit=2)] == [3, 2]
    assert [each.id for each in store.list_events(tenant, needle="STRASSE 3")] == [4]
    assert store.list_events(tenant, needle="%") == []


def test_an_untouched_log_is_intact(store: Store, tenant: str) -> None:
    assert store.verify_events(tenant).is_intact
    for number in range(3):
        store.add_event(event(f"{number}", tenant, meta={"number": number}))

    report = store.verify_events(tenant)
    assert (report.is_intact, report.events) == (True, 3)


def test_many_writers_make_one_chain(store: Store, tenant: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: store.add_event(event(f"{number}", tenant)), range(40)))

    report = store.verify_events(tenant)
    assert (report.is_intact, report.events) == (True, 40)


@pytest.mark.parametrize(
    ("statement", "broken_at"),
    [
        ("UPDATE audit_log SET message = 'other' WHERE tenant_id = '{tenant}' AND id = 2", 2),
        ("UPDATE audit_log SET action = 'other' WHERE tenant_id = '{tenant}' AND id = 3", 3),
        ("DELETE FROM audit_log WHERE tenant_id = '{tenant}' AND id = 1", 1),
        ("DELETE FROM audit_log WHERE tenant_id = '{tenant}' AND id = 2", 2),
        ("DELETE FROM audit_log WHERE tenant_id = '{tenant}' AND id = 3", 3),
        ("DELETE FROM audit_log WHERE tenant_id = '{tenant}'", 1),
    ],
)
def test_a_changed_or_missing_event_shows(
    lasting_place: Place, store: Store, tenant: str, statement: str, broken_at: int
) -> None:
    for number in range(3):
        store.add_event(event(f"{number}", tenant))

    tamper(lasting_place, tenant, statement)

    report = store.verify_events(tenant)
    assert (report.is_intact, report.broken_at) == (False, broken_at)
    assert report.problem


def test_an_event_is_part_of_its_transaction(store: Store, tenant: str) -> None:
    def work() -> None:
        store.add_event(event("undone", tenant))
        raise LookupError

    with pytest.raises(LookupError):
        store.transaction(tenant, work)

    assert store.list_events(tenant) == []
    assert store.add_event(event("kept", tenant)).id == 1
    assert store.verify_events(tenant).is_intact
