"""Create and upgrade the tables of a PostgreSQL database, while others read and write.

Roles of a PostgreSQL database: one that owns and serves it, or an owner beside an application that owns nothing.

Row-level security holds every role but superusers, those with BYPASSRLS and, unless it is forced, the owner of a table.
One role alone therefore has it forced. With two, it is only enabled: the owner can upgrade, copy and move all rows.

Set-up of a database for two roles, and conversion of one that had a single role.

Run by an operator: a superuser, or a role that owns the database and may create roles. Every statement can be run
again, and only those are run that change something for roles and tables.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from psycopg import errors, sql

from wellkept.errors import Invalid, SchemaMismatch, StoreError, WellkeptError
from wellkept.store.migrations import (
    CONCURRENTLY,
    MESSAGES,
    SESSIONS,
    Migration,
    adoption_statements,
    check_applied,
    lacks_summary,
    list_created,
    load_migrations,
)
from wellkept.store.postgres import citus
from wellkept.store.postgres.link import Connection, connect_once, translate_admin_errors

log = logging.getLogger("wellkept")

MIGRATIONS_TABLE = "schema_migrations"

TENANT_TABLES = (
    "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') "
    "AND c.relname NOT IN ('tenants', 'vector_queue')"
)
"""Tables with rows of tenants. The two others hold ids, times and counts, and are asked over all tenants."""


def check_role(connection: Connection) -> None:
    """Check that row-level security can hold this role. Raises: StoreError."""
    row = connection.execute(
        "SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if row is None or row[1]:
        raise StoreError(
            f"The role {row[0] if row else '?'!r} is a superuser or has BYPASSRLS, so one tenant could read another. "
            "Connect as an ordinary role: CREATE ROLE wellkept LOGIN PASSWORD '…'; and make it the database's owner. "
            "Or run `wellkept admin db init` as this role, which creates an owner and an application role."
        )


def check_tables(connection: Connection) -> None:
    """Check that row-level security holds this role on every tenant's table. Raises: StoreError."""
    unguarded = connection.execute(
        f"SELECT c.relname, c.relrowsecurity {TENANT_TABLES} AND NOT (c.relrowsecurity AND (c.relforcerowsecurity "
        "OR NOT pg_has_role(current_user, c.relowner, 'MEMBER'))) ORDER BY c.relname"
    ).fetchall()
    if not unguarded:
        return
    names = ", ".join(name for name, _ in unguarded)
    if all(is_enabled for _, is_enabled in unguarded):
        raise StoreError(
            f"Row-level security is off on {names} for {connection.info.user!r}, which owns them or is a member of "
            "their owner. Serve as the application role (`wellkept admin db init`), or FORCE it if "
            "there is only one role."
        )
    raise StoreError(f"Row-level security is off on {names}; ENABLE and FORCE it, then start again.")


def find_owner(connection: Connection) -> str:
    """Return the role that owns the tables; empty if there are none."""
    row = connection.execute(
        "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass(%s)", [MIGRATIONS_TABLE]
    ).fetchone()
    return "" if row is None else str(row[0])


def is_owner(connection: Connection, *, by_name: bool = False) -> bool:
    """Return True if this role may change the tables, or create them if there are none.

    With `by_name` only the owner itself counts: what a member creates belongs to the member.
    """
    owner = find_owner(connection)
    if not owner:
        row = connection.execute("SELECT has_schema_privilege(current_schema(), 'CREATE')").fetchone()
    else:
        check = "current_user = %s" if by_name else "pg_has_role(current_user, %s, 'USAGE')"
        row = connection.execute(f"SELECT {check}", [owner]).fetchone()
    return row is not None and bool(row[0])


def has_unforced_tables(connection: Connection) -> bool:
    """Return True if row-level security is enabled on the tables and forced on none, as it is with two roles."""
    row = connection.execute(f"SELECT bool_and(c.relrowsecurity AND NOT c.relforcerowsecurity) {TENANT_TABLES}")
    return row.fetchone() == (True,)


def unforce_statements(connection: Connection) -> Sequence[sql.Composed]:
    """Return the statements that let the owner of the tables see all rows."""
    forced = connection.execute(f"SELECT c.relname {TENANT_TABLES} AND c.relforcerowsecurity ORDER BY 1").fetchall()
    statement = sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY")
    return [statement.format(sql.Identifier(name)) for (name,) in forced]


