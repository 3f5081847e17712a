"""Upgrade of the schema by the role that may: the owner of the tables, which need not be the one that serves."""

from __future__ import annotations

from collections.abc import Sequence

from wellkept.errors import SchemaMismatch, StoreError, WellkeptError
from wellkept.store.postgres import citus
from wellkept.store.postgres.failures import translate_admin_errors
from wellkept.store.postgres.link import Connection, connect_once
from wellkept.store.postgres.roles import check_role, find_owner, is_owner
from wellkept.store.postgres.schema import list_pending, migrate

MIGRATE_FIRST = (
    "The database needs {} migrations, and the role {!r} does not own its tables. Run `wellkept db migrate --url …` "
    "with the address of the owner{}, or set WELLKEPT_OWNER_URL to it."
)

NOT_DISTRIBUTED = (
    "The migrations are applied, but tables that they made are on the coordinator only. Remove the cause and run "
    "`wellkept db distribute --url …` with the address of the owner of the tables."
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
            owner = find_owner(connection) or "another role, or nobody yet: run `wellkept db init` first"
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
