"""Several processes at once: those that know the lock, and those that do not."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.conformance.examples import ids, texts
from tests.notes_file.workers import (
    ANN,
    add,
    add_and_delete,
    append_without_lock,
    file_in,
    line,
    lock_in,
    put,
)
from tests.processes import CLEAN
from tests.waiting import eventually
from wellkept.errors import NotFound, StoreBusy, StoreError
from wellkept.store.notes.disk import Disk
from wellkept.store.notes.file import MAX_REPLACED, NotesFile


def append(workspace: Path, *lines: str) -> None:
    with file_in(workspace).open("a") as file:
        file.write("".join(each + "\n" for each in lines))


def test_four_processes_lose_nothing_and_give_no_id_twice(notes: NotesFile, workspace: Path) -> None:
    with ProcessPoolExecutor(4, CLEAN) as processes:
        results = list(processes.map(add_and_delete, [str(workspace)] * 4, range(4), [100] * 4))

    given = [id for ids, _ in results for id in ids]
    left = [id for _, ids in results for id in ids]
    assert len(given) == len(set(given)) == 400
    assert sorted(ids(notes.all())) == sorted(left)
    assert notes.damaged() == ()
    assert notes.last_seq() == 400


def test_a_program_without_the_lock_loses_no_line_while_we_write(notes: NotesFile, workspace: Path) -> None:
    add(notes, "first")
    foreign = range(10**6, 10**6 - 2000, -1)  # downwards: ids it chooses without the lock could be ours as well
    written = CLEAN.Value("i", 0)
    program = CLEAN.Process(target=append_without_lock, args=(str(file_in(workspace)), list(foreign), written))
    program.start()
    eventually(lambda: written.value or not program.is_alive())
    mine: list[str] = []

    def has_moved(before: int) -> bool:
        return written.value > before or not program.is_alive()

    while program.is_alive():
        for _ in range(MAX_REPLACED // 2):  # with two rewrites each: no more are promised while it writes one line
            mine += ids(add(notes, "mine"))
            mine += ids(add(notes, "mine", "too"))
            notes.delete_memory(mine.pop(0))
        eventually(partial(has_moved, written.value))
    program.join()
    notes.close()

    assert program.exitcode == 0
    assert mine
    assert set(ids(notes.all())) >= {f"m-{seq}" for seq in foreign}
    assert set(ids(notes.all())) >= set(mine)
    assert notes.damaged() == ()


# --- what others do in between, one step at a time


class Meddling(Disk):
    """A disk on which something else happens just before one of our calls."""

    def __init__(self, before: str, deed: Callable[[], None], *, times: int = 1) -> None:
        self._before, self._deed, self._times = before, deed, times

    def _meddle(self, call: str) -> None:
        if call == self._before and self._times > 0:
            self._times -= 1
            self._deed()

    def write(self, fd: int, content: bytes) -> int:
        self._meddle("write")
        return super().write(fd, content)

    def sync(self, fd: int) -> None:
        self._meddle("sync")
        super().sync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self._meddle("rename")
        super().rename(old, new)


@pytest.mark.parametrize("times", [1, 3, 1000])
def test_lines_appended_while_a_rewrite_is_prepared_are_in_it(workspace: Path, times: int) -> None:
    """However often: a program that never pauses does not stop us."""
    put(workspace, line(1) + "\n" + line(2) + "\n")
    numbers = iter(range(10, 2000))
    notes = NotesFile(
        workspace, ANN, disk=Meddling("sync", lambda: append(workspace, line(next(numbers))), times=times)
    )

    notes.delete_memory("m-1")

    foreign = next(numbers) - 10
    assert foreign >= min(times, 5)
    assert sorted(ids(notes.all())) == sorted(["m-2", *(f"m-{10 + number}" for number in range(foreign))])


def test_lines_appended_just_before_the_rename_are_carried_over(workspace: Path) -> None:
    put(workspace, line(1) + "\n" + line(2) + "\n")
    notes = NotesFile(workspace, ANN, disk=Meddling("rename", lambda: append(workspace, line(7, "late"))))

    notes.delete_memory("m-1")

    assert ids(NotesFile(workspace, ANN).all()) == ["m-7", "m-2"]


@pytest.mark.parametrize("finish", ["read", "write", "close"])
def test_a_line_written_to_a_file_opened_before_the_rename_is_carried_over(workspace: Path, finish: str) -> None:
    put(workspace, line(1) + "\n" + line(2) + "\n")
    notes = NotesFile(workspace, ANN)
    late = line(7, "late")
    with file_in(workspace).open("a") as file:
        file.write(late[:9])
        file.flush()
        notes.delete_memory("m-1")
        file.write(late[9:] + "\n" + line(80)[: None if finish == "close" else 5])

    {"read": notes.all, "write": lambda: add(notes, "mine"), "close": notes.close}[finish]()

    after = NotesFile(workspace, ANN)
    assert {"m-2", "m-7"} <= set(ids(after.all()))
    assert ("m-80" in ids(after.all())) == (finish == "close")
    assert [each.line for each in after.damaged()] == [2]  # the half that the rewrite saw


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_does_not_carry_over_what_its_parent_will(workspace: Path) -> None:
    put(workspace, line(1) + "\n" + line(2) + "\n")
    notes = NotesFile(workspace, ANN)
    with file_in(workspace).open("a") as file:
        notes.delete_memory("m-1")
        file.write(line(7, "late") + "\n")
    child = os.fork()
    if child == 0:
        os._exit(len(notes.all()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

    assert ids(notes.all()) == ["m-7", "m-2"]
    assert notes.damaged() == ()


def test_half_a_line_that_comes_just_before_ours_does_not_swallow_it(workspace: Path) -> None:
    put(workspace, line(1) + "\n")

    def half() -> None:
        with file_in(workspace).open("a") as file:
            file.write('{"id":"m-9","te')

    notes = NotesFile(workspace, ANN, disk=Meddling("write", half))

    (added,) = add(notes, "mine")

    assert ids(notes.all()) == [added.id, "m-1"]
    assert file_in(workspace).read_text().count("mine") == 1


@pytest.mark.parametrize("is_copied", [False, True])
def test_a_note_survives_a_program_that_replaces_the_file_meanwhile(workspace: Path, is_copied: bool) -> None:
    file = put(workspace, line(1) + "\n")

    def save_like_an_editor() -> None:
        new = file.with_suffix(".new")
        new.write_text((file.read_text() if is_copied else "") + line(5, "edited") + "\n")
        new.rename(file)

    notes = NotesFile(workspace, ANN, disk=Meddling("sync", save_like_an_editor))

    (added,) = add(notes, "mine")

    assert {added.id, "m-5"} <= set(ids(notes.all()))
    assert notes.damaged() == ()


def test_a_program_that_edits_the_file_is_believed(notes: NotesFile, workspace: Path) -> None:
    add(notes, "a", "b", "c")
    assert len(notes.all()) == 3

    put(workspace, line(2, "edited") + "\n")
    assert texts(notes.all()) == ["edited"]
    with pytest.raises(NotFound):
        notes.delete_memory("m-1")

    file_in(workspace).unlink()
    assert notes.all() == []
    assert add(notes, "d")[0].id == "m-4"


def test_a_change_of_the_same_size_is_seen(notes: NotesFile, workspace: Path) -> None:
    put(workspace, line(1, "tea") + "\n")
    assert texts(notes.all()) == ["tea"]
    times = file_in(workspace).stat()

    put(workspace, line(1, "ale") + "\n")
    os.utime(file_in(workspace), ns=(times.st_atime_ns, times.st_mtime_ns))

    assert texts(notes.all()) == ["ale"]


# --- the lock


def test_who_takes_the_lock_keeps_us_waiting_but_not_for_ever(workspace: Path) -> None:
    notes = NotesFile(workspace, ANN, busy_timeout=0.1)
    add(notes, "a")
    with lock_in(workspace).open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreBusy, match="try again"):
            add(notes, "b")
        assert len(notes.all()) == 1  # reading waits for nobody
        patient = threading.Thread(target=add, args=(NotesFile(workspace, ANN), "c"))
        patient.start()
        patient.join(0.2)
        assert patient.is_alive()
    patient.join()

    assert texts(notes.all()) == ["c", "a"]
    assert texts(add(NotesFile(workspace, ANN, busy_timeout=100), "d")) == ["d"]  # the one who gave up holds nothing


def test_a_lock_file_that_is_replaced_while_we_wait_is_not_trusted(notes: NotesFile, workspace: Path) -> None:
    add(notes, "a")
    with lock_in(workspace).open("r+b") as old:
        fcntl.flock(old, fcntl.LOCK_EX)
        waiting = threading.Thread(target=add, args=(notes, "b"))
        waiting.start()
        waiting.join(0.1)
        lock_in(workspace).unlink()
        with lock_in(workspace).open("w+b") as new:
            fcntl.flock(new, fcntl.LOCK_EX)
            fcntl.flock(old, fcntl.LOCK_UN)
            waiting.join(0.2)
            assert waiting.is_alive()
    waiting.join()
    assert texts(notes.all()) == ["b", "a"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_lock_is_let_go_though_a_forked_process_has_the_descriptor(workspace: Path) -> None:
    children: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os.read(stay, 1)
            os._exit(0)
        children.append(child)

    stay, go = os.pipe()
    notes = NotesFile(workspace, ANN, disk=Meddling("sync", fork), busy_timeout=1)
    add(notes, "a")
    add(notes, "b")
    os.write(go, b".")
    os.waitpid(children[0], 0)


# --- links and rights


def test_links_inside_a_workspace_are_refused(tmp_path: Path) -> None:
    target = tmp_path / "private"
    for name in (".aegis", ".aegis/memory", ".aegis/memory/memories.jsonl", ".aegis/memory/memories.lock"):
        workspace = tmp_path / name.replace("/", "-")
        link = workspace / name
        link.parent.mkdir(parents=True)
        is_file = link.suffix != ""
        target.unlink() if target.is_file() else None
        target.rmdir() if target.is_dir() else None
        target.write_text("secret\n") if is_file else target.mkdir()
        link.symlink_to(target)
        notes = NotesFile(workspace, ANN)

        with pytest.raises(StoreError, match="links inside a workspace are not followed"):
            add(notes, "a", "b")
        if link.suffix != ".lock":
            with pytest.raises(StoreError, match="links inside a workspace are not followed"):
                notes.all()
        assert target.read_text() == "secret\n" if is_file else list(target.iterdir()) == []


def test_a_workspace_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    notes = NotesFile(tmp_path / "link", ANN)

    add(notes, "a", "b")

    assert ids(NotesFile(tmp_path / "real", ANN).all()) == ["m-2", "m-1"]


def test_files_and_folders_are_made_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        add(NotesFile(tmp_path, ANN), "a", "b")
    finally:
        os.umask(before)

    made = list(tmp_path.rglob("*"))
    assert {path.name for path in made} == {".aegis", "memory", "memories.jsonl", "memories.lock"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o600}


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_rewrite_keeps_the_rights(notes: NotesFile, workspace: Path, mode: int) -> None:
    add(notes, "a", "b")
    file_in(workspace).chmod(mode)

    notes.delete_memory("m-1")

    assert stat.S_IMODE(file_in(workspace).stat().st_mode) == mode


def test_nothing_else_is_left_in_the_folder(notes: NotesFile, workspace: Path) -> None:
    add(notes, "a", "b")
    notes.delete_memory("m-1")
    file_in(workspace).with_name("memories.jsonl.tmp").write_text("left by a process that was killed")
    add(notes, "c")

    assert {path.name for path in file_in(workspace).parent.iterdir()} == {"memories.jsonl", "memories.lock"}
