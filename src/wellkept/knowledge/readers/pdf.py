"""PDF reader: a child process extracts the text of the pages, with bookmarks as headings.

A few bytes of PDF can unpack to gigabytes or be drawn without end, so the process has limits on memory and time. It is
started as a program: forking a server with threads is not safe.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wellkept.deadline import check_deadline
from wellkept.errors import Invalid
from wellkept.knowledge.rules_chunking import DocumentPart, PartKind, Reading

MAX_SECONDS = 60
MAX_MEMORY = 600_000_000
"""Bytes of the process, with 40 MB for Python. Systems that cannot limit memory have only the time."""

PROGRAM = Path(__file__).with_name("pdf_child.py")
DEADLINE_CHECK_SECONDS = 0.1


def read_pdf(content: bytes) -> Reading:
    """Parse a document. Raises: Invalid, Cancelled, TimedOut, ModuleNotFoundError."""
    if find_spec("pypdf") is None:
        raise ModuleNotFoundError(name="pypdf")
    answer = _run_child(content)
    if "refused" in answer:
        raise Invalid(answer["refused"])
    if "exceeded" in answer:
        raise Invalid(f"takes more than {answer['exceeded']} to read; split it, or print it to a new PDF.")
    parts = [
        DocumentPart(
            kind=PartKind.HEADING if level else PartKind.PARAGRAPH, text=text, level=level, place="page", number=page
        )
        for level, text, page in answer["parts"]
    ]
    return Reading(title=answer["title"], parts=parts)


def _run_child(content: bytes) -> dict[str, Any]:
    """Return what the child answers; it is gone when this returns or raises. Raises: Cancelled, TimedOut."""
    until = time.monotonic() + MAX_SECONDS
    # -P: the folder of the program is no place for modules.
    command = [sys.executable, "-P", str(PROGRAM), str(MAX_MEMORY), str(MAX_SECONDS), *filter(None, sys.path)]
    # The library warns of every flaw it tolerates, on the standard error.
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing) as process:
        try:
            sent: bytes | None = content
            while time.monotonic() < until:
                check_deadline()
                try:
                    answer, _ = process.communicate(sent, timeout=DEADLINE_CHECK_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    sent = None
            else:
                return {"exceeded": f"{MAX_SECONDS} seconds"}
        finally:
            process.kill()
    if answer:
        found: dict[str, Any] = json.loads(answer)
        return found
    # The system ends a process that has used its seconds, or fails to get memory, with a signal.
    if process.returncode < 0:
        return {"exceeded": "the allowed time or memory"}
    return {"refused": "is broken: it cannot be read as PDF. Open it in a viewer and save it again."}
