"""What is committed is true on every machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import REPOSITORY, reject

FOLDERS = ("src", "tests", "docs", "benchmarks", "tools", "deploy", ".github")
TEXTS = {".cfg", ".css", ".html", ".js", ".json", ".md", ".py", ".sql", ".toml", ".txt", ".yaml", ".yml"}

# People of examples have homes, too.
HOME = re.compile(r"(/home/|/Users/|[A-Z]:\\+Users\\+)(?!ann\b|you\b)\w+|(?<![\w/])/root/|\.\./shared\b", re.IGNORECASE)


def texts() -> Iterator[Path]:
    yield from (each for each in REPOSITORY.iterdir() if each.suffix in TEXTS or each.name == "Makefile")
    for folder in FOLDERS:
        yield from (each for each in (REPOSITORY / folder).rglob("*") if each.suffix in TEXTS and each.is_file())


def test_no_file_names_a_place_of_one_machine() -> None:
    reject(
        (
            f"{path.relative_to(REPOSITORY)}:{number} {line.strip()[:100]}"
            for path in texts()
            if path != Path(__file__)
            for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
            if HOME.search(line)
        ),
        fix="Write no path of your own machine",
    )


def test_homes_are_recognised() -> None:
    assert HOME.search("see /home/mara/wellkept")
    assert HOME.search(r"C:\Users\mara")
    assert not HOME.search("/home/ann/.local/share")


def test_tests_wait_for_something() -> None:
    """A pause is too short on a busy machine and too long on any other: see tests/waiting.py."""
    reject(
        (
            f"{path.relative_to(REPOSITORY)}:{number} {line.strip()[:100]}"
            for path in (REPOSITORY / "tests").rglob("*.py")
            if path.name != "waiting.py"
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
            if re.search(r"\bsleep\(", line) and path != Path(__file__)
        ),
        fix="Wait for what is to happen instead of sleeping",
    )
