"""Set-up of a database for two roles, and conversion of one that had a single role.

Run by an operator: a superuser, or a role that owns the database and may create roles. Every statement can be run
again, and only those are run that change something for roles and tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psycopg import sql

from wellkept.errors import Invalid
from wellkept.store.migrations import list_created, load_migrations
from wellkept.store.postgres.failures import translate_admin_errors
from wellkept.store.postgres.link import Connection, connect_once
from wellkept.store.postgres.migrate import migrate_and_distribute
from wellkept.store.postgres.roles import MIGRATIONS_TABLE, unforce_statements

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
