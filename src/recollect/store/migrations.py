"""Schema changes: numbered files, applied in order, each in a transaction, each once.

The database keeps the number and checksum of what was applied. A database newer than the program is refused rather than
guessed at, and so is one whose history differs from ours.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from recollect.errors import SchemaMismatch
from recollect.store.queries import statements


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    number: int
    name: str
    checksum: str
    statements: Sequence[str]


@dataclass(frozen=True, slots=True)
class Made:
    """What one statement of a step makes."""

    what: str  # table, index or view
    statement: str


_MADE = re.compile(r"CREATE (?:UNIQUE )?(?P<what>TABLE|INDEX|VIEW) (?:IF NOT EXISTS )?(?P<name>\w+)")
_RENAMED = re.compile(r"ALTER (?:TABLE|INDEX|VIEW) (?P<name>\w+) RENAME TO (?P<new>\w+)")
_DROPPED = re.compile(r"DROP (?:TABLE|INDEX|VIEW) (?:IF EXISTS )?(?P<name>\w+)")


def load_migrations(engine: str) -> Sequence[Migration]:
    """All steps of one engine, in order."""
    folder = files("recollect.store") / "sql" / "migrations" / engine
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [_migration(name, (folder / name).read_text("utf-8")) for name in found]


def _migration(file_name: str, script: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, hashlib.sha256(script.encode()).hexdigest(), statements(script))


def made_by(migrations: Sequence[Migration]) -> Mapping[str, Made]:
    """The tables, indexes and views all steps together leave behind, by name."""
    made: dict[str, Made] = {}
    for statement in (each for migration in migrations for each in migration.statements):
        if found := _MADE.match(statement):
            made[found["name"]] = Made(found["what"].lower(), statement)
        elif found := _RENAMED.match(statement):
            made[found["new"]] = made.pop(found["name"])
        elif found := _DROPPED.match(statement):
            made.pop(found["name"], None)
    return made


def check_applied(migrations: Sequence[Migration], applied: Mapping[int, str]) -> Sequence[Migration]:
    """The steps still to be taken, given the checksum of each step `applied`.

    Raises: SchemaMismatch when the database is not an earlier state of this program's schema.
    """
    known = {migration.number: migration for migration in migrations}
    for number, checksum in applied.items():
        if number not in known:
            raise SchemaMismatch(
                f"The database has schema {number}, this program knows up to {max(known)}. "
                "It was used by a newer recollect: run pip install -U recollect."
            )
        if known[number].checksum != checksum:
            raise SchemaMismatch(
                f"Step {number} ({known[number].name}) of the database's schema is not the one this program has; "
                "the database was made by another build. Export it there and import it here."
            )
    return [migration for migration in migrations if migration.number not in applied]