MIGRATION_LOCK = 7_263_554_201
"""Key of the advisory lock held while migrating."""

MIGRATION_LOCK_TIMEOUT_MS = 50
LOCK_PAUSE = 0.5
LOCK_PATIENCE = 600.0
"""Time that a migration waits for a lock, seconds until it tries again, and seconds after which it gives up."""

DROP_INDEX = "DROP INDEX"

UNCHANGED = "The database is at schema {} as before, so a version that started until now still starts."
HALFWAY = "The database is at schema {} now, so earlier versions refuse it."
UNKNOWN = "The connection broke, so some migrations may be applied."
FINISH = (
    " Remove the cause and run `wellkept admin db migrate --url …` with the address of the owner of the tables; it "
    "does the rest."
)
WAITING = "The upgrade of the schema waits up to %d s for transactions that are open; others read and write meanwhile."

_TOUCHED = re.compile(r"\b(?:ALTER TABLE|REFERENCES|INDEX .* ON) (\w+)")


def migrate(connection: Connection) -> Sequence[str]:
    """Apply pending migrations and return their names. One server migrates; others that start meanwhile wait for it.

    All of them are one transaction, so that the former version can go on if one fails. Only indexes that are built
    while others write end it: PostgreSQL builds them outside a transaction.

    The files force row-level security on new tables. If it was forced on none before, because another role serves,
    each transaction ends by lifting that.

    Raises: StoreError, which says in which state the database is.
    """
    migrations = load_migrations("postgres")
    if not check_applied(migrations, _applied(connection)) and not lacks_summary(_columns(connection)):
        return []
    _wait_for_turn(connection)
    try:
        if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
            _add_pgvector(connection)
        applied = _applied(connection)
        is_forced = not has_unforced_tables(connection)
        before, after = adoption_statements("postgres", applied, _columns(connection), _columns(connection, MESSAGES))
        pending = check_applied(migrations, applied)
        done: list[Migration] = []
        with _explain_failure(connection, done):
            for group in _group(pending, is_new=not applied):
                if applied and group and group[0].is_concurrent:
                    _apply_one_by_one(connection, group[0])
                    group = [replace(group[0], statements=()), *group[1:]]
                _apply_together(connection, group, before, after, is_forced=is_forced)
                before = after = ()
                done += group
        return [str(each) for each in pending]
    finally:
        if not connection.broken:
            connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))


def _wait_for_turn(connection: Connection) -> None:
    if connection.execute("SELECT pg_try_advisory_lock(%s)", (MIGRATION_LOCK,)).fetchone() == (True,):
        return
    log.warning("Another process upgrades the schema of the database; waiting until it is done.")
    connection.execute("SELECT pg_advisory_lock(%s)", (MIGRATION_LOCK,))


def _group(pending: Sequence[Migration], *, is_new: bool) -> Sequence[Sequence[Migration]]:
    """Divide the migrations into transactions; a concurrent one begins the next. There is one at least."""
    groups: list[list[Migration]] = [[]]
    for migration in pending:
        if migration.is_concurrent and groups[-1] and not is_new:
            groups.append([])
        groups[-1].append(migration)
    return groups


@contextmanager
def _explain_failure(connection: Connection, done: Sequence[Migration]) -> Iterator[None]:
    """Add to an error in which state it leaves the database, and how to go on."""
    try:
        with translate_admin_errors():
            yield
    except StoreError as error:
        if connection.broken:
            state = UNKNOWN
        else:
            state = (HALFWAY if done else UNCHANGED).format(max([*_applied(connection), 0]))
        error.args = (f"{error} {state}{FINISH}",)
        raise


def list_pending(connection: Connection) -> Sequence[Migration]:
    """Return the migrations that are not applied yet. Raises: SchemaMismatch when the database is newer."""
    return check_applied(load_migrations("postgres"), _applied(connection))


def _applied(connection: Connection) -> Mapping[int, str]:
    if connection.execute("SELECT to_regclass('schema_migrations')").fetchone() == (None,):
        return {}
    return dict(connection.execute("SELECT number, checksum FROM schema_migrations").fetchall())


def _add_pgvector(connection: Connection) -> None:
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (errors.InsufficientPrivilege, errors.UndefinedFile, errors.FeatureNotSupported) as error:
        raise StoreError(
            "The database has no pgvector. Install it on the server and, as a superuser, run in this database: "
            "CREATE EXTENSION vector"
        ) from error


