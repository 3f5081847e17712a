"""Rules that let the same schema and statements be distributed by tenant, read from PostgreSQL's own catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.conformance.conftest import Place
from wellkept.store.conditions import PLACE
from wellkept.store.migrations import TENANT_SETTING, load_migrations
from wellkept.store.queries import as_numbered, load_queries

REGISTRIES = {"tenants", "vector_queue", "token_buckets", "embedders", "leases", "schema_migrations"}
"""Tables of the whole database, with nothing about anybody in them."""

QUERIES = load_queries("postgres")


@pytest.fixture(scope="module")
def catalogue(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    Place("postgres-18", postgres_url).open().close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def names(catalogue: psycopg.Connection[Any], query: str) -> set[str]:
    return {row[0] for row in catalogue.execute(query)}


def tables_of(catalogue: psycopg.Connection[Any]) -> set[str]:
    every = names(catalogue, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return every - REGISTRIES


def test_every_table_but_the_registries_belongs_to_tenants(catalogue: psycopg.Connection[Any]) -> None:
    owned = names(
        catalogue,
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' "
        "AND column_name = 'tenant_id' AND is_nullable = 'NO' AND data_type = 'text'",
    )
    assert owned - REGISTRIES == tables_of(catalogue)
    assert len(owned) > 10


def test_the_tenant_leads_every_primary_key(catalogue: psycopg.Connection[Any]) -> None:
    led = names(
        catalogue,
        "SELECT i.indrelid::regclass::text FROM pg_index i JOIN pg_attribute a "
        "ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE i.indisprimary AND a.attname = 'tenant_id'",
    )
    assert led >= tables_of(catalogue)


def test_every_unique_index_holds_the_tenant(catalogue: psycopg.Connection[Any]) -> None:
    without = names(
        catalogue,
        "SELECT t.relname FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid "
        "WHERE i.indisunique AND t.relnamespace = 'public'::regnamespace "
        "AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attname = 'tenant_id' "
        "AND a.attnum = ANY(i.indkey))",
    )
    assert without <= REGISTRIES


def test_every_foreign_key_holds_the_tenant_on_both_sides_and_sets_nothing_null(
    catalogue: psycopg.Connection[Any],
) -> None:
    keys = catalogue.execute(
        "SELECT k.conname, k.confdeltype, k.confupdtype, "
        "  ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS c (number, place) "
        "        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = c.number ORDER BY c.place), "
        "  ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS c (number, place) "
        "        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = c.number ORDER BY c.place) "
        "FROM pg_constraint k WHERE k.contype = 'f'"
    ).fetchall()

    assert len(keys) > 5
    for name, on_delete, on_update, here, there in keys:
        assert here[0] == there[0] == "tenant_id", name
        assert on_delete in ("a", "r", "c"), name  # no action, restrict, cascade
        assert on_update == "a", name  # a tenant's id never changes


def test_there_are_no_triggers(catalogue: psycopg.Connection[Any]) -> None:
    assert names(catalogue, "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal") == set()


def test_numbers_the_database_gives_are_bigint(catalogue: psycopg.Connection[Any]) -> None:
    narrow = names(
        catalogue,
        "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public' "
        "AND (is_identity = 'YES' OR column_default LIKE 'nextval%') AND data_type <> 'bigint'",
    )
    assert narrow == set()


def test_counters_are_bigint(catalogue: psycopg.Connection[Any]) -> None:
    kinds = names(
        catalogue,
        "SELECT data_type FROM information_schema.columns WHERE table_schema = 'public' AND "
        "column_name IN ('seq', 'last_seq', 'last_id', 'revision', 'rewrites', 'version', 'position')",
    )
    assert kinds == {"bigint"}


def test_the_wall_stands_around_every_table(catalogue: psycopg.Connection[Any]) -> None:
    walled = names(
        catalogue,
        "SELECT c.relname FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid "
        "WHERE c.relrowsecurity AND c.relforcerowsecurity AND p.polcmd = '*' AND p.polpermissive "
        f"AND pg_get_expr(p.polqual, c.oid) LIKE '%{TENANT_SETTING}%' "
        "AND pg_get_expr(p.polqual, c.oid) = pg_get_expr(p.polwithcheck, c.oid)",
    )
    assert walled == tables_of(catalogue)


def test_no_view_sees_over_the_wall(catalogue: psycopg.Connection[Any]) -> None:
    views = "SELECT relname FROM pg_class WHERE relkind IN ('v', 'm') AND relnamespace = 'public'::regnamespace"
    invoking = f"{views} AND 'security_invoker=true' = ANY(reloptions)"

    assert names(catalogue, invoking) == names(catalogue, views) != set()


# --- the statements


def test_every_statement_on_a_tenants_table_names_the_tenant(catalogue: psycopg.Connection[Any]) -> None:
    tables, without = tables_of(catalogue), []
    for name, statement in QUERIES.items():
        touched = [each for each in re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)", statement) if each in tables]
        named = re.findall(r"tenant_id = (?::tenant|:tenant_id|\w+\.tenant_id)\b|INTO \w+\s*\(tenant_id", statement)
        # An index is built over all tenants, by the person who runs the database.
        if len(named) < len(touched) and not statement.startswith("CREATE INDEX"):
            without.append(name)
    assert without == []


@pytest.mark.parametrize(
    "unwanted", [";", "set_config", r"DO UPDATE SET.*\b(now|clock_timestamp|random)\s*\(", r"\bMERGE\s+INTO\b"]
)
def test_every_statement_is_one_and_works_on_a_cluster(unwanted: str) -> None:
    pattern = re.compile(unwanted, re.DOTALL | re.IGNORECASE)
    assert [name for name, statement in QUERIES.items() if pattern.search(statement)] == []


def test_postgres_understands_every_statement(catalogue: psycopg.Connection[Any]) -> None:
    """A statement nobody has called yet is still a statement."""
    refused = {}
    for name, text in QUERIES.items():
        if text.startswith(("SET", "CREATE")):
            continue
        expression = "int2send(1::int2)" if name.startswith("weigh_entries") else "TRUE"
        statement, _ = as_numbered(
            text.replace("{dimensions}", "8").replace("{embedder_id}", "1").replace(PLACE, expression)
        )
        try:
            catalogue.execute(f"PREPARE checked_{name} AS {statement.replace('?', '$')}")
        except psycopg.Error as error:
            refused[name] = str(error)
    assert refused == {}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_migrations_are_numbered_alike_and_cut_into_single_statements(engine: str) -> None:
    migrations = load_migrations(engine)

    numbers = [migration.number for migration in migrations]
    assert numbers == sorted(set(numbers)) == [each.number for each in load_migrations("sqlite")]
    for statement in (each for migration in migrations for each in migration.statements):
        assert re.match(r"(CREATE|ALTER|INSERT|UPDATE|DELETE|DROP|GRANT|COMMENT)\b", statement)
        assert ";\n" not in statement


def test_both_engines_have_the_same_tables_views_and_columns(catalogue: psycopg.Connection[Any]) -> None:
    def declared(engine: str) -> set[str]:
        statements = [each for migration in load_migrations(engine) for each in migration.statements]
        return {match[0] for each in statements if (match := re.match(r"CREATE (?:TABLE|VIEW) \w+", each))}

    assert declared("sqlite") == declared("postgres")
