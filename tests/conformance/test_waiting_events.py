"""Events that are committed and not yet part of the chain: they are seen, and none is lost or changed unnoticed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import NOW, event
from tests.conformance.test_audit import tamper
from wellkept.errors import ReadOnly
from wellkept.history.rules_history import event_hash
from wellkept.model import Owner
from wellkept.store import open_store
from wellkept.store.migrations import TENANT_SETTING
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables import history

pytestmark = pytest.mark.only_on("postgres")

KEY = "correct horse battery staple"
OF_TENANT = "WHERE tenant_id = '{tenant}'"
LONG = 3600.0


@pytest.fixture
def tenant(ann: Owner) -> str:
    return ann.tenant


@pytest.fixture
def writer(lasting_place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlStore]:
    """A store that adds nothing to the chain by itself, as if it had been killed after each commit."""
    monkeypatch.setattr(history, "SEAL_PAUSE", LONG)
    store = lasting_place.open()
    yield store
    store.close()


def write(store: SqlStore, tenant: str, *messages: str, agent: str = "ann", seconds: int = 0) -> None:
    """Write events in one transaction, in which a change would be, too."""
    at = NOW + timedelta(seconds=seconds)

    def add() -> None:
        for message in messages:
            store.add_event(event(message, tenant, agent_id=agent, at=at))

    store.transaction(tenant, add)


def count_waiting(place: Place, tenant: str) -> int:
    with psycopg.connect(place.url) as connection:
        connection.execute(f"SET LOCAL {TENANT_SETTING} = '{tenant}'")
        row = connection.execute("SELECT count(*) FROM audit_waiting").fetchone()
        assert row is not None
        return int(row[0])


def list_messages(store: SqlStore, tenant: str) -> list[str]:
    return [each.message for each in reversed(store.list_events(tenant, limit=1000))]


def test_transactions_of_one_moment_are_listed_in_their_order(writer: SqlStore, tenant: str) -> None:
    write(writer, tenant, "logged", "remembered", "remembered too")
    write(writer, tenant, "deleted")
    write(writer, tenant, "of an hour before", seconds=-3600)

    assert list_messages(writer, tenant) == ["of an hour before", "logged", "remembered", "remembered too", "deleted"]


def test_waiting_events_are_seen_by_every_reader(
    lasting_place: Place, store: SqlStore, writer: SqlStore, ann: Owner
) -> None:
    tenant = ann.tenant
    readers = [
        lambda: store.list_events(tenant)[0].id,
        lambda: store.verify_events(tenant).events,
        lambda: store.audit_head(tenant).id,
        lambda: max(store.find_events(tenant, [1, 2, 3, 4, 5, 6])),
        lambda: store.count_events(tenant),
        lambda: len(store.list_traces(tenant, "audit_log")),
    ]
    for number, read in enumerate(readers, 1):
        write(writer, tenant, f"event {number}", seconds=number)
        assert count_waiting(lasting_place, tenant) == 1
        assert read() == number
        assert count_waiting(lasting_place, tenant) == 0

    write(writer, tenant, "last", seconds=9)
    exported: list[str] = []
    store.export_rows(tenant, lambda table, row: exported.append(table))
    assert exported.count("audit_log") == len(readers) + 1
    assert store.verify_events(tenant).is_intact


def test_store_that_closes_adds_them_to_the_chain(lasting_place: Place, tenant: str) -> None:
    writer = lasting_place.open()
    write(writer, tenant, "one")
    writer.close()

    assert count_waiting(lasting_place, tenant) == 0


def test_events_of_one_transaction_keep_their_order(writer: SqlStore, store: SqlStore, tenant: str) -> None:
    names = [f"event {number}" for number in range(20)]
    write(writer, tenant, *names)

    assert list_messages(store, tenant) == names


def test_transaction_that_fails_leaves_no_gap(writer: SqlStore, store: SqlStore, tenant: str) -> None:
    def fail() -> None:
        writer.add_event(event("lost", tenant))
        raise KeyError

    write(writer, tenant, "one")
    with pytest.raises(KeyError):
        writer.transaction(tenant, fail)
    write(writer, tenant, "two", seconds=1)

    assert list_messages(store, tenant) == ["one", "two"]
    assert store.verify_events(tenant).is_intact


@pytest.mark.parametrize("is_last", [False, True])
def test_missing_event_shows_now_and_later(
    lasting_place: Place, writer: SqlStore, store: SqlStore, tenant: str, is_last: bool
) -> None:
    for number in range(3):
        write(writer, tenant, f"event {number}", seconds=number)
    tamper(lasting_place, tenant, f"DELETE FROM audit_waiting {OF_TENANT} AND place = {3 if is_last else 2}")

    for _ in range(2):
        report = store.verify_events(tenant)
        assert not report.is_intact
        assert report.problem == "1 event that waited to be added to the log is missing."
        write(writer, tenant, "next", seconds=9)


def test_changed_event_is_refused_and_shows(
    lasting_place: Place, writer: SqlStore, store: SqlStore, tenant: str
) -> None:
    write(writer, tenant, "one")
    write(writer, tenant, "two", seconds=1)
    tamper(lasting_place, tenant, f"UPDATE audit_waiting SET message = 'other' {OF_TENANT} AND place = 1")

    assert list_messages(store, tenant) == ["two"]
    report = store.verify_events(tenant)
    assert not report.is_intact
    assert report.problem.startswith("1 event that waited to be added to the log does not match its hash")


def test_places_do_not_decide_the_order(lasting_place: Place, writer: SqlStore, store: SqlStore, tenant: str) -> None:
    for number in range(3):
        write(writer, tenant, f"event {number}", seconds=number)
    for change in ("-1 WHERE place = 1", "1 WHERE place = 3", "3 WHERE place = -1"):
        tamper(lasting_place, tenant, f"UPDATE audit_waiting SET place = {change} AND tenant_id = '{{tenant}}'")

    assert list_messages(store, tenant) == ["event 0", "event 1", "event 2"]


def test_event_that_is_repeated_is_refused(
    lasting_place: Place, writer: SqlStore, store: SqlStore, tenant: str
) -> None:
    write(writer, tenant, "one")
    with psycopg.connect(lasting_place.url) as connection:
        connection.execute(f"SET LOCAL {TENANT_SETTING} = '{tenant}'")
        connection.execute("CREATE TEMPORARY TABLE kept ON COMMIT PRESERVE ROWS AS SELECT * FROM audit_waiting")
        connection.commit()
        assert list_messages(store, tenant) == ["one"]
        connection.execute(f"SET LOCAL {TENANT_SETTING} = '{tenant}'")
        connection.execute("INSERT INTO audit_waiting SELECT * FROM kept")

    assert list_messages(store, tenant) == ["one"]
    assert not store.verify_events(tenant).is_intact


def test_keyed_log_takes_events_of_its_key_only(lasting_place: Place, writer: SqlStore, tenant: str) -> None:
    keyed = open_store(lasting_place.url, busy_timeout=100, pool_size=2, index_cache_mb=8, audit_key=KEY)
    try:
        # Written before the key was set, and still waiting.
        write(writer, tenant, "one")
        write(keyed, tenant, "two", seconds=1)
        report = keyed.verify_events(tenant)
        assert (report.is_intact, report.events, report.keyed_from) == (True, 2, 2)

        with pytest.raises(ReadOnly, match="audit_key"):
            write(writer, tenant, "three")
        # A row that somebody without the key has made.
        write(keyed, tenant, "four", seconds=2)
        hash = event_hash(event("forged", tenant, agent_id="ann"), history.WAITING_HASH, "")
        tamper(
            lasting_place,
            tenant,
            f"UPDATE audit_waiting SET message = 'forged', at = '{NOW}', hash = '{hash}' {OF_TENANT}",
        )
        assert list_messages(keyed, tenant) == ["one", "two"]
        assert not keyed.verify_events(tenant).is_intact
    finally:
        keyed.close()


def test_process_without_the_key_reads_the_log_as_it_is(lasting_place: Place, writer: SqlStore, tenant: str) -> None:
    keyed = open_store(lasting_place.url, busy_timeout=100, pool_size=2, index_cache_mb=8, audit_key=KEY)
    try:
        keyed.add_event(event("one", tenant))
        write(keyed, tenant, "two", seconds=1)

        assert list_messages(writer, tenant) == ["one"]
        assert list_messages(keyed, tenant) == ["one", "two"]
    finally:
        keyed.close()


def test_many_writers_of_both_ways_make_one_chain(lasting_place: Place, tenant: str) -> None:
    """A server of an earlier version adds its events to the chain directly, beside others."""
    stores = [lasting_place.open(), lasting_place.open()]

    def work(number: int) -> None:
        for count in range(20):
            if number % 4:
                write(stores[number % 2], tenant, f"{number}-{count}", agent=f"agent-{number}")
            else:
                stores[number % 2].add_event(event(f"{number}-{count}", tenant))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        report = stores[0].verify_events(tenant)
        assert (report.is_intact, report.events) == (True, 160)
        assert sorted(list_messages(stores[0], tenant)) == sorted(f"{a}-{b}" for a in range(8) for b in range(20))
    finally:
        for store in stores:
            store.close()
