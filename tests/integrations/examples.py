"""Runs the Python of a page of docs/integrations, as a reader who pastes it into an empty folder does."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENT

PAGES = Path(__file__).parents[2] / "docs" / "integrations"
MAX_SECONDS = 30  # of processor time


def run_example(name: str, folder: Path) -> str:
    """Run all Python blocks of docs/integrations/<name>.md as one program; return what it prints."""
    blocks = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{name}.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks, f"docs/integrations/{name}.md has no example"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RECOLLECT_")}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=folder,
        env=environment | PATIENT | dict.fromkeys(("XDG_DATA_HOME", "LOCALAPPDATA", "HOME"), str(folder)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=250,
        preexec_fn=_limit_processor_time,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _limit_processor_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))


def read_expected(name: str) -> str:
    """Return what a page says its example prints: its blocks marked `text`."""
    page = (PAGES / f"{name}.md").read_text("utf-8")
    return "".join(re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
