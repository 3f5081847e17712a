"""Statements of a distribution, in order. No Citus runs here: its two functions are plain SQL functions that log.

The server is real, and so are the tables, references and roles; only what Citus itself would do is missing.
"""

from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres_server import PostgresServer
from wellkept import Settings, Wellkept
from wellkept.errors import Invalid, StoreBusy, StoreError
from wellkept.store.postgres import citus, schema
from wellkept.store.postgres.link import translate_admin_errors
from wellkept.store.postgres.schema import unforce_statements

# The catalogue and the functions of Citus that are called, as far as statements can tell.
STAND_IN = """
CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod "char" DEFAULT 'h');
CREATE TABLE calls (number SERIAL, call TEXT);
CREATE FUNCTION create_reference_table(name text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO calls (call) VALUES ('reference ' || name); INSERT INTO pg_dist_partition VALUES (name::regclass, 'n') $$;
CREATE FUNCTION create_distributed_table(name text, by text, colocate_with text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO calls (call) VALUES ('distributed ' || name || ' ' || by || ' with ' || colocate_with);
  INSERT INTO pg_dist_partition VALUES (name::regclass) $$;
CREATE FUNCTION undistribute_table(name text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO calls (call) VALUES ('local ' || name);
  DELETE FROM pg_dist_partition WHERE logicalrelid = name::regclass $$;
CREATE FUNCTION truncate_local_data_after_distributing_table(name text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO calls (call) VALUES ('truncated ' || name) $$;
"""


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    url = postgres_server.create_database(has_tables=True)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(STAND_IN)
    yield url
    postgres_server.drop_database(url)


def fill(url: str) -> None:
    with Wellkept(settings=Settings(url=url, embedder="off")) as store:
        store.agent("ada", tenant="one").remember("Sails on Sundays")


def unforce(connection: psycopg.Connection) -> None:
    for statement in unforce_statements(connection):
        connection.execute(statement)


def read_calls(connection: psycopg.Connection) -> list[str]:
    return [call for (call,) in connection.execute("SELECT call FROM calls ORDER BY number").fetchall()]


def test_tables_come_after_those_they_refer_to_and_local_rows_go_last(url: str) -> None:
    fill(url)
    with psycopg.connect(url, autocommit=True) as connection:
        unforce(connection)
        done = citus.distribute_pending(connection)
        calls = read_calls(connection)
        again = citus.distribute_pending(connection)

    assert calls[:2] == ["reference embedders", "distributed agents tenant_id with default"]
    assert "distributed memories tenant_id with agents" in calls
    assert again == []
    truncated = [each for each in calls if each.startswith("truncated")]
    assert {"truncated memories", "truncated agents", "truncated tenants"} <= {*truncated}
    assert calls[-len(truncated) :] == truncated
    assert len(done) == len(calls) - len(truncated)


def test_an_interrupted_distribution_goes_on(url: str) -> None:
    fill(url)
    with psycopg.connect(url, autocommit=True) as connection:
        unforce(connection)
        connection.execute("INSERT INTO pg_dist_partition VALUES ('tenants'), ('agents')")

        done = citus.distribute_pending(connection)

        assert "agents" not in done
        assert "memories" in done
        # Rows of what was distributed before the interruption are removed, too.
        assert "truncated agents" in read_calls(connection)


def test_forced_tables_with_rows_are_refused_before_anything_is_done(url: str) -> None:
    fill(url)
    with psycopg.connect(url, autocommit=True) as connection:
        with pytest.raises(Invalid, match=r"forced on agents, .*memories.*wellkept admin db init"):
            citus.distribute_pending(connection)

        assert read_calls(connection) == []


def test_the_reason_of_a_failure_is_shown(url: str) -> None:
    said = r"replication_factor \(1\) exceeds number of worker nodes \(0\)\. Hint: Add more worker nodes"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION create_reference_table(name text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE 'replication_factor (1) exceeds number of worker nodes (0)' "
            "USING ERRCODE = '22023', HINT = 'Add more worker nodes'; END $$"
        )
        with pytest.raises(StoreError, match=said), translate_admin_errors():
            citus.distribute_pending(connection)


