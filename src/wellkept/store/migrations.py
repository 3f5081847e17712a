"""Schema migrations: numbered files, each applied once, in order and in a transaction.

The database records the number and checksum of each applied migration. A database that is newer than the program, or
has a different history, is refused.

Adoption of existing chat tables that have our names but lack some of our columns.

Our own tables without the summary's columns get these added. Tables of another program are renamed and otherwise kept
unchanged; the messages of users and assistants are copied into our tables, for the default agent of the default tenant.
Both happen in the transaction of a migration, so that servers that start concurrently do it only once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wellkept.errors import SchemaMismatch
from wellkept.program import FORMER_NAME
from wellkept.store.queries import statements


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration of the schema."""

    number: int
    name: str
    checksum: str
    statements: Sequence[str]

    def __str__(self) -> str:
        return f"{self.number:04} {self.name}"

    @property
    def is_concurrent(self) -> bool:
        """Return True if its indexes are built while others write, which PostgreSQL does outside a transaction only."""
        return any(CONCURRENTLY in statement for statement in self.statements)


@dataclass(frozen=True, slots=True)
class CreatedObject:
    """Table, index or view created by a statement of a migration."""

    what: str  # table, index or view
    statement: str


CONCURRENTLY = " CONCURRENTLY"

TENANT_SETTING = f"{FORMER_NAME}.tenant"
"""Setting of PostgreSQL that row-level security compares with.

It keeps its former name, because released migrations have it, and servers of version 0.2 set it during an upgrade.
"""

_CREATED = re.compile(
    r"CREATE (?:UNIQUE |UNLOGGED )?(?P<what>TABLE|INDEX|VIEW) (?:CONCURRENTLY )?(?:IF NOT EXISTS )?(?P<name>\w+)"
)
_RENAMED = re.compile(r"ALTER (?:TABLE|INDEX|VIEW) (?P<name>\w+) RENAME TO (?P<new>\w+)")
_DROPPED = re.compile(r"DROP (?:TABLE|INDEX|VIEW) (?:IF EXISTS )?(?P<name>\w+)")


def load_migrations(engine: str) -> Sequence[Migration]:
    """Load all migrations of one engine in order."""
    folder = Path(__file__).parent / "sql" / "migrations" / engine
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [_parse_migration(name, (folder / name).read_text("utf-8")) for name in found]


def _parse_migration(file_name: str, script: str) -> Migration:
    # The checksum is that of the released file, which has the name of the setting in its policies.
    script = script.replace("@setting@", TENANT_SETTING)
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, hashlib.sha256(script.encode()).hexdigest(), statements(script))


def list_created(migrations: Sequence[Migration]) -> Mapping[str, CreatedObject]:
    """Return the tables, indexes and views that exist after all migrations, by name."""
    created: dict[str, CreatedObject] = {}
    for statement in (each for migration in migrations for each in migration.statements):
        if found := _CREATED.match(statement):
            created[found["name"]] = CreatedObject(found["what"].lower(), statement)
        elif found := _RENAMED.match(statement):
            created[found["new"]] = created.pop(found["name"])
        elif found := _DROPPED.match(statement):
            created.pop(found["name"], None)
    return created


def check_applied(migrations: Sequence[Migration], applied: Mapping[int, str]) -> Sequence[Migration]:
    """Return the pending migrations, given the checksum of each `applied` one.

    Raises: SchemaMismatch when the database is not an earlier state of this program's schema.
    """
    known = {migration.number: migration for migration in migrations}
    for number, checksum in applied.items():
        if number not in known:
            raise SchemaMismatch(
                f"The database has schema {number}, this program knows up to {max(known)}. "
                "It was used by a newer wellkept: run pip install -U wellkept (in a clone: git pull && pip install .)."
            )
        if known[number].checksum != checksum:
            raise SchemaMismatch(
                f"Migration {number} ({known[number].name}) of the database is not the one in this program; "
                "another build created the database. Export it there and import it here."
            )
    return [migration for migration in migrations if migration.number not in applied]


SESSIONS, MESSAGES = "chat_sessions", "chat_messages"
ASIDE = "_before_wellkept"

