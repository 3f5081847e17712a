"""Runs the Python of a page, as a reader who pastes it into an empty folder does."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.waiting import PATIENT

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MAX_SECONDS = 60  # of processor time


def read_blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def run_page(page: Path, folder: Path, **environment: str) -> str:
    """Run all Python blocks of a page as one program; return what it prints."""
    blocks = read_blocks(page, "python")
    assert blocks, f"{page.relative_to(ROOT)} has no example"
    return run_python(["-c", "\n".join(blocks)], folder, environment)


def run_python(arguments: list[str], folder: Path, environment: Mapping[str, str], *, typed: str = "") -> str:
    """Run Python in a folder, with its own home and without our settings; return what it prints."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("WELLKEPT_", "OPENAI_"))}
    homes = dict.fromkeys(("XDG_DATA_HOME", "LOCALAPPDATA", "HOME"), str(folder))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        input=typed,
        env=inherited | PATIENT | homes | dict(environment),
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
