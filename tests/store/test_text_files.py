"""Texts that version 0.2 kept in files beside the database are moved into rows when the store is opened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.conformance.examples import LATER, add_detail, detail
from tests.conformance.test_details import LONG, whole
from tests.faults.test_details import ROOT, opened
from tests.services.conftest import Clock
from tests.text_files import put_into_files
from wellkept import Wellkept
from wellkept.errors import StoreError
from wellkept.model import Owner

pytestmark = pytest.mark.proves("D4", "T2")
ANN = Owner("acme", "ann")
NOISE = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789\n", k=3_000_000))
"""A text of many chunks that take several transactions to move."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def fill(path: Path, **texts: str) -> list[Path]:
    store = opened(path)
    for key, text in texts.items():
        add_detail(store, detail(key, ANN), text)
    store.close()
    return put_into_files(path)


def count_frames(path: Path) -> int:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(100_000)
    rows: Any = connection.execute("SELECT count(*) FROM detail_chunks").fetchall()
    connection.close()
    return int(rows[0][0])


def files(path: Path) -> list[Path]:
    return sorted(Path(f"{path}.blobs").rglob("*"))


def test_texts_are_moved_into_rows_when_the_store_is_opened(path: Path) -> None:
    fill(path, log=LONG, short="short")
    store = opened(path)
    try:
        assert count_frames(path) == 4
        assert not Path(f"{path}.blobs").exists()
        assert whole(store.open_content(ANN, "log")) == LONG
        assert whole(store.open_content(ANN, "short")) == "short"
        # What was moved belongs to a detail, so it stays.
        assert store.sweep_contents(ANN.tenant, stored_before=LATER) == 0
    finally:
        store.close()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.faults.test_details import opened
from wellkept.store.tables import details

frames_left = int(sys.argv[2])
frame = details.TextFile.frame

def frame_or_die(file, position):
    global frames_left
    frames_left -= 1
    if frames_left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame(file, position)

details.TextFile.frame, details.STEP_BYTES = frame_or_die, 200_000
opened(Path(sys.argv[1])).close()
"""
"""Moves texts, three chunks in one transaction, and dies when it reads the chunk after so many."""


def test_a_kill_during_the_move_loses_nothing(path: Path) -> None:
    fill(path, noise=NOISE, log=LONG)
    seen = [0]
    for frames in (2, 4, 6, 10, 99):
        child = subprocess.run([sys.executable, "-c", KILLED, str(path), str(frames)], cwd=ROOT, check=False)
        assert child.returncode == (0 if frames == 99 else -signal.SIGKILL)
        seen.append(count_frames(path))
    store = opened(path)
    assert whole(store.open_content(ANN, "noise")) == NOISE
    assert whole(store.open_content(ANN, "log")) == LONG
    assert files(path) == []
    store.close()

    assert seen == [0, 0, 3, 9, 18, 26]


def test_an_erasure_removes_every_file_of_its_tenant(path: Path, tmp_path: Path) -> None:
    with Wellkept(f"sqlite:///{path}", clock=Clock()) as store:
        for tenant in ("acme", "globex"):
            store.agent("ann", tenant=tenant).details.store(f"the secret of {tenant} " * 9999, description="log")
    put_into_files(path)
    owns = sorted(Path(f"{path}.blobs").glob("*-????????????????"))
    for own in owns:
        (own / f"{'0' * 64}.zst").write_bytes(b"never known")
        (own / f"{'0' * 32}.tmp").write_bytes(b"of a killed writer")
    with Wellkept(f"sqlite:///{path}", clock=Clock()) as store:
        store.tenant("acme").data.erase("agent:ann")

        assert [own.exists() for own in owns] == [False, True]
        other = store.agent("ann", tenant="globex")
        assert other.details.read(other.details.list()[0].key, limit=22).content == "the secret of globex t"


def test_files_that_were_never_known_and_those_of_others_stay(path: Path) -> None:
    (file,) = fill(path, log=LONG)
    unknown, foreign = file.with_name(f"{'0' * 64}.zst"), file.with_name("read.me")
    for each in (unknown, foreign):
        each.write_bytes(b"not ours")
        os.utime(each, (0, 0))
    store = opened(path)
    store.sweep_contents(ANN.tenant, stored_before=LATER + timedelta(days=99))
    store.close()

    assert {each.name for each in files(path) if each.is_file()} == {unknown.name, foreign.name, "store-id"}


def flip(position: int) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[position] ^= 0xFF
        path.write_bytes(content)

    return spoil


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("spoil", [flip(0), flip(40), flip(-1), flip(-30), flip(-70), cut, empty, replaced_by_a_folder])
def test_a_damaged_file_is_an_error_of_its_key_only(path: Path, spoil: Callable[[Path], None]) -> None:
    spoilt, _ = sorted(fill(path, spoilt=LONG, sound="sound"), key=lambda each: -each.stat().st_size)
    spoil(spoilt)
    store = opened(path)

    with pytest.raises(StoreError, match=r"is damaged in the store\. Other details are whole; store this one again"):
        whole(store.open_content(ANN, "spoilt"))
    assert whole(store.open_content(ANN, "sound")) == "sound"
    store.close()


def test_a_backup_takes_the_files_into_the_database(path: Path, tmp_path: Path) -> None:
    with Wellkept(f"sqlite:///{path}", clock=Clock()) as store:
        key = store.agent("ann").details.store(LONG, description="log").key
        lost = store.agent("ann").details.store("lost", description="lost").key
        content_hash = store.agent("ann").details.get(lost).content_hash
    next(each for each in put_into_files(path) if each.stem == content_hash).unlink()
    with Wellkept(f"sqlite:///{path}", clock=Clock()) as store:
        made = store.backup(tmp_path / "monday.tar.zst")

        assert made.texts == 1
        assert made.problems == (
            "1 texts of details are missing from the store, and so from this backup; `wellkept doctor` names them.",
        )
    Wellkept.restore(tmp_path / "monday.tar.zst", to=f"sqlite:///{tmp_path}/copy.db")
    with Wellkept(f"sqlite:///{tmp_path}/copy.db", clock=Clock()) as copy:
        assert copy.agent("ann").details.read(key, limit=10**6).content == LONG
    assert not Path(f"{tmp_path}/copy.db.blobs").exists()


def test_an_export_holds_texts_of_files(path: Path, tmp_path: Path) -> None:
    with Wellkept(f"sqlite:///{path}", clock=Clock()) as store:
        key = store.agent("ann").details.store(LONG, description="log").key
    put_into_files(path)
    with Wellkept(f"sqlite:///{path}", clock=Clock()) as store:
        store.tenant().data.export(tmp_path / "all.jsonl")
    with Wellkept(":memory:") as other:
        other.tenant().data.import_(tmp_path / "all.jsonl")
        assert other.agent("ann").details.read(key, limit=10**6).content == LONG
