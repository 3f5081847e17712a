"""What PostgreSQL refuses without being away: more connections, a full disk, a node of a cluster."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import NOW, note, texts
from tests.postgres_server import PostgresServer
from wellkept.errors import DiskFull, StoreAway, StoreBusy
from wellkept.model import Owner
from wellkept.store import open_store
from wellkept.store.engine import Unit
from wellkept.store.postgres.link import SLOW_CALL
from wellkept.store.sqlstore import SqlStore


def failing(store: SqlStore, ann: Owner, state: str) -> None:
    """A write that the server itself ends with this SQL state."""

    def fail(unit: Unit) -> None:
        unit._connection.execute(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$")  # type: ignore[attr-defined]

    store.write(ann.tenant, fail)


def test_a_server_that_lets_no_more_in_is_busy_and_not_away(postgres_server: PostgresServer, ann: Owner) -> None:
    url = postgres_server.create_database(has_tables=True)
    store = open_store(url, busy_timeout=SLOW_CALL + 1.5, pool_size=4, index_cache_mb=1)
    with psycopg.connect(postgres_server.admin_url(url), autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {url.rpartition('/')[2]} CONNECTION LIMIT 1")
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        store.add_memory(note("held", ann))
        inside.set()
        leave.wait(100)

    holder = threading.Thread(target=store.transaction, args=(ann.tenant, hold))
    holder.start()
    assert inside.wait(100)
    with pytest.raises(StoreBusy):
        store.add_memory(note("one too many", ann))
    leave.set()
    holder.join()

    assert texts(store.list_memories(ann, now=NOW)) == ["held"]
    store.close()


def test_a_full_disk_of_the_database_is_named_until_a_write_succeeds(postgres_url: str, ann: Owner) -> None:
    store = Place("postgres", postgres_url).open()
    with pytest.raises(DiskFull, match="The database's disk is full"):
        failing(store, ann, "53100")

    (problem,) = store.problems()
    assert problem.startswith("Writes fail: The database's disk is full")
    assert store.list_memories(ann, now=NOW) == []
    assert store.problems() != ()
    store.add_memory(note("room again", ann))
    assert store.problems() == ()
    store.close()


def test_a_node_that_is_away_is_named_until_it_answers_again(postgres_url: str, ann: Owner) -> None:
    """As a coordinator says it; there is no cluster here to ask."""
    store = Place("postgres", postgres_url).open()
    with pytest.raises(StoreAway, match="node of the database cluster"):
        failing(store, ann, "08006")

    assert store.problems() == ("A node of the database cluster is away; tenants that cannot be served: 1.",)
    store.list_tenants()
    assert len(store.problems()) == 1
    assert store.list_memories(ann, now=NOW) == []
    assert store.problems() == ()
    store.close()
