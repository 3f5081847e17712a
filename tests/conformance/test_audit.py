"""`SqlStore`: what was done, in order, and whether anybody has touched it since."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apsw
import psycopg
import pytest

from tests.conformance.conftest import Place, set_tenant
from tests.conformance.examples import LATER, event, owner
from wellkept.caller import acting_as
from wellkept.errors import StoreError
from wellkept.memory.rules_filters import EVENT_FIELDS, parse_filter
from wellkept.model import Owner
from wellkept.store.search import memory_search
from wellkept.store.search.memory_search import SPARE
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables import history as audit


@pytest.fixture
def tenant(ann: Owner) -> str:
    return ann.tenant


def tamper(place: Place, tenant: str, statement: str) -> None:
    """Change the log past the store, as somebody with the database's password could."""
    if place.name == "sqlite":
        file = apsw.Connection(place.url.removeprefix("sqlite:///"))
        file.execute(statement.format(tenant=tenant))
        file.close()
    else:
        with psycopg.connect(place.url) as connection:
            set_tenant(connection, tenant)
            connection.execute(statement.format(tenant=tenant))


def test_an_event_comes_back_as_it_was_added_with_a_number_and_a_hash(store: SqlStore, tenant: str) -> None:
    meta = {"id": "m-1", "count": 3, "nested": ["ü", None, True, 0.5]}
    first = store.add_event(event("Added 'm-1' — 100%", tenant, agent_id="ann", meta=meta))
    second = store.add_event(event("again", tenant, at=LATER))

    assert store.list_events(tenant) == [second, first]
    assert (first.id, second.id) == (1, 2)
    assert second.previous_hash == first.hash != second.hash


def test_events_are_listed_newest_first_in_pages_and_by_needle(store: SqlStore, tenant: str) -> None:
    for number in range(5):
        store.add_event(event(f"Straße {number}", tenant))

    assert [each.id for each in store.list_events(tenant, limit=2)] == [5, 4]
    assert [each.id for each in store.list_events(tenant, before=4, limit=2)] == [3, 2]
    assert [each.id for each in store.list_events(tenant, needle="STRASSE 3")] == [4]
    assert store.list_events(tenant, needle="%") == []


def test_events_are_listed_by_agent(store: SqlStore, tenant: str) -> None:
    for agent in ("ann", "bob", None, "ann"):
        store.add_event(event("Straße", tenant, agent_id=agent))

    assert [each.id for each in store.list_events(tenant, agents=["ann"])] == [4, 1]
    assert [each.id for each in store.list_events(tenant, agents=["ann", "bob"], before=4, limit=1)] == [2]
    assert store.list_events(tenant, agents=["'"], needle="strasse") == []


def test_events_are_filtered_by_action_agent_actor_and_time(store: SqlStore, place: Place, tenant: str) -> None:
    with acting_as("key-1"):
        store.add_event(event("one", tenant, action="tea.made", agent_id="ann"))
    store.add_event(event("two", tenant, action="tea.spilt", agent_id="bob", at=LATER))
    store.add_event(event("three", tenant, action="tea.made"))

    def find(where: str, **options: Any) -> list[int]:
        return [each.id for each in store.list_events(tenant, where=parse_filter(where, EVENT_FIELDS), **options)]

    assert find("action = 'tea.made'") == [3, 1]
    assert find("action = 'tea.made' and agent = 'ann'") == [1]
    assert find("agent = 'ann' or agent = 'bob'", agents=["bob"]) == [2]
    assert find("not agent exists") == [3]
    assert find("actor = 'key-1'") == [1]
    assert find(f"at >= '{LATER.isoformat()}'") == [2]
    if place.name != "memory":
        tamper(place, tenant, "UPDATE audit_log SET meta = 'broken' WHERE tenant_id = '{tenant}' AND id = 2")
        assert find("actor = 'key-1'") == [1]


def test_events_name_the_actor_they_were_written_for(store: SqlStore, tenant: str) -> None:
    def work() -> None:
        store.add_event(event("in a transaction", tenant, meta={"id": "m-1"}))

    def write(actor: str) -> None:
        with acting_as(actor):
            store.transaction(tenant, work)

    with ThreadPoolExecutor(8) as pool:  # on SQLite the writer's thread does the work of most
        list(pool.map(write, [f"job-{number % 4}" for number in range(40)]))
    nobodys = store.add_event(event("alone", tenant))

    events = store.list_events(tenant, limit=100)
    assert Counter(each.actor for each in events) == {"": 1, **{f"job-{number}": 10 for number in range(4)}}
    assert (nobodys.actor, nobodys.meta) == ("", {})
    assert store.verify_events(tenant).is_intact


def test_an_untouched_log_is_intact(store: SqlStore, tenant: str) -> None:
    assert store.verify_events(tenant).is_intact
    for number in range(3):
        store.add_event(event(f"{number}", tenant, meta={"number": number}))

    report = store.verify_events(tenant)
    assert (report.is_intact, report.events) == (True, 3)


