"""Roles of a PostgreSQL database: one that owns and serves it, or an owner beside an application that owns nothing.

Row-level security holds every role but superusers, those with BYPASSRLS and, unless it is forced, the owner of a table.
One role alone therefore has it forced. With two, it is only enabled: the owner can upgrade, copy and move all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from wellkept.errors import StoreError
from wellkept.store.postgres.link import Connection

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
            "Or run `wellkept db init` as this role, which creates an owner and an application role."
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
            "their owner. Serve as the application role (`wellkept db init`), or FORCE it if there is only one role."
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
