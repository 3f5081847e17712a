"""kill -9 while writing; `python -m tests.notes_file.crash_loop` does it more often."""

from __future__ import annotations

from pathlib import Path

from tests.notes_file import crash_loop


def test_ten_kills_lose_nothing_and_bring_nothing_back(workspace: Path) -> None:
    known = crash_loop.run(workspace, 10, seed=7)

    assert known.acknowledged >= 20
