"""Two roles on PostgreSQL: an owner that upgrades, and an application that owns nothing, on a real server."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from psycopg import errors, sql

from tests.postgres_server import PostgresServer
from wellkept import Settings, Wellkept
from wellkept.errors import Invalid, SchemaMismatch, StoreError, WellkeptError
from wellkept.store.migrations import TENANT_SETTING, load_migrations
from wellkept.store.postgres import engine, schema
from wellkept.store.postgres.link import translate_admin_errors, translate_errors
from wellkept.store.postgres.schema import initialize, migrate_database

OWNER, SERVING = "roles_owner", "roles_app"
PASSWORDS = {OWNER: "owner-pass-7", SERVING: "serving-pass-8"}
FORCED = "SELECT count(*) FROM pg_class WHERE relforcerowsecurity"


class Database:
    """One database, and the addresses of those who use it."""

    def __init__(self, server: PostgresServer) -> None:
        self.single = server.create_database()
        self.admin = server.admin_url(self.single)
        self.owner = self.single.replace("app:app@", f"{OWNER}:x@")
        self.serving = self.single.replace("app:app@", f"{SERVING}:x@")

    def init(self, *, application: str = SERVING, dry_run: bool = False) -> list[str]:
        report = initialize(self.admin, owner=OWNER, application=application, passwords=PASSWORDS, dry_run=dry_run)
        return list(report.statements)

    def open(self, url: str = "", *, owner_url: str = "") -> Wellkept:
        return Wellkept(settings=Settings(url=url or self.serving, embedder="off", owner_url=owner_url))

    def ask(self, statement: str, url: str = "") -> list[tuple[Any, ...]]:
        with psycopg.connect(url or self.admin, autocommit=True) as connection:
            return connection.execute(sql.SQL(statement)).fetchall()


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    database = Database(postgres_server)
    yield database
    postgres_server.drop_database(database.single)
    with psycopg.connect(postgres_server.admin_url("postgres"), autocommit=True) as admin:
        for role in (OWNER, SERVING):
            admin.execute(f"DROP ROLE IF EXISTS {role}")


def test_a_fresh_database_serves_an_application_that_owns_nothing(database: Database) -> None:
    database.init()

    with database.open() as store:
        store.agent("ada", tenant="one").remember("Sails on Sundays")
        store.agent("ada", tenant="two").remember("Rows on Mondays")
        assert [each.text for each in store.agent("ada", tenant="one").list()] == ["Sails on Sundays"]

    assert database.ask(FORCED) == [(0,)]
    owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
    assert database.ask(owners) == [(OWNER,)]
    # No tenant is set: nothing is visible.
    assert database.ask("SELECT count(*) FROM memories", database.serving) == [(0,)]
    assert database.ask("SELECT count(*) FROM memories", database.owner) == [(2,)]
    other = f"SELECT text FROM set_config('{TENANT_SETTING}', 'two', false), memories WHERE tenant_id = 'one'"
    assert database.ask(other, database.serving) == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE memories DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE memories OWNER TO CURRENT_USER",
        "DROP POLICY own_tenant ON memories",
        "CREATE TABLE mine (id INT)",
        "CREATE SCHEMA mine",
        "DROP TABLE memories",
        "TRUNCATE memories",
        f"SET ROLE {OWNER}",
    ],
)
def test_the_application_cannot_get_around_row_level_security(database: Database, statement: str) -> None:
    database.init()

    with pytest.raises(errors.InsufficientPrivilege):
        database.ask(statement, database.serving)


@pytest.mark.parametrize("application", [SERVING, "app"])
def test_a_filled_database_is_converted_and_again_is_harmless(database: Database, application: str) -> None:
    with database.open(database.single) as store:
        store.agent("ada", tenant="one").remember("Sails on Sundays")
    shown = database.init(application=application, dry_run=True)
    assert database.ask(f"SELECT 1 FROM pg_roles WHERE rolname = '{OWNER}'") == []

    done = database.init(application=application)
    again = database.init(application=application)

    assert f'ALTER TABLE "memories" OWNER TO "{OWNER}"' in shown
    assert 'ALTER TABLE "memories" NO FORCE ROW LEVEL SECURITY' in shown
    assert {*shown} <= {*done}
    assert [each for each in again if "OWNER TO" in each or "FORCE" in each or "CREATE" in each.split()[:1]] == []
    url = database.single if application == "app" else database.serving
    with database.open(url) as store:
        assert [each.text for each in store.agent("ada", tenant="one").list()] == ["Sails on Sundays"]
        store.agent("ada", tenant="one").remember("Rows on Mondays")
    with pytest.raises(errors.InsufficientPrivilege):
        database.ask("DROP TABLE memories", url)


def test_passwords_are_set_and_never_shown(database: Database) -> None:
    said = "\n".join([*database.init(dry_run=True), *database.init()])

    assert "pass" not in said.replace("PASSWORD", "")
    stored: dict[object, object] = dict(
        database.ask(f"SELECT rolname, rolpassword FROM pg_authid WHERE rolname LIKE '{OWNER[:6]}%'")
    )
    assert {*stored} == {OWNER, SERVING}
    assert all(str(each).startswith("SCRAM-SHA-256$") for each in stored.values())


def test_an_application_with_powers_is_refused(database: Database) -> None:
    with pytest.raises(Invalid, match="two different roles"):
        initialize(database.admin, owner=OWNER, application=OWNER)
    with pytest.raises(Invalid, match="a role other than 'postgres'"):
        initialize(database.admin, owner=OWNER, application="postgres")
    database.init()
    with psycopg.connect(database.admin, autocommit=True) as admin:
        admin.execute(f"GRANT {OWNER} TO {SERVING}")
    with pytest.raises(Invalid, match=f"is a member of '{OWNER}'"):
        database.init()
    # And at start, whoever granted it.
    with pytest.raises(StoreError, match=f"for '{SERVING}', which owns them or is a member"):
        database.open()


def test_the_owner_does_not_serve(database: Database) -> None:
    database.init()

    with pytest.raises(StoreError, match=f"for '{OWNER}', which owns them"):
        database.open(database.owner)


def test_an_older_schema_is_upgraded_by_the_owner_while_the_application_serves(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = load_migrations("postgres")
    (new,) = (each for each in every if each.name == "console_logins")
    with monkeypatch.context() as older:
        older.setattr(schema, "load_migrations", lambda engine: [each for each in every if each is not new])
        database.init()
        serving = database.open()

    with pytest.raises(SchemaMismatch, match=rf"1 migrations?, and the role '{SERVING}'.*db migrate.*\({OWNER}\)"):
        database.open()
    with pytest.raises(StoreError, match=f"'{SERVING}' cannot migrate this database: its tables belong to {OWNER}"):
        migrate_database(database.serving)
    stop, failures = threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            try:
                serving.agent("ada", tenant="one").remember("Sails on Sundays")
            except WellkeptError as error:
                failures.append(error)
                return

    writer = threading.Thread(target=write)
    writer.start()
    names = migrate_database(database.owner)
    stop.set()
    writer.join()
    serving.close()

    assert (names, failures) == ([f"{new.number:04} {new.name}"], [])
    assert migrate_database(database.owner) == []
    # The new table is the application's, too, and not forced.
    assert database.ask(FORCED) == [(0,)]
    with database.open() as store:
        assert len(store.agent("ada", tenant="one").list()) >= 1
        assert database.ask("SELECT count(*) FROM console_logins", database.serving) == [(0,)]


def test_with_the_address_of_the_owner_a_start_upgrades(database: Database) -> None:
    database.init()
    with psycopg.connect(database.admin, autocommit=True) as admin:
        admin.execute("DROP TABLE console_logins")
        admin.execute("DELETE FROM schema_migrations WHERE name = 'console_logins'")

    with database.open(owner_url=database.owner) as store:
        store.agent("ada", tenant="one").remember("Sails on Sundays")

    assert database.ask("SELECT count(*) FROM console_logins", database.serving) == [(0,)]
    with pytest.raises(StoreError, match="is a superuser"):
        database.open(owner_url=database.admin)


class Words:
    """An embedder of this process."""

    name = "words"
    dimensions = 8

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), self.dimensions), np.float32)


INDEX = "SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'chunk_index_nearest_%'"


def read_advice(store: Wellkept) -> str:
    (check,) = [each for each in store.check() if each.name == "schema"]
    assert check.is_ok
    return check.advice


def test_an_application_asks_for_nothing_that_only_the_owner_may(
    database: Database, postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "wellkept")
    database.init()
    before = len(postgres_server.read_log().encode())

    with Wellkept(settings=Settings(url=database.serving), embedder=Words()) as store:
        store.agent("ada", tenant="one").remember("Sails on Sundays")
        advice = read_advice(store)

    assert "must be owner" not in postgres_server.read_log(before)
    assert "ERROR" not in postgres_server.read_log(before)
    assert caplog.text.count("approximate index for large knowledge is missing") == 1
    said, _, statement = advice.partition(": ")
    assert said.endswith("as the owner of the tables")
    with psycopg.connect(database.owner, autocommit=True) as owner:
        owner.execute(statement.encode())
    with Wellkept(settings=Settings(url=database.serving), embedder=Words()) as store:
        assert read_advice(store) == ""
    assert caplog.text.count("approximate index for large knowledge is missing") == 1


def test_with_the_address_of_the_owner_a_start_makes_the_index(database: Database) -> None:
    database.init()

    with Wellkept(settings=Settings(url=database.serving, owner_url=database.owner), embedder=Words()) as store:
        assert read_advice(store) == ""

    assert database.ask(INDEX) == [(1,)]


@pytest.mark.parametrize("has_two_roles", [False, True])
def test_a_start_does_not_wait_for_a_lock_on_the_index(
    database: Database, has_two_roles: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine, "INDEX_LOCK_TIMEOUT_MS", 50)
    settings = Settings(url=database.single)
    if has_two_roles:
        database.init()
        settings = Settings(url=database.serving, owner_url=database.owner)
    Wellkept(settings=replace(settings, embedder="off")).close()

    with psycopg.connect(database.admin) as mover:
        # As moving a shard does.
        mover.execute("LOCK TABLE chunk_index IN SHARE UPDATE EXCLUSIVE MODE")
        with Wellkept(settings=settings, embedder=Words()) as store:
            store.tenant("one").knowledge.ingest_text("Sails on Sundays", title="Sails")
            assert "CREATE INDEX" in read_advice(store)
    assert "others hold a lock on the table" in caplog.text
    with Wellkept(settings=settings, embedder=Words()) as store:
        assert read_advice(store) == ""


def test_an_operator_without_superuser_can_do_it(database: Database) -> None:
    with psycopg.connect(database.admin, autocommit=True) as admin:
        admin.execute("CREATE ROLE roles_operator LOGIN CREATEROLE")
        name = sql.Identifier(admin.info.dbname)
        admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO roles_operator").format(name))
    try:
        url = database.single.replace("app:app@", "roles_operator:x@")
        for _ in range(2):
            initialize(url, owner=OWNER, application=SERVING, passwords=PASSWORDS)
        with database.open() as store:
            store.agent("ada", tenant="one").remember("Sails on Sundays")
    finally:
        with psycopg.connect(database.admin, autocommit=True) as admin:
            admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO postgres").format(name))
            admin.execute("DROP OWNED BY roles_operator CASCADE")
            admin.execute(f"REVOKE {OWNER}, {SERVING} FROM roles_operator CASCADE")
            admin.execute("DROP ROLE roles_operator")


def ask_nobody(connection: psycopg.Connection, translate: Callable[[], AbstractContextManager[None]]) -> None:
    with translate():
        connection.execute("SELECT nobody()")


def test_administration_shows_what_the_server_says_and_other_work_hides_it(database: Database) -> None:
    with psycopg.connect(database.single, autocommit=True) as connection:
        with pytest.raises(StoreError, match=r"refused \(42883\): function nobody\(\) does not exist\. Hint: "):
            ask_nobody(connection, translate_admin_errors)
        with pytest.raises(StoreError, match=r"^PostgreSQL failed \(42883: UndefinedFunction\)\.$"):
            ask_nobody(connection, translate_errors)
        # A message about a value quotes it.
        with pytest.raises(StoreError) as caught, translate_admin_errors():
            connection.execute("SELECT 'the secret'::text::int")
        assert "secret" not in str(caught.value)


def test_an_erasure_by_the_application_cleans_the_tables(database: Database) -> None:
    database.init()

    with database.open() as store:
        store.agent("ada", tenant="one").remember("Sails on Sundays")
        receipt = store.tenant("one").data.erase("agent:ada")

    assert not any("could not be vacuumed" in each for each in receipt.remnants)
