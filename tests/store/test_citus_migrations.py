"""Migrations as Citus accepts them. No Citus runs here: triggers refuse what it refuses, and the files are read."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from tests.postgres_server import PostgresServer
from wellkept.store import open_store
from wellkept.store.migrations import CONCURRENTLY, load_migrations
from wellkept.store.postgres import schema
from wellkept.store.postgres.citus import split_checked_column
from wellkept.store.postgres.schema import migrate_database

SHARED = {"tenants", "embedders", "leases", "vector_queue", "token_buckets"}
"""Tables without rows of tenants, or with no more than their ids."""

REFUSED = {
    "a constraint inside ADD COLUMN": r"ADD COLUMN [^;]*\b(CHECK|UNIQUE|REFERENCES|PRIMARY KEY|CONSTRAINT|GENERATED)\b",
    "a counter": r"\b(BIG|SMALL)?SERIAL\b|\bINTEGER GENERATED\b",
    "a trigger or rule": r"^CREATE (CONSTRAINT )?(TRIGGER|RULE)\b",
    "SET NULL or SET DEFAULT of a reference": r"\bON (DELETE|UPDATE) SET (NULL|DEFAULT)\b",
    "a unique index without the tenant": r"^CREATE UNIQUE INDEX \S* ?\w+ ON \w+ \((?!tenant_id\b)",
    "a key without the tenant": r"\b(PRIMARY KEY|UNIQUE|FOREIGN KEY) \((?!tenant_id\b)",
    "a reference without the tenant": r"\bREFERENCES (?!tenants\b)\w+ (?!\(tenant_id\b)",
    "a key of one column": r"^\s+(?!tenant_id\b)\w+ [^(,]*\b(PRIMARY KEY|UNIQUE|REFERENCES)\b",
    "a change of the tenant": r"\bALTER COLUMN tenant_id\b|\bSET tenant_id\b",
    "a volatile function in UPDATE": r"^UPDATE [^;]*\b(random|clock_timestamp|gen_random_uuid|nextval)\(",
    "a function in DO UPDATE": r"\bDO UPDATE SET [^;]*\w+\(\)",
    "MERGE": r"^MERGE\b",
    "a tenant that is not propagated": r"\bset_config\(",
}
"""What Citus refuses on a distributed table."""

EXAMPLES = {
    "a constraint inside ADD COLUMN": "ALTER TABLE notes ADD COLUMN state TEXT DEFAULT 'a' UNIQUE",
    "a counter": "ALTER TABLE notes ADD COLUMN number BIGSERIAL",
    "a trigger or rule": "CREATE TRIGGER touched AFTER UPDATE ON notes EXECUTE FUNCTION touch()",
    "SET NULL or SET DEFAULT of a reference": "ALTER TABLE notes ADD CONSTRAINT notes_of FOREIGN KEY (tenant_id, of) "
    "REFERENCES notes (tenant_id, id) ON DELETE SET NULL",
    "a unique index without the tenant": "CREATE UNIQUE INDEX CONCURRENTLY notes_by_key ON notes (key)",
    "a key without the tenant": "CREATE TABLE notes (\n  tenant_id TEXT NOT NULL,\n  id TEXT,\n  PRIMARY KEY (id)\n)",
    "a reference without the tenant": "ALTER TABLE notes ADD FOREIGN KEY (tenant_id, a) REFERENCES agents (id)",
    "a key of one column": "CREATE TABLE notes (\n  tenant_id TEXT NOT NULL,\n  id TEXT NOT NULL PRIMARY KEY\n)",
    "a change of the tenant": "ALTER TABLE notes ALTER COLUMN tenant_id TYPE VARCHAR",
    "a volatile function in UPDATE": "UPDATE notes SET life = random()",
    "a function in DO UPDATE": "INSERT INTO notes VALUES ('') ON CONFLICT (tenant_id) DO UPDATE SET at = now()",
    "MERGE": "MERGE INTO notes USING others ON TRUE WHEN MATCHED THEN DELETE",
    "a tenant that is not propagated": "SELECT set_config('app.tenant', 'acme', true)",
}


def find_refused(statement: str) -> list[str]:
    """Name the rules of Citus that a statement on a distributed table breaks."""
    touched = re.match(r"(?:CREATE (?:UNLOGGED )?TABLE|ALTER TABLE|UPDATE|INSERT INTO) (\w+)", statement)
    found = [name for name, pattern in REFUSED.items() if re.search(pattern, statement, re.MULTILINE)]
    is_shared = touched is not None and touched[1] in SHARED
    return [name for name in found if not is_shared or name == "a constraint inside ADD COLUMN"]


@pytest.mark.parametrize("rule", REFUSED)
def test_every_rule_finds_its_example(rule: str) -> None:
    assert rule in find_refused(EXAMPLES[rule])


def test_no_migration_has_what_citus_refuses() -> None:
    parts = [
        (str(migration), part)
        for migration in load_migrations("postgres")
        for statement in migration.statements
        for part in split_checked_column(statement)
    ]

    assert len(parts) > 200
    assert [(name, part, rules) for name, part in parts if (rules := find_refused(part))] == []


# --- what the program does with a statement that is refused


@pytest.fixture
def databases(postgres_server: PostgresServer) -> Iterator[Sequence[str]]:
    """Two databases that nobody has opened yet."""
    urls = [postgres_server.create_database() for _ in range(2)]
    yield urls
    for url in urls:
        postgres_server.drop_database(url)


CATALOGUE = {
    "constraints": "SELECT conrelid::regclass::text, conname, convalidated, pg_get_constraintdef(oid) "
    "FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "policies": "SELECT tablename, policyname, cmd, qual, with_check FROM pg_policies",
    "security": "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
    "WHERE relnamespace = 'public'::regnamespace",
    "columns": "SELECT attrelid::regclass::text, attnum, attname, format_type(atttypid, atttypmod), attnotnull, "
    "attcollation, attstorage, pg_get_expr(adbin, adrelid) FROM pg_attribute "
    "LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum JOIN pg_class ON pg_class.oid = attrelid "
    "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0",
}


def read_catalogue(url: str) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(url) as connection:
        return {name: sorted(connection.execute(query), key=repr) for name, query in CATALOGUE.items()}


def test_divided_statements_make_the_schema_of_the_files(databases: Sequence[str]) -> None:
    as_written, divided = databases
    with psycopg.connect(as_written, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)"
        )
        for statement in (each for migration in load_migrations("postgres") for each in migration.statements):
            connection.execute(statement.replace(CONCURRENTLY, ""))

    open_store(divided, busy_timeout=100, pool_size=1, index_cache_mb=1).close()

    found = read_catalogue(divided)
    assert found == read_catalogue(as_written)
    names = {name for _, name, *_ in found["constraints"]}
    assert {"api_keys_trust_check", "api_keys_scope_check"} <= names


REFUSE = """
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_query() ~ 'ADD COLUMN.*(CHECK|UNIQUE|REFERENCES)' THEN
    RAISE 'cannot execute ADD COLUMN command with UNIQUE, CHECK or FOREIGN constraints' USING ERRCODE = '0A000';
  END IF;
END $$
"""


def test_a_first_edition_is_upgraded_where_citus_refuses_checked_columns(
    databases: Sequence[str], postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, current = databases
    every = load_migrations("postgres")
    with monkeypatch.context() as older:
        older.setattr(schema, "load_migrations", lambda engine: [each for each in every if each.number <= 10])
        migrate_database(url)
    with psycopg.connect(postgres_server.admin_url(url), autocommit=True) as admin:
        admin.execute(REFUSE)
        admin.execute("CREATE EVENT TRIGGER refusing ON ddl_command_start EXECUTE FUNCTION refuse()")

    names = migrate_database(url)

    open_store(current, busy_timeout=100, pool_size=1, index_cache_mb=1).close()
    assert names == [str(each) for each in every if each.number > 10]
    assert read_catalogue(url) == read_catalogue(current)
