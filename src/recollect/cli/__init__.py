"""The command line. `main` is the program; each group of commands is a module."""

from __future__ import annotations

import io
import sys

from recollect.cli.app import program

__all__ = ["main"]

PROGRAM = "recollect"


def main() -> None:
    """Run the command the arguments name, and exit: 0 done, 1 refused, 2 wrong usage, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a character the terminal does not know is no reason to fail
    named = sys.argv[1] if len(sys.argv) > 1 else None  # none, too, when a shell asks what could be typed next
    program(named)(prog_name=PROGRAM)
