"""PostgreSQL that crashes, and connections that are all taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests.conformance.conftest import Place
from tests.conformance.examples import NOW, ids, note
from tests.postgres_server import PostgresServer
from tests.waiting import eventually
from wellkept.errors import StoreAway, StoreBusy, StoreError
from wellkept.model import Kind, Owner
from wellkept.store import open_store
from wellkept.store.engine import Unit

T = TypeVar("T")


def once_it_answers(call: Callable[[], T]) -> T:
    """For a moment after its return the server is still taken to be away."""
    answers: list[T] = []

    def is_answered() -> bool:
        with suppress(StoreAway):
            answers.append(call())
        return bool(answers)

    eventually(is_answered)
    return answers[0]


@pytest.fixture(scope="module")
def durable_server() -> Iterator[PostgresServer]:
    """One that waits for the disk, as a real one does."""
    with PostgresServer.start(durable=True) as server:
        yield server


def test_nothing_acknowledged_is_lost_when_the_server_crashes(durable_server: PostgresServer, ann: Owner) -> None:
    store = Place("postgres", durable_server.create_database()).open(pool_size=2)
    acknowledged: list[str] = []
    crashing, crashed = threading.Event(), threading.Event()

    def write() -> None:
        try:
            while not crashed.is_set():
                acknowledged.append(store.add_memory(note("a", ann)).id)
                if len(acknowledged) > 50:
                    crashing.set()
        except StoreError:
            return

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert crashing.wait(100)
    durable_server.crash()
    crashed.set()
    for thread in threads:
        thread.join(100)

    stored = set(ids(once_it_answers(lambda: store.list_memories(ann, now=NOW, limit=100_000))))
    assert len(acknowledged) > 50
    assert set(acknowledged) <= stored
    assert len(stored) <= len(acknowledged) + len(threads)  # those the crash cut off between commit and answer
    assert store.add_memory(note("afterwards", ann)).id not in stored
    store.close()


def test_connections_that_died_in_the_pool_fail_nobody(durable_server: PostgresServer, ann: Owner) -> None:
    store = Place("postgres", durable_server.create_database()).open(pool_size=4)
    together = threading.Barrier(4)  # so that the pool has to open them all

    def write() -> str:
        return store.transaction(ann.tenant, lambda: (together.wait(100), store.add_memory(note("before", ann)).id)[1])

    with ThreadPoolExecutor(4) as threads:
        before = [each.result() for each in [threads.submit(write) for _ in range(4)]]
    durable_server.crash()

    assert once_it_answers(lambda: store.add_memory(note("afterwards", ann))).id not in before
    assert len(store.list_memories(ann, now=NOW)) == 5
    store.close()


def test_what_is_held_in_memory_does_not_outlive_a_database_put_back_from_a_backup(
    postgres_server: PostgresServer, ann: Owner
) -> None:
    """The same agent with as many changes as before, but others: only that the connection broke tells them apart."""

    def copied(url: str) -> str:
        name = f"copy_{uuid4().hex[:16]}"
        with psycopg.connect(postgres_server.admin_url("postgres"), autocommit=True) as admin:
            copy = sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER app")
            admin.execute(copy.format(sql.Identifier(name), sql.Identifier(url.rpartition("/")[2])))
        return f"{url.rpartition('/')[0]}/{name}"

    def found(word: str) -> int:
        return len(store.search_memories(ann, word, kinds=tuple(Kind), now=NOW))

    place = Place("postgres", postgres_server.create_database())
    first = place.open()
    first.add_memory(note("bread", ann))
    first.close()
    backup, store = copied(place.url), place.open()
    store.add_memory(note("apples", ann))
    assert (found("bread"), found("apples")) == (1, 1)
    postgres_server.drop_database(place.url)
    with psycopg.connect(postgres_server.admin_url("postgres"), autocommit=True) as admin:
        names = (sql.Identifier(url.rpartition("/")[2]) for url in (backup, place.url))
        admin.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*names))
    other = place.open()
    other.add_memory(note("pears", ann))

    assert (once_it_answers(lambda: found("bread")), found("apples"), found("pears")) == (1, 0, 1)
    other.close()
    store.close()


def end_connection(unit: Unit, url: str) -> None:
    """End the connection of a transaction, as a server does that is stopped."""
    pid = unit._connection.info.backend_pid  # type: ignore[attr-defined]
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def test_a_connection_that_ends_under_way_says_what_is_known_and_when_to_retry(postgres_url: str, ann: Owner) -> None:
    store = Place("postgres", postgres_url).open()
    engine = store._engine

    def read(unit: Unit) -> None:
        end_connection(unit, postgres_url)
        unit.all("list_tenants")

    def write(unit: Unit) -> None:
        unit.run("add_tenant", tenant=ann.tenant, now=NOW)
        end_connection(unit, postgres_url)
        unit.run("add_tenant", tenant="other", now=NOW)

    def commit(unit: Unit) -> None:
        unit.run("add_tenant", tenant=ann.tenant, now=NOW)
        end_connection(unit, postgres_url)

    def read_shared() -> None:
        store.read_together(ann.tenant, lambda: engine.read(ann.tenant, read))

    for work, says in (
        (lambda: engine.read(ann.tenant, read), "broke during this read. Try again"),
        (read_shared, "ry again in a moment"),
        (lambda: engine.write(ann.tenant, write), "was not stored; earlier changes of the same call may be"),
        (lambda: engine.write(ann.tenant, commit), "may be stored or not. Check before you try again"),
    ):
        with pytest.raises(StoreError) as caught:
            work()
        assert says in str(caught.value)
        assert caught.value.retry_after == 1.0
    assert ann.tenant not in store.list_tenants()
    store.close()


def test_what_failed_inside_a_transaction_is_never_acknowledged(postgres_url: str, ann: Owner) -> None:
    """PostgreSQL answers the commit of a failed transaction by rolling it back, without an error."""
    store = Place("postgres", postgres_url).open()

    def swallow(unit: Unit) -> None:
        unit.run("add_tenant", tenant=ann.tenant, now=NOW)
        with suppress(psycopg.Error):
            unit.run("add_tenant", tenant=None, now=NOW)

    with pytest.raises(StoreError, match="nothing was written"):
        store._engine.write(ann.tenant, swallow)
    assert ann.tenant not in store.list_tenants()
    assert store.add_memory(note("afterwards", ann)).id == "m-1"
    store.close()


def test_a_pool_without_a_free_connection_is_a_reason_to_try_again(
    postgres_url: str, ann: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Place("postgres", postgres_url).open(pool_size=1)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        leave.wait(100)

    holder = threading.Thread(target=store.transaction, args=(ann.tenant, hold))
    holder.start()
    assert inside.wait(100)
    with monkeypatch.context() as impatient:
        impatient.setattr(store._engine._link, "_busy_timeout", 0.3)  # type: ignore[attr-defined]
        with pytest.raises(StoreBusy) as caught:
            store.add_memory(note("now", ann))
    leave.set()
    holder.join()

    assert (caught.value.retry_after or 0) > 0
    assert store.add_memory(note("then", ann)).id == "m-1"
    store.close()


def test_an_address_where_nobody_listens_is_said_so() -> None:
    with pytest.raises(StoreError, match="cannot be reached"):
        open_store("postgresql://app:secret-word@127.0.0.1:1/none", busy_timeout=1, pool_size=1, index_cache_mb=1)
