"""A real file system on a real block device that loses power: what ext4 has written of it by then is all there is.

The device is a file; the machine goes dark when that file is copied while the writer runs. The copy is then repaired
and mounted, as after a power cut. `test_every_crash` needs no root and asks for more than ext4 does; this one trusts
nobody's model of a disk.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.notes_file.crash_loop import Known
from tests.notes_file.crashes import HastyDisk
from tests.notes_file.workers import ANN, KEEP, add, note
from wellkept.store.notes.disk import Disk
from wellkept.store.notes.file import NotesFile

pytestmark = pytest.mark.slow

CUTS = 25
ROOT = Path(__file__).resolve().parents[2]

# Nothing is written for its own sake: not by renaming, not by the clock.
OPTIONS = "loop,noauto_da_alloc,commit=300"


def can_mount() -> bool:
    return os.geteuid() == 0 and Path("/dev/loop-control").exists()


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    at.mkdir(exist_ok=True)
    run("mount", "-o", OPTIONS, image, at)
    try:
        yield at
    finally:
        run("umount", at)


def write(workspace: Path, disk: Disk) -> None:
    """Add, make room and delete until killed, and say so."""
    notes = NotesFile(workspace, ANN, disk=disk)
    mine: list[str] = []
    while True:
        for count in (1, 1, 3, 1):
            for memory in notes.add_memories([note("x" * 100)] * count, keep=KEEP):
                say("added", memory.id, memory.text)
                mine.append(memory.id)
        while len(mine) > 8:
            say("deleting", id := mine.pop(0 if len(mine) % 2 else -1))
            notes.delete_memory(id)
            say("deleted", id)


def say(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


def cut_power(tmp_path: Path, kind: str) -> Iterator[tuple[Known, NotesFile]]:
    """What the writer had been told at each power cut, and the notes found after it."""
    image, copy = tmp_path / "disk", tmp_path / "copy"
    image.write_bytes(b"")
    os.truncate(image, 8 << 20)
    run("mkfs.ext4", "-q", image)
    with mounted(image, tmp_path / "before") as folder:
        command = [sys.executable, "-m", "tests.notes_file.test_power_cut", str(folder), kind]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert writer.stdout is not None
        known, begun = Known(), dict[str, str]()
        os.set_blocking(writer.stdout.fileno(), True)
        try:
            for _ in range(CUTS):
                report = writer.stdout.readline().decode()
                assert report, "the writer ended"
                known.take(report.split(), begun)
                writer.send_signal(signal.SIGSTOP)  # the copy takes a moment; a power cut does not
                os.waitpid(writer.pid, os.WUNTRACED)
                run("cp", "--sparse=always", image, copy)
                while buffered := _waiting(writer):
                    for line in buffered:
                        known.take(line.split(), begun)
                writer.send_signal(signal.SIGCONT)
                subprocess.run(["e2fsck", "-p", copy], capture_output=True, check=False)
                with mounted(copy, tmp_path / "after") as after:
                    yield known, NotesFile(after, ANN)
        finally:
            writer.kill()
            writer.wait()
            writer.stdout.close()


def _waiting(writer: subprocess.Popen[bytes]) -> list[str]:
    """What the writer has already said and we have not yet read: it was acknowledged before the power went."""
    assert writer.stdout is not None
    lines = []
    os.set_blocking(writer.stdout.fileno(), False)
    while line := writer.stdout.readline():
        lines.append(line.decode())
    os.set_blocking(writer.stdout.fileno(), True)
    return lines


@pytest.mark.skipif(not can_mount(), reason="only root may mount; test_every_crash runs everywhere")
def test_a_power_cut_loses_nothing_and_brings_nothing_back(tmp_path: Path) -> None:
    for known, notes in cut_power(tmp_path, "careful"):
        known.check(notes)
        assert add(notes, "after")[0].id not in known.given
    assert known.acknowledged >= CUTS // 2  # at each cut one line was heard, and each deletion is told twice
    assert known.gone


@pytest.mark.skipif(not can_mount(), reason="only root may mount; test_every_crash runs everywhere")
def test_the_power_cut_would_show_a_missing_sync(tmp_path: Path) -> None:
    def write_hastily() -> None:
        for known, notes in cut_power(tmp_path, "hasty"):
            known.check(notes)

    with pytest.raises(AssertionError, match=r"^lost"):
        write_hastily()


if __name__ == "__main__":
    write(Path(sys.argv[1]), HastyDisk() if sys.argv[2] == "hasty" else Disk())
