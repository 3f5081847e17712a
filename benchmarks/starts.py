"""What starting costs: the import, a command, and a server of tools until it answers; and the size of an install."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

import wellkept
from benchmarks.measure import Line

TURNS = 5
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def measured(folder: Path) -> Iterator[Line]:
    program = [sys.executable, "-m", "wellkept"]
    url = ["--url", f"sqlite:///{folder / 'starts.db'}"]
    subprocess.run([*program, "remember", "Anna likes tea", *url], check=True, capture_output=True)
    least = _least([sys.executable, "-c", ""])
    for name, command, given, most in (
        ("from wellkept import Wellkept", [sys.executable, "-c", "from wellkept import Wellkept"], "", 0.12),
        ("wellkept recall", [*program, "recall", "tea", *url], "", 0.3),
        # It ends when it has answered, because its input does.
        (
            "wellkept mcp, until it has answered initialize",
            [*program, "mcp", *url],
            json.dumps(INITIALIZE) + "\n",
            0.5,
        ),
    ):
        took = _least(command, given)
        yield Line(
            f"{name}, of the processor", f"{took:.3f} s", f"{least:.3f} s", took / least, f"<= {most} s", took <= most
        )
    size = sum(map(_installed_bytes, _needed_packages())) / 1e6
    yield Line("install without extras", f"{size:.0f} MB", "", 1, "<= 110 MB", size <= 110)


def _needed_packages() -> set[str]:
    """Return the packages that a bare install brings."""
    needed, pending = set[str](), ["wellkept"]
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            requirements = map(Requirement, distribution(name).requires or ())
            pending += [
                each.name for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})
            ]
    return needed


def _installed_bytes(package: str) -> int:
    """Return the size of a package's files with compiled modules; wellkept may be installed in place."""
    if package == "wellkept":
        files = list(Path(wellkept.__file__).parent.rglob("*.*"))
    else:
        files = [Path(str(each.locate())) for each in distribution(package).files or ()]
    return sum(file.stat().st_size for file in files if file.is_file())


def _least(command: Sequence[str], given: str = "") -> float:
    """Return the seconds of the processor that a program takes in its best run."""
    return min(_run(command, given) for _ in range(TURNS))


def _run(command: Sequence[str], given: str) -> float:
    # An install has compiled modules.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=given.encode(), check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
