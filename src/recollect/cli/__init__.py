"""The command line. `main` is the program; each group of commands is a module."""

from __future__ import annotations

import io
import sys

from recollect.cli.app import app, is_interactive

__all__ = ["main"]

PROGRAM = "recollect"


def main() -> None:
    """Run the command the arguments name, and exit: 0 done, 1 refused, 2 wrong usage, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a character the terminal does not know is no reason to fail
    app.rich_markup_mode = "rich" if is_interactive() else None  # help and usage errors: panels, or plain lines
    app(prog_name=PROGRAM)
