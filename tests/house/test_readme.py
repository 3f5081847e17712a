"""The first example a visitor tries works as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENT

README = Path(__file__).parents[2] / "README.md"


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