def _columns(connection: Connection, table: str = SESSIONS) -> set[str]:
    rows = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped", [table]
    ).fetchall()
    return {name for (name,) in rows}


def _apply_together(
    connection: Connection,
    group: Sequence[Migration],
    before: Sequence[str],
    after: Sequence[str],
    *,
    is_forced: bool,
) -> None:
    """Apply migrations in one transaction.

    A statement that waits for a lock makes all others wait behind it, even readers. So it gives up soon and tries again
    until those who hold the lock are done.
    """
    until = time.monotonic() + LOCK_PATIENCE
    has_said = False
    while True:
        try:
            with connection.transaction():
                connection.execute("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'")
                connection.execute(f"SET LOCAL lock_timeout = {MIGRATION_LOCK_TIMEOUT_MS}")
                _lock_tables(connection, group)
                _apply(connection, group, before, after)
                for statement in () if is_forced else unforce_statements(connection):
                    connection.execute(statement)
                return
        except errors.LockNotAvailable:
            if time.monotonic() > until:
                raise
        if not has_said:
            log.warning(WAITING, int(LOCK_PATIENCE))
            has_said = True
        time.sleep(LOCK_PAUSE)


def _lock_tables(connection: Connection, group: Sequence[Migration]) -> None:
    """Lock the existing tables that the migrations touch, in the order in which writers come to them.

    Otherwise a writer that waits for one of them, while it holds another, would stop almost every attempt half way.
    """
    named = {name for migration in group for each in migration.statements for name in _TOUCHED.findall(each)}
    # Nearly every write begins with the row of its agent.
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' "
        "AND relname = ANY(%s) ORDER BY relname <> %s, oid",
        [[*named, citus.FIRST], citus.FIRST],
    ).fetchall()
    existing = [name for (name,) in rows]
    for name in existing if named & {*existing} else ():
        connection.execute(sql.SQL("LOCK TABLE {}").format(sql.Identifier(name)))


def _apply(connection: Connection, group: Sequence[Migration], before: Sequence[str], after: Sequence[str]) -> None:
    for statement in before:
        connection.execute(statement)
    for migration in group:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations "
            "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)"
        )
        for statement in (*migration.statements, *after):
            # What is concurrent belongs to a new database here, where it need not be.
            statement = statement.replace(f"{CONCURRENTLY} ", " IF NOT EXISTS ")
            statement = statement.replace(DROP_INDEX, f"{DROP_INDEX} IF EXISTS")
            for part in citus.split_checked_column(statement):
                connection.execute(part)
        connection.execute(
            "INSERT INTO schema_migrations (number, name, checksum) VALUES (%s, %s, %s)",
            (migration.number, migration.name, migration.checksum),
        )
        after = ()


def _apply_one_by_one(connection: Connection, migration: Migration) -> None:
    """Run each statement of a migration as a transaction of its own, while others read and write.

    Together they would hold the strongest lock until the last one ends. Each can be run again, so an interrupted
    migration continues: an index that was left unfinished is rebuilt.
    """
    connection.execute(f"SET lock_timeout = {int(LOCK_PATIENCE * 1000)}")
    for name in list_created([migration]):
        unfinished = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid"
        if connection.execute(unfinished, [name]).fetchone():
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier(name)))
    for statement in migration.statements:
        statement = statement.replace(CONCURRENTLY, f"{CONCURRENTLY} IF NOT EXISTS")
        for part in citus.split_checked_column(statement.replace(DROP_INDEX, f"{DROP_INDEX}{CONCURRENTLY} IF EXISTS")):
            connection.execute(part)


MIGRATE_FIRST = (
    "The database needs {} migrations, and the role {!r} does not own its tables. Run "
    "`wellkept admin db migrate --url …` with the address of the owner{}, or set WELLKEPT_OWNER_URL to it."
)

NOT_DISTRIBUTED = (
    "The migrations are applied, but tables that they made are on the coordinator only. Remove the cause and run "
    "`wellkept admin db distribute --url …` with the address of the owner of the tables."
)


