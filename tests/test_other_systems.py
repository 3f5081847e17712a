"""Modules that only POSIX systems have are imported where they are used, not when ours are."""

from __future__ import annotations

import re
from pathlib import Path

from tests.documentation import run_python


def test_everything_is_imported_and_memory_works_without_the_modules_of_posix(tmp_path: Path) -> None:
    printed = run_python([str(Path(__file__).with_name("other_systems.py"))], tmp_path, {})

    assert re.fullmatch(r"[2-9]\d\d Prefers trains to flights\n", printed)
