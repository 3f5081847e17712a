"""A full disk: what does not fit is refused, and nothing that was acknowledged suffers."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.examples import texts
from tests.notes_file.workers import ANN, add, file_in
from tests.processes import CLEAN
from wellkept import Settings, Wellkept
from wellkept.errors import StoreError
from wellkept.model import KindName
from wellkept.store.notes.file import NotesFile

FULL = r"The disk is full; free some space and try again\."


def refuses_the_line_that_does_not_fit(workspace: str, room: int) -> None:
    """In a process whose files may grow by `room` bytes only: the line is cut there, without any exception."""
    notes = NotesFile(Path(workspace), ANN)
    before = file_in(Path(workspace)).read_bytes()
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, resource.RLIM_INFINITY))
    for attempt in (lambda: add(notes, "x" * 400), lambda: add(notes, "y" * 400, "z" * 400)):
        with pytest.raises(StoreError, match=FULL):
            attempt()
        assert file_in(Path(workspace)).read_bytes() == before
    assert notes.damaged() == ()


@pytest.mark.parametrize("room", [0, 1, 60, 200])
def test_a_line_that_does_not_fit_is_taken_back(notes: NotesFile, workspace: Path, room: int) -> None:
    add(notes, "kept")
    child = CLEAN.Process(target=refuses_the_line_that_does_not_fit, args=(str(workspace), room))
    child.start()
    child.join()

    assert child.exitcode == 0
    assert texts(notes.all()) == ["kept"]
    assert int(add(notes, "next")[0].id[2:]) > 1


def correct_on_a_full_disk(workspace: str, kind: KindName, texts: list[str], message: str) -> None:
    """In a process whose files may have 300 bytes: the file with the correction does not fit."""
    settings = Settings(workspace=Path(workspace), embedder="off")
    with Wellkept(":memory:", settings=settings) as wellkept:
        atlas = wellkept.agent("atlas")
        atlas.remember_many(texts)
        before = file_in(Path(workspace)).read_bytes()
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
        with pytest.raises(StoreError, match=message):
            atlas.remember("Deploys to Frankfurt" + " and Dublin" * 20, kind=kind, supersedes="m-1")
        assert file_in(Path(workspace)).read_bytes() == before
        assert {*texts} <= {memory.text for memory in atlas.list()}


STILL_THERE = rf"^The correction is stored, but the notes file still has m-1\. .* {FULL} Then delete m-1\.$"


@pytest.mark.parametrize(
    ("kind", "texts", "message"),
    [
        # The file fits without the old note, but not with the new one.
        ("note", ["Deploys to Virginia", "Likes tea"], FULL),
        # The database takes the correction, and the file does not fit even without the old note.
        ("core", ["Deploys to Virginia", "x" * 300], STILL_THERE),
    ],
    ids=["note", "core"],
)
def test_correction_that_does_not_fit_leaves_the_old_note(
    workspace: Path, kind: str, texts: list[str], message: str
) -> None:
    child = CLEAN.Process(target=correct_on_a_full_disk, args=(str(workspace), kind, texts, message))
    child.start()
    child.join()

    assert child.exitcode == 0


def folders_for_a_full_disk() -> list[str]:
    """A file system of its own needs root; the limit above is there for everybody."""
    return ["tmpfs"] if os.geteuid() == 0 else []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("kind", folders_for_a_full_disk())
def test_a_disk_that_fills_up_keeps_all_that_was_acknowledged(small_disk: Path, kind: str) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"." * 8192)
    notes = NotesFile(small_disk, ANN)
    acknowledged: list[str] = []

    def fill() -> None:
        for number in range(1000):
            add(notes, text := f"{number} {'x' * 300}")
            acknowledged.append(text)

    with pytest.raises(StoreError, match=FULL):
        fill()
    assert texts(reversed(notes.all())) == acknowledged
    assert notes.damaged() == ()
    assert file_in(small_disk).read_bytes().endswith(b"\n")

    with pytest.raises(StoreError, match=FULL):
        notes.delete_memory("m-1")
    assert texts(reversed(notes.all())) == acknowledged
    assert {path.name for path in file_in(small_disk).parent.iterdir()} == {"memories.jsonl", "memories.lock"}

    ballast.unlink()
    (added,) = add(notes, "room again")
    assert texts(reversed(notes.all())) == [*acknowledged, "room again"]
    assert int(added.id[2:]) > len(acknowledged)
