"""Backups of a SQLite store: made while it is in use, checked, restored elsewhere, and refused when damaged."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from wellkept import Invalid, Settings, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.store.sqlite import backup

LONG = "line of a log\n" * 3000


def url_of(folder: Path, name: str = "memory.db") -> str:
    return f"sqlite:///{folder / name}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Wellkept]:
    with Wellkept(settings=Settings(url=url_of(tmp_path))) as opened:
        atlas = opened.agent("atlas", tenant="acme")
        atlas.remember("Prefers tabs over spaces", tags=["style"])
        atlas.store_detail(LONG, description="A log")
        opened.agent("other").remember("Ships on Fridays")
        yield opened


def everything(store: Wellkept) -> list[object]:
    tenants = sorted(store.list_tenants())
    return [
        (tenant, agent.id, [(each.id, each.text, each.tags) for each in memory.list()], texts(memory))
        for tenant in tenants
        for agent in store.tenant(tenant).list_agents()
        for memory in [store.agent(agent.id, tenant=tenant)]
    ]


def texts(memory: AgentMemory) -> list[str]:
    return [memory.read_detail(each.key, limit=10**6).content for each in memory.list_details()]


def test_restore_brings_back_every_tenant_and_text(store: Wellkept, tmp_path: Path) -> None:
    made = store.backup(tmp_path / "monday.tar.zst")
    store.agent("other").remember("Written after the backup")

    restored = Wellkept.restore(tmp_path / "monday.tar.zst", to=url_of(tmp_path, "restored/copy.db"))

    assert restored == made == Wellkept.verify_backup(tmp_path / "monday.tar.zst")
    assert (made.texts, made.problems) == (1, ())
    with Wellkept(settings=Settings(url=url_of(tmp_path, "restored/copy.db"))) as copy:
        before = [each for each in everything(store) if "Written after" not in str(each)]
        assert [each for each in everything(copy) if "Ships" not in str(each)] == before
        assert [each.text for each in copy.agent("other").list()] == ["Ships on Fridays"]
        assert copy.tenant("acme").verify_audit().is_intact
        assert [hit.text for hit in copy.agent("atlas", tenant="acme").recall("tabs or spaces?")][:1] == [
            "Prefers tabs over spaces"
        ]
        assert not [each for each in copy.check() if not each.is_ok]


def test_a_backup_under_load_holds_one_moment(store: Wellkept, tmp_path: Path) -> None:
    """Writers add a memory and a text in turn, and delete texts; each backup is whole and a prefix of what was said."""
    stop, failures = threading.Event(), []

    def write(name: str) -> None:
        memory, number = store.agent(name), 0
        try:
            while not stop.is_set():
                number += 1
                memory.remember(f"{name} says {number}")
                key = memory.store_detail(f"{name} {number}\n" * 50).key
                if number % 3 == 0:
                    memory.delete_detail(key)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    writers = [threading.Thread(target=write, args=(name,)) for name in ("one", "two")]
    for each in writers:
        each.start()
    try:
        for number in range(3):
            store.backup(tmp_path / f"{number}.tar.zst")
    finally:
        stop.set()
        for each in writers:
            each.join()
    assert not failures
    for number in range(3):
        Wellkept.restore(tmp_path / f"{number}.tar.zst", to=url_of(tmp_path, f"{number}.db"))
        with Wellkept(settings=Settings(url=url_of(tmp_path, f"{number}.db"))) as copy:
            for name in ("one", "two"):
                said = sorted(int(each.text.rsplit(" ", 1)[1]) for each in copy.agent(name).list(limit=500))
                assert said == list(range(1, len(said) + 1))
                assert all(texts(copy.agent(name)))
            assert not [each for each in copy.check() if not each.is_ok]


def test_a_missing_text_is_named_and_the_rest_is_saved(store: Wellkept, tmp_path: Path) -> None:
    (lost,) = tmp_path.glob("memory.db.blobs/*/*.zst")
    lost.unlink()

    made = store.backup(tmp_path / "monday.tar.zst")

    assert made.texts == 0
    assert "1 texts of details are missing" in made.problems[0]


@pytest.mark.parametrize("place", [0.3, 0.99])
def test_a_damaged_backup_is_refused_and_nothing_is_restored(store: Wellkept, tmp_path: Path, place: float) -> None:
    path, target = tmp_path / "monday.tar.zst", tmp_path / "new" / "copy.db"
    store.backup(path)
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 0xFF
    path.write_bytes(content)

    for refused in (lambda: Wellkept.verify_backup(path), lambda: Wellkept.restore(path, to=f"sqlite:///{target}")):
        with pytest.raises(Invalid):
            refused()
    assert not target.exists()
    assert list(target.parent.glob("*")) == []


def test_a_backup_that_was_cut_off_is_refused(store: Wellkept, tmp_path: Path) -> None:
    path = tmp_path / "monday.tar.zst"
    store.backup(path)
    path.write_bytes(path.read_bytes()[:-2000])

    with pytest.raises(Invalid, match="cut off"):
        Wellkept.verify_backup(path)


def test_a_file_that_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("just a note\n" * 100)

    with pytest.raises(Invalid, match="not a backup"):
        Wellkept.restore(tmp_path / "notes.txt", to=url_of(tmp_path))


def test_an_existing_store_is_never_overwritten(store: Wellkept, tmp_path: Path) -> None:
    store.backup(tmp_path / "monday.tar.zst")

    with pytest.raises(Invalid, match="already holds a store"):
        Wellkept.restore(tmp_path / "monday.tar.zst", to=url_of(tmp_path))
    assert [each.text for each in store.agent("other").list()] == ["Ships on Fridays"]


def test_a_backup_replaces_only_another_backup(store: Wellkept, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")

    for taken in ("diary.txt", "memory.db"):
        with pytest.raises(Invalid, match="is not a backup"):
            store.backup(tmp_path / taken)
    assert (tmp_path / "diary.txt").read_text() == "dear diary"
    assert [each.text for each in store.agent("other").list()] == ["Ships on Fridays"]

    store.backup(tmp_path / "monday.tar.zst")
    assert store.backup(tmp_path / "monday.tar.zst").texts == 1


def test_a_store_created_during_a_restore_is_kept(store: Wellkept, tmp_path: Path) -> None:
    store.backup(tmp_path / "monday.tar.zst")
    url = url_of(tmp_path, "new/copy.db")

    def create(*_: object) -> None:
        if not (tmp_path / "new" / "copy.db").exists():
            with Wellkept(settings=Settings(url=url)) as other:
                other.agent("late").remember("Written meanwhile")

    with pytest.raises(Invalid, match="already holds a store"):
        Wellkept.restore(tmp_path / "monday.tar.zst", to=url, progress=create)
    with Wellkept(settings=Settings(url=url)) as other:
        assert [each.text for each in other.agent("late").list()] == ["Written meanwhile"]


def test_a_failed_backup_leaves_no_file(store: Wellkept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(tmp_path.iterdir())

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup, "_add_file", fail)
    with pytest.raises(Invalid, match="No space left"):
        store.backup(tmp_path / "monday.tar.zst")
    assert sorted(tmp_path.iterdir()) == before


def test_the_database_in_memory_can_be_saved(tmp_path: Path) -> None:
    with Wellkept(":memory:", settings=Settings()) as store:
        store.agent("atlas").remember("Prefers tabs")
        store.backup(tmp_path / "memory.tar.zst")
    Wellkept.restore(tmp_path / "memory.tar.zst", to=url_of(tmp_path))
    with Wellkept(settings=Settings(url=url_of(tmp_path))) as copy:
        assert [each.text for each in copy.agent("atlas").list()] == ["Prefers tabs"]


def test_postgresql_says_how_to_make_a_backup(postgres_url: str, tmp_path: Path) -> None:
    with Wellkept(settings=Settings(url=postgres_url)) as store, pytest.raises(Invalid, match="pg_dump"):
        store.backup(tmp_path / "monday.tar.zst")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "monday.tar.zst").touch()
    with pytest.raises(Invalid, match="SQLite file"):
        Wellkept.restore(tmp_path / "monday.tar.zst", to=postgres_url)
