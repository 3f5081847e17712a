"""The command line. `main` is the program; each module of `commands` is a group of commands."""

from __future__ import annotations

import atexit
import gc
import io
import sys

from wellkept.cli.app import program

__all__ = ["main"]

PROGRAM = "wellkept"
YOUNG_OBJECTS = 10_000
"""New objects after which Python looks for garbage, instead of 700."""


def main() -> None:
    """Run the command the arguments name, and exit: 0 done, 1 refused, 2 wrong usage, 130 interrupted."""
    # Nearly all that a command makes lives until it ends. Looking for garbage among it, also at the end, took a fifth
    # of the time of `wellkept recall`.
    gc.set_threshold(YOUNG_OBJECTS)
    atexit.register(gc.freeze)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character the terminal cannot encode is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    program()(prog_name=PROGRAM)