COLUMN_TYPES = {
    "sqlite": {"summary": "TEXT NOT NULL DEFAULT ''", "summarized_count": "INTEGER NOT NULL DEFAULT 0"},
    "postgres": {"summary": "TEXT NOT NULL DEFAULT ''", "summarized_count": "BIGINT NOT NULL DEFAULT 0"},
}
LONG_AGO = {"sqlite": "'1970-01-01T00:00:00.000000Z'", "postgres": "'1970-01-01T00:00:00Z'::timestamptz"}
TIME = {"sqlite": "strftime('%Y-%m-%dT%H:%M:%f', {0}) || '000Z'", "postgres": "{0}::timestamptz"}
ROW = {"sqlite": "m.rowid", "postgres": "m.ctid"}
NOT_OURS_TO_READ = (
    "The database has a table chat_sessions of another program that cannot be adopted: it has its own tenants or lacks "
    "required columns. Rename it, or use a separate database for wellkept."
)


def lacks_summary(columns: Collection[str]) -> bool:
    """Return True if a table of sessions exists and lacks the columns of a summary."""
    return bool(columns) and not {*columns} >= {"summary", "summarized_count"}


def adoption_statements(
    engine: str, applied: Mapping[int, str], sessions: Collection[str], messages: Collection[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the statements to run before and after the next migration, given the columns of the existing tables.

    Raises: SchemaMismatch when they are another program's and cannot be adopted.
    """
    if not sessions:
        return (), ()
    if applied:
        return [
            f"ALTER TABLE {SESSIONS} ADD COLUMN {name} {kind}"
            for name, kind in COLUMN_TYPES[engine].items()
            if name not in sessions
        ], ()
    if "tenant_id" in sessions or "id" not in sessions or not {*messages} >= {"session_id", "role", "content"}:
        raise SchemaMismatch(NOT_OURS_TO_READ)
    aside = [f"ALTER TABLE {table} RENAME TO {table}{ASIDE}" for table in (MESSAGES, SESSIONS)]
    return aside, _copy_statements(engine, {*sessions}, {*messages})


def _copy_statements(engine: str, sessions: Collection[str], messages: Collection[str]) -> Sequence[str]:
    started = _time_expression(engine, "s.created_at", sessions)
    updated = _time_expression(engine, "s.updated_at", sessions)
    sent, long_ago = _time_expression(engine, "m.created_at", messages), LONG_AGO[engine]
    order = "m.position" if "position" in messages else "m.created_at" if "created_at" in messages else ROW[engine]
    own = f"FROM {MESSAGES} m WHERE m.tenant_id = 'default' AND m.session_id = {SESSIONS}.id"
    summary = ("''", "0") if lacks_summary(sessions) else ("coalesce(s.summary, '')", "coalesce(s.summarized_count, 0)")
    enter, leave = ([f"SET LOCAL {TENANT_SETTING} = '{tenant}'"] for tenant in ("default", ""))
    return [
        *(enter if engine == "postgres" else ()),
        f"INSERT INTO tenants (tenant_id, created_at) VALUES ('default', {long_ago})",
        "INSERT INTO agents (tenant_id, id, name, created_at, updated_at) "
        f"VALUES ('default', 'default', 'default', {long_ago}, {long_ago})",
        f"INSERT INTO {SESSIONS} (tenant_id, id, agent_id, summary, summarized_count, created_at, updated_at) "
        f"SELECT 'default', CAST(s.id AS TEXT), 'default', {summary[0]}, {summary[1]}, "
        f"coalesce({started}, {long_ago}), coalesce({updated}, {started}, {long_ago}) FROM {SESSIONS}{ASIDE} s",
        f"INSERT INTO {MESSAGES} (tenant_id, session_id, position, role, content, created_at) "
        "SELECT 'default', CAST(m.session_id AS TEXT), "
        f"row_number() OVER (PARTITION BY m.session_id ORDER BY {order}, {ROW[engine]}), m.role, m.content, "
        f"coalesce({sent}, {long_ago}) FROM {MESSAGES}{ASIDE} m "
        "WHERE m.role IN ('user', 'assistant') AND m.content IS NOT NULL "
        f"AND EXISTS (SELECT 1 FROM {SESSIONS}{ASIDE} s WHERE s.id = m.session_id)",
        f"UPDATE {SESSIONS} SET message_count = (SELECT count(*) {own}) WHERE tenant_id = 'default'",
        # Reset a summary that claims to cover more messages than exist: its count means something else.
        f"UPDATE {SESSIONS} SET summary = '', summarized_count = 0 "
        "WHERE tenant_id = 'default' AND (summarized_count > message_count OR summarized_count < 0)",
        *(leave if engine == "postgres" else ()),
    ]


def _time_expression(engine: str, column: str, columns: Collection[str]) -> str:
    return TIME[engine].format(column) if column.partition(".")[2] in columns else "NULL"
