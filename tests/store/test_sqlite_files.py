"""Files of an embedded store: their rights, and bytes of deleted rows."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import apsw
import pytest

from tests.services.conftest import Clock
from wellkept import Wellkept
from wellkept.errors import StoreError
from wellkept.store.sqlite.scrub import overwrite_unused

LONG = "A line of a log that is kept.\n" * 2000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "memory.db"


@pytest.fixture
def clock() -> Clock:
    return Clock()


def filled(path: Path, clock: Clock) -> None:
    with Wellkept(f"sqlite:///{path}", clock=clock) as store:
        store.agent("atlas").details.store(LONG, description="log")


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_folders_made_for_a_database_are_their_owners_only(tmp_path: Path) -> None:
    Wellkept(f"sqlite:///{tmp_path / 'a' / 'b' / 'c' / 'memory.db'}").close()

    assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.rglob("*") if each.is_dir()} == {0o700}


@pytest.mark.usefixtures("no_umask")
def test_a_database_is_readable_by_its_owner_only(path: Path, clock: Clock) -> None:
    path.parent.mkdir(mode=0o755)
    with Wellkept(f"sqlite:///{path}", clock=clock) as store:
        store.agent("atlas").details.store(LONG, description="log")
        made = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}

    assert made == dict.fromkeys(["memory.db", "memory.db-wal", "memory.db-shm"], 0o600)


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["missing", "empty"])
def test_a_lost_database_is_not_replaced_beside_its_log(
    path: Path, clock: Clock, lose: Callable[[Path], object], tmp_path: Path
) -> None:
    with Wellkept(f"sqlite:///{path}", clock=clock) as store:
        store.agent("atlas").remember("Prefers tabs")
        shutil.copytree(path.parent, tmp_path / "copy")
    lost = tmp_path / "copy" / "memory.db"
    lose(lost)

    with pytest.raises(StoreError, match=r"Restore the database from a backup\. To start a new store here, move"):
        Wellkept(f"sqlite:///{lost}")
    assert Path(f"{lost}-wal").stat().st_size
    assert not lost.exists() or lost.stat().st_size == 0


def test_a_copied_store_opens(path: Path, clock: Clock, tmp_path: Path) -> None:
    filled(path, clock)
    shutil.copytree(path.parent, tmp_path / "copy")

    with Wellkept(f"sqlite:///{tmp_path}/copy/memory.db", clock=clock) as store:
        (detail,) = store.agent("atlas").details.list()
        assert store.agent("atlas").details.read(detail.key).total == len(LONG)


def names_in(path: Path) -> int:
    files = (Path(f"{path}{suffix}") for suffix in ("", "-wal"))
    return sum(file.read_bytes().count(b"zorbqlax") for file in files if file.exists())


def make_rows(path: Path, *, count: int) -> apsw.Connection:
    """Make a database whose pages keep copies of names that were moved and then deleted."""
    connection = apsw.Connection(str(path))
    for pragma in ("journal_mode=wal", "secure_delete=on", "wal_autocheckpoint=0"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, name TEXT)")
    connection.execute("INSERT INTO schema_migrations VALUES (1, 'first')")
    connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, filler TEXT)")
    connection.execute("CREATE INDEX by_name ON people (name)")
    with connection:
        for number in range(count):
            place = number * 7919 % count
            connection.execute(
                "INSERT INTO people VALUES (?, ?, ?)", (place, f"zorbqlax {place * 31 % count}", "f" * 90)
            )
    with connection:
        connection.execute("DELETE FROM people WHERE id % 10 <> 0")
        connection.execute("UPDATE people SET name = 'somebody ' || id")
    return connection


def test_overwriting_unused_parts_leaves_no_copy_and_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    writer = make_rows(path, count=4000)
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert names_in(path) > 0
    # Both hold pages with the old bytes in their caches and write them afterwards.
    other = apsw.Connection(str(path))
    rows = other.execute("SELECT * FROM people ORDER BY name").fetchall()

    assert overwrite_unused(apsw.Connection(str(path)), path, nullcontext) == []

    assert names_in(path) == 0
    for connection in (writer, other):
        connection.execute("UPDATE people SET filler = filler || 'x'")
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert names_in(path) == 0
    assert writer.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert [row[:2] for row in rows] == [row[:2] for row in other.execute("SELECT * FROM people ORDER BY name")]


def test_a_reader_of_the_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    make_rows(path, count=100)
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM people").fetchall()
    writer = apsw.Connection(str(path))
    writer.execute("UPDATE people SET filler = 'y'")

    left = overwrite_unused(apsw.Connection(str(path)), path, nullcontext)

    assert any("because of concurrent readers" in sentence for sentence in left)