def prepare_schema(connection: Connection, *, owner_url: str = "") -> None:
    """Create or upgrade the schema, by this role if it owns the tables and otherwise by `owner_url`.

    Raises: SchemaMismatch when neither may.
    """
    if owner_url:
        migrate_database(owner_url)
    elif is_owner(connection):
        migrate_and_distribute(connection)
    pending = list_pending(connection)
    if pending:
        owner = find_owner(connection)
        raise SchemaMismatch(MIGRATE_FIRST.format(len(pending), connection.info.user, f" ({owner})" if owner else ""))


def migrate_database(url: str) -> Sequence[str]:
    """Apply pending migrations as the owner of the tables; return their names.

    Raises: StoreError when this role does not own them, SchemaMismatch.
    """
    with translate_admin_errors(), connect_once(url) as connection:
        check_role(connection)
        if not is_owner(connection, by_name=True):
            owner = find_owner(connection) or "another role, or nobody yet: run `wellkept admin db init` first"
            raise StoreError(
                f"The role {connection.info.user!r} cannot migrate this database: its tables belong to {owner}."
            )
        return migrate_and_distribute(connection)


def migrate_and_distribute(connection: Connection) -> Sequence[str]:
    """Apply pending migrations and distribute the tables they create, if the others are; return the migrations."""
    names = migrate(connection)
    if names and citus.is_distributed(connection):
        try:
            with translate_admin_errors():
                citus.distribute_pending(connection)
        except WellkeptError as error:
            error.args = (f"{error} {NOT_DISTRIBUTED}",)
            raise
    return names


RIGHTS = "SELECT, INSERT, UPDATE, DELETE"
LOCK_TIMEOUT_MS = 10_000
MAINTAIN_SINCE = 170_000
"""Version of the server from which a right allows VACUUM, so that an erasure can clean up without the owner."""


@dataclass(frozen=True, slots=True)
class InitReport:
    """Statements that were run, or would be, and the migrations applied."""

    statements: Sequence[str]
    migrations: Sequence[str]
    is_dry_run: bool


def initialize(
    url: str, *, owner: str, application: str, passwords: Mapping[str, str] | None = None, dry_run: bool = False
) -> InitReport:
    """Create both roles, give the schema and tables to the owner, upgrade them, and grant the application its rights.

    `passwords` are by role; they are sent as hashes and never shown. A role without one keeps its own.

    Raises: Invalid, StoreError.
    """
    if owner == application:
        raise Invalid("The owner and the application need two different roles.")
    with translate_admin_errors(), connect_once(url) as connection:
        _check_application(connection, owner, application)
        if dry_run:
            shown = [
                *_role_statements(connection, owner, application, {}),
                *_ownership_statements(connection, owner, application),
                *_grant_statements(connection, owner, application),
                *unforce_statements(connection),
            ]
            return InitReport([each.as_string(connection) for each in shown], (), True)
        done = _run(connection, _role_statements(connection, owner, application, passwords or {}))
        done += _run(connection, _ownership_statements(connection, owner, application))
        done += _run(connection, _grant_statements(connection, owner, application))
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(owner)))
        done += _run(connection, unforce_statements(connection))
        migrations = migrate_and_distribute(connection)
        done += _run(connection, unforce_statements(connection))
        return InitReport(done, migrations, False)


def _run(connection: Connection, statements: Sequence[sql.Composed]) -> list[str]:
    """Run the statements in one transaction; return them without passwords."""
    with connection.transaction():
        # Whoever waits for a table makes others wait behind it.
        connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
        for statement in statements:
            connection.execute(statement)
    shown = (statement.as_string(connection) for statement in statements)
    return [re.sub(r" PASSWORD '.*", " PASSWORD '…'", text) for text in shown]


def _check_application(connection: Connection, owner: str, application: str) -> None:
    """Check that row-level security can hold an existing application role. Raises: Invalid."""
    row = connection.execute(
        "SELECT rolsuper OR rolbypassrls OR rolcreaterole, rolname = current_user, EXISTS (SELECT 1 FROM pg_roles o "
        "WHERE o.rolname = %s AND pg_has_role(r.oid, o.oid, 'MEMBER')) FROM pg_roles r WHERE rolname = %s",
        [owner, application],
    ).fetchone()
    if row is None:
        return
    has_powers, is_operator, is_member = row
    if is_operator:
        raise Invalid(f"Run this as a superuser, or as a role other than {application!r}, which is to own nothing.")
    if has_powers:
        raise Invalid(
            f"The role {application!r} is a superuser or has BYPASSRLS or CREATEROLE; name another application role."
        )
    if is_member:
        raise Invalid(
            f"The role {application!r} is a member of {owner!r}, so row-level security would not hold it. Run: "
            f'REVOKE "{owner}" FROM "{application}"'
        )


