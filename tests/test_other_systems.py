"""Modules that only POSIX systems have are imported where they are used, not when ours are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.house.source import MODULES, PACKAGE

# Windows has none of these.
PROGRAM = """
import builtins
import importlib
import sys

HIDDEN = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}


original = builtins.__import__


def hide(name, globals=None, *rest):
    # Other packages have their own ways on Windows.
    if name in HIDDEN and globals and globals["__name__"].startswith("wellkept"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return original(name, globals, *rest)


builtins.__import__ = hide
for name in sys.argv[2:]:
    importlib.import_module(name)

from wellkept import Wellkept

with Wellkept(sys.argv[1]) as store:
    agent = store.agent("atlas")
    agent.remember("Prefers trains to flights")
    agent.remember("Was born in Porto")
    print(agent.recall("How would they rather travel?")[0].text)
"""


def test_everything_is_imported_and_memory_works_without_the_modules_of_posix(tmp_path: Path) -> None:
    left_out = ("integrations", "pdf_child")  # the first need frameworks, the second is a program
    parts = [module.path.relative_to(PACKAGE.parent).with_suffix("").parts for module in MODULES]
    names = [".".join(each).removesuffix(".__init__") for each in parts if not {*each} & {*left_out, "__main__"}]
    assert len(names) > 200
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"sqlite:///{tmp_path / 'm.db'}", *names],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
        check=False,
    )

    assert answer.returncode == 0, answer.stderr[-3000:]
    assert answer.stdout == "Prefers trains to flights\n"