def test_a_migration_distributes_what_it_creates(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The one thing that a stand-in cannot be: an extension.
    monkeypatch.setattr(citus, "HAS_CITUS", "SELECT 1")
    with psycopg.connect(url, autocommit=True) as connection:
        citus.distribute_pending(connection)
        connection.execute("DELETE FROM pg_dist_partition WHERE logicalrelid = 'console_logins'::regclass")
        connection.execute("DROP TABLE console_logins")
        connection.execute("DELETE FROM schema_migrations WHERE name = 'console_logins'")
        before = len(read_calls(connection))

        schema.migrate_and_distribute(connection)

        assert read_calls(connection)[before:] == ["distributed console_logins tenant_id with agents"]


def test_a_migration_whose_tables_cannot_be_distributed_names_the_command_that_does_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(citus, "HAS_CITUS", "SELECT 1")
    with psycopg.connect(url, autocommit=True) as connection:
        citus.distribute_pending(connection)
        connection.execute("DELETE FROM pg_dist_partition WHERE logicalrelid = 'console_logins'::regclass")
        connection.execute("DROP TABLE console_logins")
        connection.execute("DELETE FROM schema_migrations WHERE name = 'console_logins'")
        connection.execute("ALTER FUNCTION create_distributed_table RENAME TO away")

        with pytest.raises(StoreError, match=r"42883.* migrations are applied.*`wellkept admin db distribute --url"):
            schema.migrate_and_distribute(connection)

        connection.execute("ALTER FUNCTION away RENAME TO create_distributed_table")
    assert citus.distribute(url) == ["console_logins"]


def test_a_distribution_does_not_wait_for_ever(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(citus, "LOCK_TIMEOUT_MS", 50)
    with psycopg.connect(url, autocommit=True) as connection, psycopg.connect(url) as other:
        citus.distribute_pending(connection)
        connection.execute("UPDATE pg_dist_partition SET partmethod = 'n' WHERE logicalrelid = 'tenants'::regclass")
        connection.execute(
            "CREATE OR REPLACE FUNCTION undistribute_table(name text) RETURNS void LANGUAGE plpgsql AS "
            "$$ BEGIN LOCK TABLE tenants; END $$"
        )
        other.execute("SELECT 1 FROM tenants")

        with pytest.raises(StoreBusy), translate_admin_errors():
            citus.distribute_pending(connection)


def test_a_registry_that_earlier_versions_copied_to_every_node_is_distributed(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        citus.distribute_pending(connection)
        connection.execute("UPDATE pg_dist_partition SET partmethod = 'n' WHERE logicalrelid = 'tenants'::regclass")
        before = len(read_calls(connection))

        citus.distribute_pending(connection)
        citus.distribute_pending(connection)

        assert read_calls(connection)[before:] == ["local tenants", "distributed tenants tenant_id with agents"]


NODES = """
CREATE TABLE pg_dist_node (groupid INTEGER, nodename TEXT, nodeport INTEGER);
CREATE TABLE pg_dist_placement (shardid BIGINT, groupid INTEGER);
CREATE TABLE pg_dist_shard (shardid BIGINT, logicalrelid regclass);
INSERT INTO pg_dist_node VALUES (1, 'east', 5432), (2, 'west', 5433);
INSERT INTO pg_dist_shard SELECT 100 + n, 'agents'::regclass FROM generate_series(0, 3) n;
INSERT INTO pg_dist_placement SELECT 100 + n, 1 + n % 2 FROM generate_series(0, 3) n;
CREATE TABLE answers (nodename TEXT, nodeport INTEGER, success BOOLEAN, result TEXT);
INSERT INTO answers VALUES ('east', 5432, TRUE, '1000000000 0 0'), ('west', 5433, TRUE, '2000000000 0 0');
CREATE FUNCTION run_command_on_workers(command text)
  RETURNS TABLE (nodename TEXT, nodeport INTEGER, success BOOLEAN, result TEXT) LANGUAGE sql
  AS $$ SELECT * FROM answers $$;
"""
"""What the coordinator of two workers knows and answers."""


def test_every_node_is_seen(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(citus, "CHECK_SECONDS", 0.0)
    away = "UPDATE answers SET success = FALSE, result = 'connection refused' WHERE nodename = 'west'"
    with (
        psycopg.connect(url, autocommit=True) as connection,
        Wellkept(settings=Settings(url=url, embedder="off")) as store,
    ):
        alone = store.count_bytes()
        connection.execute(NODES)
    with (
        psycopg.connect(url, autocommit=True) as connection,
        Wellkept(settings=Settings(url=url, embedder="off")) as store,
    ):
        assert 3e9 <= store.maintenance.read_totals().bytes < 3e9 + 2 * alone
        assert store.problems() == []
        (check,) = [each for each in store.check() if each.name == "nodes"]
        assert (check.is_ok, check.says) == (True, "2 answer, 3,000,000,000 bytes")

        connection.execute(away)
        assert store.count_bytes() < 2e9
        assert store.problems() == [
            "The node west:5433 of the database cluster does not answer (connection refused). "
            "Shards of agents on it: 101, 103."
        ]
        (check,) = [each for each in store.check() if each.name == "nodes"]
        assert (check.is_ok, check.says) == (False, "west:5433: connection refused")

        connection.execute("UPDATE answers SET success = TRUE, result = '1000 2 1'")
        (check,) = [each for each in store.check() if each.name == "nodes"]
        assert "On east:5432, 2 indexes are not valid; REINDEX them there." in check.says
        assert store.problems() == []
