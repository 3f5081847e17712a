"""Create and upgrade the tables of a PostgreSQL database, while others read and write."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from psycopg import errors, sql

from wellkept.errors import StoreError
from wellkept.store import adopt_chat_tables
from wellkept.store.migrations import CONCURRENTLY, Migration, check_applied, list_created, load_migrations
from wellkept.store.postgres.link import Connection
from wellkept.store.postgres.roles import has_unforced_tables, unforce_statements

MIGRATION_LOCK = 7_263_554_201
"""Key of the advisory lock held while migrating."""

LOCK_TIMEOUT_MS = 50
LOCK_PAUSE = 0.5
LOCK_PATIENCE = 600.0
"""Time that a migration waits for a lock, seconds until it tries again, and seconds after which it gives up."""

DROP_INDEX = "DROP INDEX"


def migrate(connection: Connection) -> Sequence[str]:
    """Apply pending migrations and return their names. One server migrates; others that start meanwhile wait for it.

    The files force row-level security on new tables. If it was forced on none before, because another role serves,
    each migration ends by lifting that.
    """
    migrations = load_migrations("postgres")
    if not check_applied(migrations, _applied(connection)) and not adopt_chat_tables.lacks_summary(
        _columns(connection)
    ):
        return []
    connection.execute("SELECT pg_advisory_lock(%s)", (MIGRATION_LOCK,))
    try:
        if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
            _add_pgvector(connection)
        applied = _applied(connection)
        is_forced = not has_unforced_tables(connection)
        before, after = adopt_chat_tables.adoption_statements(
            "postgres", applied, _columns(connection), _columns(connection, adopt_chat_tables.MESSAGES)
        )
        pending = check_applied(migrations, applied)
        for place, migration in enumerate(pending or [None]):
            if applied and migration is not None and migration.is_concurrent:
                _apply_one_by_one(connection, migration)
            extra = (before, after) if place == 0 else ((), ())
            _apply_at_once(connection, migration, *extra, is_forced=is_forced)
        return [f"{each.number:04} {each.name}" for each in pending]
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))


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


def _columns(connection: Connection, table: str = adopt_chat_tables.SESSIONS) -> set[str]:
    rows = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped", [table]
    ).fetchall()
    return {name for (name,) in rows}


def _apply_at_once(
    connection: Connection,
    migration: Migration | None,
    before: Sequence[str],
    after: Sequence[str],
    *,
    is_forced: bool,
) -> None:
    """Apply a migration in one transaction.

    A statement that waits for a lock makes all others wait behind it, even readers. So it gives up soon and tries again
    until those who hold the lock are done.
    """
    until = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            with connection.transaction():
                connection.execute("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'")
                connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
                _apply(connection, migration, before, after)
                for statement in () if is_forced else unforce_statements(connection):
                    connection.execute(statement)
                return
        except errors.LockNotAvailable:
            if time.monotonic() > until:
                raise
        time.sleep(LOCK_PAUSE)


def _apply(connection: Connection, migration: Migration | None, before: Sequence[str], after: Sequence[str]) -> None:
    for statement in before:
        connection.execute(statement)
    if migration is None:
        return
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations "
        "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)"
    )
    for statement in (*migration.statements, *after):
        # What `_apply_one_by_one` has not done belongs to a new database, where it need not be concurrent.
        statement = statement.replace(f"{CONCURRENTLY} ", " IF NOT EXISTS ")
        connection.execute(statement.replace(DROP_INDEX, f"{DROP_INDEX} IF EXISTS"))
    connection.execute(
        "INSERT INTO schema_migrations (number, name, checksum) VALUES (%s, %s, %s)",
        (migration.number, migration.name, migration.checksum),
    )


def _apply_one_by_one(connection: Connection, migration: Migration) -> None:
    """Run each statement of a migration as a transaction of its own, while others read and write.

    Together they would hold the strongest lock until the last one ends. Each can be run again, so an interrupted
    migration continues: an index that was left unfinished is rebuilt.
    """
    for name in list_created([migration]):
        unfinished = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid"
        if connection.execute(unfinished, [name]).fetchone():
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier(name)))
    for statement in migration.statements:
        statement = statement.replace(CONCURRENTLY, f"{CONCURRENTLY} IF NOT EXISTS")
        connection.execute(statement.replace(DROP_INDEX, f"{DROP_INDEX}{CONCURRENTLY} IF EXISTS"))
