"""The command line. `main` is the program; each module of `commands` is a group of commands."""

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
            # A character the terminal cannot encode is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    # A shell that asks for completions passes no arguments.
    command = sys.argv[1] if len(sys.argv) > 1 else None
    program(command)(prog_name=PROGRAM)
