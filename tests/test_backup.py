"""Backups of a SQLite store: made while it is in use, checked, restored elsewhere, and refused when damaged."""

from __future__ import annotations

import io
import json
import random
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from wellkept import Invalid, Settings, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.compression import zstd
from wellkept.store.sqlite import backup

LONG = "line of a log\n" * 3000


def url_of(folder: Path, name: str = "memory.db") -> str:
    return f"sqlite:///{folder / name}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Wellkept]:
    with Wellkept(settings=Settings(url=url_of(tmp_path))) as opened:
        atlas = opened.agent("atlas", tenant="acme")
        atlas.remember("Prefers tabs over spaces", tags=["style"])
        atlas.details.store(LONG, description="A log")
        opened.agent("other").remember("Ships on Fridays")
        yield opened


def everything(store: Wellkept) -> list[object]:
    tenants = sorted(store.list_tenants())
    return [
        (tenant, agent.id, [(each.id, each.text, each.tags) for each in memory.list()], texts(memory))
        for tenant in tenants
        for agent in store.tenant(tenant).agents.list()
        for memory in [store.agent(agent.id, tenant=tenant)]
    ]


def texts(memory: AgentMemory) -> list[str]:
    return [memory.details.read(each.key, limit=10**6).content for each in memory.details.list()]


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
        assert copy.tenant("acme").audit.verify().is_intact
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
                key = memory.details.store(f"{name} {number}\n" * 50).key
                if number % 3 == 0:
                    memory.details.delete(key)
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
    connection = apsw.Connection(str(tmp_path / "memory.db"))
    connection.execute("DELETE FROM detail_chunks")
    connection.close()

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


ODD: tuple[object, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x",
    "2026-13-01",
    "2026-01-01T00:00:00",
    [],
    ["database.db"],
    {},
    {"bytes": 1},
    10**30,
)
"""Values of every type, none of which a manifest has."""


def read_tar(path: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    with zstd.ZstdFile(path) as file, tarfile.open(fileobj=file, mode="r|") as archive:
        return [(member, archive.extractfile(member).read()) for member in archive]  # type: ignore[union-attr]


def write_tar(
    path: Path, members: Sequence[tuple[tarfile.TarInfo, bytes]], manifest: object, behind: bytes = b""
) -> None:
    """Write a backup with another manifest: a value, or what is there instead of JSON."""
    encoded = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    with zstd.ZstdFile(path, "wb") as file:
        with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for member, content in members[:-1]:
                archive.addfile(member, io.BytesIO(content))
            last = tarfile.TarInfo("manifest.json")
            last.size = len(encoded)
            archive.addfile(last, io.BytesIO(encoded))
        file.write(behind)


def list_manifests(manifest: dict[str, Any]) -> Iterator[object]:
    """Yield every manifest with one value missing or odd, at any depth, and some that are no object."""
    yield from ODD
    yield from (b"", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 100_000)
    for name in manifest:
        yield {each: value for each, value in manifest.items() if each != name}
        yield from (manifest | {name: odd} for odd in ODD)
    members = manifest["members"]
    for name in members:
        yield manifest | {"members": {each: value for each, value in members.items() if each != name}}
        for field in members[name]:
            rest = {each: value for each, value in members[name].items() if each != field}
            yield manifest | {"members": members | {name: rest}}
            yield from (manifest | {"members": members | {name: members[name] | {field: odd}}} for odd in ODD)
        yield from (manifest | {"members": members | {name: odd}} for odd in ODD)
        yield manifest | {"members": members | {name: members[name] | {"more": 1}}}
    yield manifest | {"members": members | {"contents/x": {"bytes": 1, "sha256": "0" * 64}}}


def test_any_other_manifest_is_refused_in_a_sentence(store: Wellkept, tmp_path: Path) -> None:
    path = tmp_path / "monday.tar.zst"
    store.backup(path)
    members = read_tar(path)
    manifest = json.loads(members[-1][1])
    variants = list(list_manifests(manifest))
    assert len(variants) > 100

    for variant in variants:
        write_tar(path, members, variant)
        with pytest.raises(Invalid):
            Wellkept.verify_backup(path)
    for variant in variants[::40]:
        write_tar(path, members, variant)
        with pytest.raises(Invalid):
            Wellkept.restore(path, to=url_of(tmp_path, "new/copy.db"))
        assert list((tmp_path / "new").glob("*")) == []
    write_tar(path, members, manifest)
    assert Wellkept.verify_backup(path).texts == 1


def test_what_stands_behind_a_backup_is_refused(store: Wellkept, tmp_path: Path) -> None:
    path = tmp_path / "monday.tar.zst"
    store.backup(path)
    members, whole = read_tar(path), path.read_bytes()
    manifest = json.loads(members[-1][1])

    for behind in (b"x", b"x" * 512, b"\0" * 512 + b"x", b"\0" * 20_000 + b"x", b"{}" * 8000):
        write_tar(path, members, manifest, behind)
        with pytest.raises(Invalid):
            Wellkept.verify_backup(path)
        path.write_bytes(whole + behind)
        with pytest.raises(Invalid):
            Wellkept.restore(path, to=url_of(tmp_path, "new/copy.db"))
    path.write_bytes(whole + whole)
    with pytest.raises(Invalid):
        Wellkept.verify_backup(path)
    write_tar(path, members, manifest, b"\0" * 20_000)
    assert Wellkept.verify_backup(path).texts == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_archive_is_refused_or_whole(store: Wellkept, tmp_path: Path, seed: int) -> None:
    """Bytes of headers, contents and padding change, vanish and are doubled, inside and outside the compression."""
    path, chosen = tmp_path / "monday.tar.zst", random.Random(seed)
    made = store.backup(path)
    compressed = path.read_bytes()
    with zstd.ZstdFile(path) as file:
        plain = file.read()
    # The database is most of the bytes; what is read before its checksum is compared is in the headers.
    headers = [place for place in range(0, len(plain), 512) if plain[place + 257 : place + 262] == b"ustar"]
    for number in range(60):
        is_inside = number % 3 > 0
        content = bytearray(plain if is_inside else compressed)
        place = chosen.choice(headers) + chosen.randrange(512) if is_inside else chosen.randrange(len(content))
        size = chosen.choice((1, 1, 4, 512))
        match chosen.randrange(3):
            case 0:
                content[place : place + size] = chosen.randbytes(size)
            case 1:
                del content[place : place + size]
            case _:
                content[place:place] = content[place : place + size]
        path.write_bytes(zstd.compress(bytes(content)) if is_inside else bytes(content))
        with suppress(Invalid):
            assert Wellkept.verify_backup(path) == made
