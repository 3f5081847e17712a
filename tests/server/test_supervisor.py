"""The supervisor of worker processes that crash, hang and do not want to end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.server.live import wait_until
from wellkept.errors import StoreError
from wellkept.server import supervisor
from wellkept.server.supervisor import Supervisor, send_beats

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has one process")


def work(folder: Path, beats: Connection) -> None:
    """Behave as the files in the folder say, and leave one that says this worker was started."""
    (folder / f"started-{time.monotonic_ns()}-{os.getpid()}").touch()
    if (folder / "crash").exists():
        sys.exit(1)
    if (folder / "deaf").exists():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    send_beats(beats, lambda: not (folder / "slow").exists())
    signal.pause()


def started(folder: Path) -> list[int]:
    """The ids of all workers ever started, in that order."""
    return [int(file.name.rpartition("-")[2]) for file in sorted(folder.glob("started-*"))]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def supervised(folder: Path, *, count: int = 2) -> Iterator[Supervisor]:
    """A supervisor in a thread, which gets its signals as calls, since only a main thread gets true ones."""
    one = Supervisor(partial(work, folder), count)
    thread = threading.Thread(target=one.serve)
    thread.start()
    try:
        yield one
    finally:
        one.note_signal(signal.SIGTERM, None)
        thread.join()
    assert not any(map(is_alive, started(folder)))


def test_a_worker_that_was_killed_is_replaced_at_once(tmp_path: Path) -> None:
    with supervised(tmp_path):
        wait_until(lambda: len(started(tmp_path)) == 2)
        os.kill(started(tmp_path)[0], signal.SIGKILL)
        wait_until(lambda: len(started(tmp_path)) == 3)


def test_workers_that_crash_are_started_later_and_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []
    monkeypatch.setattr(supervisor.log, "warning", lambda text, code, delay: delays.append(delay))
    with supervised(tmp_path, count=1) as one:
        wait_until(lambda: one.was_ready)
        (tmp_path / "crash").touch()
        os.kill(started(tmp_path)[0], signal.SIGKILL)
        wait_until(lambda: len(delays) == 4)
        assert delays == [0, 1, 2, 4]
        (tmp_path / "crash").unlink()


def test_the_server_gives_up_if_no_worker_ever_starts(tmp_path: Path) -> None:
    (tmp_path / "crash").touch()

    with pytest.raises(StoreError, match="end when they start"):
        Supervisor(partial(work, tmp_path), 2).serve()

    assert len(started(tmp_path)) <= 4


def test_a_worker_that_hangs_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "HANG_SECONDS", 3.0)
    with supervised(tmp_path, count=1) as one:
        wait_until(lambda: one.was_ready)
        stopped = started(tmp_path)[0]
        os.kill(stopped, signal.SIGSTOP)
        wait_until(lambda: not is_alive(stopped) and len(started(tmp_path)) >= 2)


def test_a_worker_that_hangs_when_it_starts_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow").touch()
    with supervised(tmp_path, count=1) as one:
        wait_until(lambda: len(started(tmp_path)) == 1)
        monkeypatch.setattr(supervisor, "START_SECONDS", 0.0)
        wait_until(lambda: not is_alive(started(tmp_path)[0]))
        monkeypatch.undo()
        (tmp_path / "slow").unlink()
        wait_until(lambda: one.was_ready)


def test_a_reload_keeps_the_old_workers_if_a_new_one_does_not_start(tmp_path: Path) -> None:
    with supervised(tmp_path) as one:
        wait_until(lambda: one.was_ready and len(started(tmp_path)) == 2)
        old = started(tmp_path)
        (tmp_path / "crash").touch()
        one.note_signal(signal.SIGHUP, None)
        wait_until(lambda: len(started(tmp_path)) == 3 and not is_alive(started(tmp_path)[2]))
        assert all(map(is_alive, old))
        (tmp_path / "crash").unlink()
        one.note_signal(signal.SIGHUP, None)
        wait_until(lambda: not any(map(is_alive, old)))
        assert len(started(tmp_path)) == 5


def test_workers_that_do_not_end_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deaf").touch()
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.5)
    with supervised(tmp_path) as one:
        wait_until(lambda: one.was_ready)
