"""Schema migrations: numbered files, each applied once, in order and in a transaction.

The database records the number and checksum of each applied migration. A database that is newer than the program, or
has a different history, is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
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
