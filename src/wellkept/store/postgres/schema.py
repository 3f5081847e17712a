"""Create and upgrade the tables of a PostgreSQL database, while others read and write."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from psycopg import errors, sql

from wellkept.errors import StoreError
from wellkept.store import adopt_chat_tables
from wellkept.store.migrations import CONCURRENTLY, Migration, check_applied, list_created, load_migrations
from wellkept.store.postgres import citus
from wellkept.store.postgres.failures import translate_admin_errors
from wellkept.store.postgres.link import Connection
from wellkept.store.postgres.roles import has_unforced_tables, unforce_statements

MIGRATION_LOCK = 7_263_554_201
"""Key of the advisory lock held while migrating."""

LOCK_TIMEOUT_MS = 50
LOCK_PAUSE = 0.5
LOCK_PATIENCE = 600.0
"""Time that a migration waits for a lock, seconds until it tries again, and seconds after which it gives up."""

DROP_INDEX = "DROP INDEX"

UNCHANGED = "The database is at schema {} as before, so a version that started until now still starts."
HALFWAY = "The database is at schema {} now, so earlier versions refuse it."
UNKNOWN = "The connection broke, so some migrations may be applied."
FINISH = (
    " Remove the cause and run `wellkept db migrate --url …` with the address of the owner of the tables; it does the "
    "rest."
)
WAITING = "The upgrade of the schema waits up to %d s for transactions that are open; others read and write meanwhile."

_TOUCHED = re.compile(r"\b(?:ALTER TABLE|REFERENCES|INDEX .* ON) (\w+)")

log = logging.getLogger("wellkept")


def migrate(connection: Connection) -> Sequence[str]:
    """Apply pending migrations and return their names. One server migrates; others that start meanwhile wait for it.

    All of them are one transaction, so that the former version can go on if one fails. Only indexes that are built
    while others write end it: PostgreSQL builds them outside a transaction.

    The files force row-level security on new tables. If it was forced on none before, because another role serves,
    each transaction ends by lifting that.

    Raises: StoreError, which says in which state the database is.
    """
    migrations = load_migrations("postgres")
    if not check_applied(migrations, _applied(connection)) and not adopt_chat_tables.lacks_summary(
        _columns(connection)
    ):
        return []
    _wait_for_turn(connection)
    try:
        if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
            _add_pgvector(connection)
        applied = _applied(connection)
        is_forced = not has_unforced_tables(connection)
        before, after = adopt_chat_tables.adoption_statements(
            "postgres", applied, _columns(connection), _columns(connection, adopt_chat_tables.MESSAGES)
        )
        pending = check_applied(migrations, applied)
        done: list[Migration] = []
        with _explain_failure(connection, done):
            for group in _group(pending, is_new=not applied):
                if applied and group and group[0].is_concurrent:
                    _apply_one_by_one(connection, group[0])
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


def _columns(connection: Connection, table: str = adopt_chat_tables.SESSIONS) -> set[str]:
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
                connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
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
            # What `_apply_one_by_one` has not done belongs to a new database, where it need not be concurrent.
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
        connection.execute(statement.replace(DROP_INDEX, f"{DROP_INDEX}{CONCURRENTLY} IF EXISTS"))
