"""The README: its map is the tree, and the first example a visitor tries works as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.house.source import PACKAGE
from tests.waiting import PATIENT

README = Path(__file__).parents[2] / "README.md"
UNMAPPED = {"__init__.py", "__main__.py", "__pycache__/", "py.typed"}


def test_the_map_is_the_tree() -> None:
    _, _, behind = README.read_text("utf-8").partition("src/recollect/\n")
    mapped = re.findall(r"(?<!\S)[a-z_]+(?:/|\.py)(?!\S)", behind.partition("```")[0])
    tree = {each.name + "/" * each.is_dir() for each in PACKAGE.iterdir()}

    assert sorted(mapped) == sorted(tree - UNMAPPED)


def test_the_first_example_runs_and_finds_what_it_stored(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}

    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env=environment | PATIENT | dict.fromkeys(("XDG_DATA_HOME", "LOCALAPPDATA", "HOME"), str(tmp_path)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
        check=True,
    )

    first, *_ = done.stdout.splitlines()
    assert first.startswith("Prefers tabs over spaces 0.")
