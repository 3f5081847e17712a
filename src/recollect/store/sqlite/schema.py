"""Schema of a SQLite file: the applied migrations, and applying the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from recollect.store import adopt_chat_tables
from recollect.store.migrations import Migration, check_applied, load_migrations


def migrate(connection: apsw.Connection) -> None:
    """Apply pending migrations, each under the write lock; other processes wait and find it applied."""
    migrations = load_migrations("sqlite")
    while check_applied(migrations, read_applied(connection)) or adopt_chat_tables.lacks_summary(
        _columns_of(connection)
    ):
        connection.execute("BEGIN IMMEDIATE")
        try:
            _apply_next(connection, migrations)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def read_applied(connection: apsw.Connection) -> Mapping[int, str]:
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").fetchone():
        return {}
    return {row[0]: row[1] for row in connection.execute("SELECT number, checksum FROM schema_migrations")}


def _columns_of(connection: apsw.Connection, table: str = adopt_chat_tables.SESSIONS) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def _apply_next(connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
    applied = read_applied(connection)
    before, after = adopt_chat_tables.adoption_statements(
        "sqlite", applied, _columns_of(connection), _columns_of(connection, adopt_chat_tables.MESSAGES)
    )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations "
        "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL) STRICT"
    )
    for statement in before:
        connection.execute(statement)
    for migration in check_applied(migrations, applied)[:1]:
        for statement in (*migration.statements, *after):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO schema_migrations (number, name, checksum) VALUES (?, ?, ?)",
            (migration.number, migration.name, migration.checksum),
        )