def _role_statements(
    connection: Connection, owner: str, application: str, passwords: Mapping[str, str]
) -> list[sql.Composed]:
    existing = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
    made: list[sql.Composed] = []
    for name in (owner, application):
        role = sql.Identifier(name)
        if name not in existing:
            made.append(sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE").format(role))
        if name in passwords:
            # The hash, so that the password is not in the server's log.
            hashed = connection.pgconn.encrypt_password(passwords[name].encode(), name.encode(), b"scram-sha-256")
            made.append(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, sql.Literal(hashed.decode())))
    row = connection.execute(
        "SELECT bool_or(rolsuper OR pg_has_role(current_user, oid, 'USAGE')) FROM pg_roles "
        "WHERE rolname = %s OR (rolname = current_user AND rolsuper)",
        [owner],
    ).fetchone()
    if row != (True,):
        # Only a member of a role can give something to it.
        made.append(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(owner)))
    return made


def _ownership_statements(connection: Connection, owner: str, application: str) -> list[sql.Composed]:
    """Return the statements that give the owner what it does not own yet."""
    to = sql.Identifier(owner)
    row = connection.execute(
        "SELECT current_database(), pg_get_userbyid(datdba), nspname, pg_get_userbyid(nspowner), "
        "EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector') FROM pg_database, pg_namespace "
        "WHERE datname = current_database() AND nspname = current_schema()"
    ).fetchone()
    if row is None:
        raise Invalid("The database has no schema for the tables; create one and name it in the role's search_path.")
    database, database_owner, schema, schema_owner, has_vector = row
    made: list[sql.Composed] = []
    if not has_vector:
        made.append(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier("vector")))
    made.append(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(sql.Identifier(database), to))
    # Whoever owns the database owns its public schema, too, and could drop the tables in it.
    if database_owner == application:
        made.append(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(database), to))
    if schema_owner != owner:
        made.append(sql.SQL("ALTER SCHEMA {} OWNER TO {}").format(sql.Identifier(schema), to))
    ours = [MIGRATIONS_TABLE, *(name for name, each in _created().items() if each in ("table", "view"))]
    foreign = connection.execute(
        "SELECT relname, relkind = 'v' FROM pg_class WHERE relnamespace = %s::regnamespace AND relname = ANY(%s) "
        "AND pg_get_userbyid(relowner) <> %s ORDER BY relname",
        [schema, ours, owner],
    ).fetchall()
    for name, is_view in foreign:
        change = sql.SQL("ALTER VIEW {} OWNER TO {}" if is_view else "ALTER TABLE {} OWNER TO {}")
        made.append(change.format(sql.Identifier(name), to))
    return made


def _created() -> Mapping[str, str]:
    return {name: each.what for name, each in list_created(load_migrations("postgres")).items()}


def _grant_statements(connection: Connection, owner: str, application: str) -> list[sql.Composed]:
    """Return the statements that give the application its rights, also on what the owner creates later."""
    row = connection.execute("SELECT current_database(), current_schema()").fetchone()
    assert row is not None
    names = {
        "database": sql.Identifier(row[0]),
        "schema": sql.Identifier(row[1]),
        "owner": sql.Identifier(owner),
        "app": sql.Identifier(application),
        "rights": sql.SQL(RIGHTS + (", MAINTAIN" if connection.info.server_version >= MAINTAIN_SINCE else "")),
    }
    statements = (
        "REVOKE CREATE ON DATABASE {database} FROM {app}",
        "GRANT CONNECT ON DATABASE {database} TO {app}",
        "REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, {app}",
        "GRANT USAGE ON SCHEMA {schema} TO {app}",
        # TRUNCATE would remove the rows of all tenants, whatever row-level security says.
        "REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {app}",
        "GRANT {rights} ON ALL TABLES IN SCHEMA {schema} TO {app}",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {app}",
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {schema} GRANT {rights} ON TABLES TO {app}",
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {schema} GRANT USAGE, SELECT ON SEQUENCES TO {app}",
    )
    return [sql.SQL(each).format(**names) for each in statements]
