"""Conversations: messages in order without a gap, a summary that is never overwritten by an older one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import apsw
import psycopg
import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import NOW, messages, owner, session
from wellkept.errors import Conflict, NotFound
from wellkept.model import Owner, Role
from wellkept.model.stored import place_of
from wellkept.store.conditions import ALL_ROWS, PLACE
from wellkept.store.migrations import TENANT_SETTING
from wellkept.store.queries import as_numbered, load_queries
from wellkept.store.sqlstore import SqlStore


def contents(store: SqlStore, ann: Owner, id: str, **options: Any) -> list[str]:
    return [message.content for message in store.list_messages(ann, id, **options)]


def test_a_session_comes_back_as_it_was_added_and_makes_its_agent(store: SqlStore, ann: Owner) -> None:
    added = store.add_session(session("s-1", ann, summary="so far", summarized_count=0))

    assert store.get_session(ann, "s-1") == store.find_session(ann, "s-1") == added
    assert store.find_tenant_session(ann.tenant, "s-1") == added
    assert store.get_agent(ann).name == "ann"


def test_an_id_is_taken_once_in_a_tenant(store: SqlStore, ann: Owner, bob: Owner, stranger: Owner) -> None:
    first = store.add_session(session("s-1", ann))

    for taker in (ann, bob):
        with pytest.raises(Conflict, match="choose another id"):
            store.add_session(session("s-1", taker))
    store.add_session(session("s-1", stranger))
    assert store.get_session(ann, "s-1") == first


def test_messages_are_numbered_from_one_without_a_gap(store: SqlStore, ann: Owner) -> None:
    store.add_session(session("s-1", ann))
    later = NOW + timedelta(hours=1)

    first = store.add_messages(ann, "s-1", messages("hi", "hello"))
    second = store.add_messages(ann, "s-1", messages("and?", "nothing", created_at=later))

    assert [each.position for each in (*first, *second)] == [1, 2, 3, 4]
    assert store.list_messages(ann, "s-1") == [*first, *second]
    assert [each.role for each in second] == [Role.USER, Role.ASSISTANT]
    known = store.get_session(ann, "s-1")
    assert (known.message_count, known.created_at, known.updated_at) == (4, NOW, later)


def test_nothing_added_is_nothing(store: SqlStore, ann: Owner) -> None:
    assert store.add_messages(ann, "no-such", []) == []


def test_messages_are_kept_word_for_word(store: SqlStore, ann: Owner) -> None:
    store.add_session(session("s-1", ann))
    odd = ["  spaces \n\tstay ", "東京 🎉 e\u0301 '; DROP TABLE chat_messages; --", "x" * 100_000]

    store.add_messages(ann, "s-1", messages(*odd))

    assert contents(store, ann, "s-1") == odd


def test_a_clock_that_goes_back_moves_no_session_back(store: SqlStore, ann: Owner) -> None:
    store.add_session(session("s-1", ann))

    store.add_messages(ann, "s-1", messages("hi", "hello", created_at=NOW - timedelta(days=1)))

    assert store.get_session(ann, "s-1").updated_at == NOW


def test_pages_follow_each_other(store: SqlStore, ann: Owner) -> None:
    store.add_session(session("s-1", ann))
    store.add_messages(ann, "s-1", messages(*(str(number) for number in range(1, 8))))

    assert contents(store, ann, "s-1", limit=3) == ["1", "2", "3"]
    assert contents(store, ann, "s-1", after=3, limit=3) == ["4", "5", "6"]
    assert contents(store, ann, "s-1", after=6, limit=3) == ["7"]
    assert contents(store, ann, "s-1", after=7) == []


def test_what_is_not_there_is_not_found(store: SqlStore, ann: Owner, bob: Owner) -> None:
    store.add_session(session("s-1", bob))

    for id in ("s-1", "no-such"):
        assert store.find_session(ann, id) is None
        for attempt in (
            lambda id=id: store.get_session(ann, id),
            lambda id=id: store.list_messages(ann, id),
            lambda id=id: store.add_messages(ann, id, messages("mine")),
            lambda id=id: store.update_summary(ann, id, "mine", covers=0, instead_of=0),
            lambda id=id: store.delete_session(ann, id),
        ):
            with pytest.raises(NotFound, match="There is no such session"):
                attempt()
    assert store.find_tenant_session(ann.tenant, "no-such") is None
    assert store.list_messages(bob, "s-1") == []


def test_sessions_are_listed_the_last_used_first(store: SqlStore, ann: Owner, bob: Owner) -> None:
    for number in range(5):
        store.add_session(session(f"s-{number}", ann, updated_at=NOW + timedelta(minutes=number // 2)))
    store.add_session(session("b-1", bob, updated_at=NOW + timedelta(minutes=1)))

    listed = store.list_sessions(ann)
    assert [each.id for each in listed] == ["s-4", "s-3", "s-2", "s-1", "s-0"]
    assert [each.id for each in store.list_tenant_sessions(ann.tenant)] == ["s-4", "s-3", "s-2", "b-1", "s-1", "s-0"]
    assert store.list_sessions(ann, before=place_of(listed[1]), limit=2) == listed[2:4]
    assert [each.id for each in store.list_tenant_sessions(ann.tenant, before=place_of(listed[2]), limit=2)] == [
        "b-1",
        "s-1",
    ]
    store.add_messages(ann, "s-0", messages("again", "hello", created_at=NOW + timedelta(days=1)))
    assert store.list_sessions(ann, limit=1)[0].id == "s-0"


def test_a_deleted_session_takes_its_messages_along(store: SqlStore, ann: Owner) -> None:
    store.add_session(session("s-1", ann))
    store.add_messages(ann, "s-1", messages("hi", "hello"))

    store.delete_session(ann, "s-1")

    store.add_session(session("s-1", ann))
    assert store.list_messages(ann, "s-1") == []


def test_a_removed_agent_takes_its_sessions_along(store: SqlStore, ann: Owner, bob: Owner) -> None:
    store.add_session(session("s-1", ann))
    store.add_session(session("s-2", bob))

    store.delete_agent(ann)

    assert [each.id for each in store.list_tenant_sessions(ann.tenant)] == ["s-2"]


def test_a_summary_is_written_with_its_count_over_the_one_it_was_made_from(store: SqlStore, ann: Owner) -> None:
    store.add_session(session("s-1", ann))
    store.add_messages(ann, "s-1", messages("a", "b", "c", "d"))

    written = store.update_summary(ann, "s-1", "a and b", covers=2, instead_of=0)

    assert written == store.get_session(ann, "s-1")
    assert (written.summary, written.summarized_count, written.message_count) == ("a and b", 2, 4)
    for covers, instead_of in ((3, 0), (2, 0), (1, 2), (5, 2), (3, 1)):
        with pytest.raises(Conflict, match="read it again"):
            store.update_summary(ann, "s-1", "late", covers=covers, instead_of=instead_of)
    assert store.get_session(ann, "s-1") == written
    assert store.update_summary(ann, "s-1", "all", covers=4, instead_of=2).summarized_count == 4


def test_writers_at_once_leave_no_gap_and_keep_their_turns_together(lasting_place: Place) -> None:
    ann = owner()
    stores = [lasting_place.open(), lasting_place.open()]
    stores[0].add_session(session("s-1", ann))
    gate = threading.Barrier(8)

    def talk(number: int) -> None:
        gate.wait()
        for turn in range(5):
            stores[number % 2].add_messages(ann, "s-1", messages(f"q {number} {turn}", f"a {number} {turn}"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(talk, range(8)))

    said = stores[0].list_messages(ann, "s-1")
    assert [each.position for each in said] == list(range(1, 81))
    for question, answer in zip(said[::2], said[1::2], strict=True):
        assert question.content.removeprefix("q") == answer.content.removeprefix("a")
    assert len({each.content for each in said}) == 80
    for each in stores:
        each.close()


def test_of_many_summaries_at_once_one_is_written(lasting_place: Place) -> None:
    ann = owner()
    stores = [lasting_place.open(), lasting_place.open()]
    stores[0].add_session(session("s-1", ann))
    stores[0].add_messages(ann, "s-1", messages(*"abcdefgh"))
    gate = threading.Barrier(8)

    def fold(number: int) -> str:
        gate.wait()
        try:
            return stores[number % 2].update_summary(ann, "s-1", f"by {number}", covers=4, instead_of=0).summary
        except Conflict:
            return ""

    with ThreadPoolExecutor(8) as threads:
        written = [each for each in threads.map(fold, range(8)) if each]

    assert written == [stores[0].get_session(ann, "s-1").summary]
    for each in stores:
        each.close()


# --- what it costs: not the clock is asked, but the databases themselves


STATEMENTS = ("find_session", "take_positions", "messages_after", "update_summary", "delete_session", "first_sessions")


@pytest.mark.parametrize("name", STATEMENTS)
def test_sqlite_searches_by_key_and_walks_over_nothing(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("plan") / "memory.db"
    Place("sqlite", f"sqlite:///{path}").open().close()
    sql, names = as_numbered(load_queries("sqlite")[name].replace(PLACE, ALL_ROWS.sql))
    with closing(apsw.Connection(str(path))) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * len(names))]

    assert plan
    assert all(line.startswith("SEARCH") or "LAST TERM OF ORDER BY" in line for line in plan), plan


def test_postgres_touches_the_same_rows_however_much_is_covered(postgres_url: str) -> None:
    store, owners = Place("postgres-18", postgres_url).open(), {}
    for count in (1_000, 20_000):
        owners[count] = owner()
        store.add_session(session("s-1", owners[count]))
        store.add_messages(owners[count], "s-1", messages(*(str(number) for number in range(count))))
    store.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ANALYZE chat_messages")

    assert [rows_read(postgres_url, ann, count - 12) for count, ann in owners.items()] == [12, 12]


def rows_read(url: str, ann: Owner, after: int) -> int:
    """How many rows PostgreSQL touches to load what follows a position."""
    sql, _ = as_numbered(load_queries("postgres")["messages_after"])
    with psycopg.connect(url) as connection:
        connection.execute(f"SET LOCAL {TENANT_SETTING} = '{ann.tenant}'")
        connection.execute(f"PREPARE loading AS {sql.replace('?', '$')}")
        row = connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE loading ('{ann.tenant}', 's-1', {after}, 1000)"
        ).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    while "Plans" in plan:
        (plan,) = plan["Plans"]
    return int(plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