def test_many_writers_make_one_chain(store: SqlStore, tenant: str) -> None:
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
    lasting_place: Place, store: SqlStore, tenant: str, statement: str, broken_at: int
) -> None:
    for number in range(3):
        store.add_event(event(f"{number}", tenant))

    tamper(lasting_place, tenant, statement)

    report = store.verify_events(tenant)
    assert (report.is_intact, report.broken_at) == (False, broken_at)
    assert report.problem


def test_an_event_is_part_of_its_transaction(store: SqlStore, tenant: str) -> None:
    def work() -> None:
        store.add_event(event("undone", tenant))
        raise LookupError

    with pytest.raises(LookupError):
        store.transaction(tenant, work)

    assert store.list_events(tenant) == []
    assert store.add_event(event("kept", tenant)).id == 1
    assert store.verify_events(tenant).is_intact


# --- finding by words


def found(store: SqlStore, tenant: str, query: str, **options: int) -> list[str]:
    matches = store.search_events(tenant, query, **options)
    events = store.find_events(tenant, [match.seq for match in matches])
    assert all(0 < match.score <= 1 for match in matches)
    assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)
    return [events[match.seq].message for match in matches]


def test_events_are_found_by_the_words_they_share_with_a_question(store: SqlStore, tenant: str) -> None:
    for message in (
        "Refund of 30 euro approved",
        "Invoice sent",
        "A refund was refused: no receipt",
        "Note m-17 stored.",
    ):
        store.add_event(event(message, tenant))

    assert found(store, tenant, "was a REFUND approved?") == [
        "Refund of 30 euro approved",
        "A refund was refused: no receipt",
    ]
    assert found(store, tenant, "refunds", limit=1) == ["A refund was refused: no receipt"]  # of equals the shorter
    assert found(store, tenant, "what became of m-17") == ["Note m-17 stored."]
    assert found(store, tenant, "17 things") == []  # an id is one word
    assert found(store, tenant, "nothing of the kind") == []


@pytest.mark.parametrize(
    "query", ["%", "_", "''", "refund' OR 1=1 --", '"refund"', "refund:*", "(refund", "!refund & x"]
)
def test_a_question_about_events_is_only_words(store: SqlStore, tenant: str, query: str) -> None:
    store.add_event(event("Refund paid", tenant))
    store.add_event(event("100% _done_", tenant))

    assert found(store, tenant, query) == (["Refund paid"] if "refund" in query else [])


def test_the_next_search_sees_every_new_event(lasting_place: Place, store: SqlStore, tenant: str) -> None:
    other = lasting_place.open()
    try:
        for number in range(3):
            (store, other)[number % 2].add_event(event(f"refund {number}", tenant))
            assert len(found(store, tenant, "refund")) == len(found(other, tenant, "refund")) == number + 1
    finally:
        other.close()


def test_a_rare_word_says_more_than_a_common_one(store: SqlStore, tenant: str) -> None:
    for number in range(20):
        store.add_event(event(f"order {number} was shipped", tenant))
    store.add_event(event("order 99 was lost", tenant))

    lost, shipped = store.search_events(tenant, "lost order")[:2]
    assert lost.seq == 21
    assert lost.score > 5 * shipped.score


def test_only_the_newest_are_searched_and_the_list_stays_short(
    store: SqlStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_SEARCHED", 10)
    for number in range(40):
        store.add_event(event(f"refund {number}", tenant))
        if number % 3 == 0:
            store.search_events(tenant, "refund")

    newest = {match.seq for match in store.search_events(tenant, "refund", limit=100)}
    assert newest >= set(range(31, 41))
    assert len(newest) <= 10 * SPARE
    assert [match.seq for match in store.search_events(tenant, "5")] == []


def test_more_histories_than_fit_into_memory_are_all_searched(
    lasting_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_search, "HISTORY_BYTES", 200)
    store = lasting_place.open()
    tenants = [owner().tenant for _ in range(5)]
    for name in tenants:
        store.add_event(event(f"refund for {name}", name))
    for name in (*tenants, *tenants):
        assert found(store, name, "refund") == [f"refund for {name}"]
    store.close()


def test_a_search_inside_a_transaction_is_refused(store: SqlStore, tenant: str) -> None:
    with pytest.raises(StoreError, match="only committed rows"):
        store.transaction(tenant, lambda: store.search_events(tenant, "refund"))


@pytest.mark.parametrize("damage", ["at = 'the day before'", "meta = '{{'", "meta = '[1]'"])
def test_what_somebody_has_damaged_is_listed_with_a_mark(
    lasting_place: Place, store: SqlStore, tenant: str, damage: str
) -> None:
    for number in range(3):
        store.add_event(event(f"refund {number}", tenant, meta={"number": number}))
    statement = f"UPDATE audit_log SET {damage} WHERE tenant_id = '{{tenant}}' AND id = 2"
    if lasting_place.name != "sqlite" and damage.startswith("at"):
        with pytest.raises(psycopg.DataError):  # PostgreSQL lets nobody write this
            tamper(lasting_place, tenant, statement)
        return
    tamper(lasting_place, tenant, statement)

    listed = store.list_events(tenant)
    assert [(each.message, each.is_damaged) for each in listed] == [
        ("refund 2", False),
        ("refund 1", True),
        ("refund 0", False),
    ]
    assert store.find_events(tenant, [2])[2].is_damaged
    assert store.verify_events(tenant).broken_at == 2
