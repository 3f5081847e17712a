"""The reference of commands is current, and the examples of pages show what really happens."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Program, shared_warm
from tests.documentation import DOCS, read_blocks
from tools.reference_cli import PAGE as REFERENCE
from tools.reference_cli import render_page

# Pages whose commands can be run one after the other in an empty folder.
PAGES = [
    DOCS / "cli.md",
    *(page for folder in ("tutorials", "how-to") for page in sorted((DOCS / folder).glob("*.md"))),
]
CHANGING = {  # what is different on every machine, at every time or in every version
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z": "<time>",
    r"(?m)^\d+\s+(?=<time>)": "<event> ",
    r"now: \w{3} \d{4}-\d\d-\d\d \d\d:\d\d UTC": "now: <time>",
    r"c-[0-9a-f]{22}": "<call>",
    r"folder: \S+": "folder: <folder>",
    r"disk: \S+": "disk: <size>",
    r"schema: number \d+": "schema: number <n>",
    r"\d+ events are whole": "<n> events are whole",
    r"sqlite: .*": "sqlite: <version>",
    r"version \d+\.\d+\.\d+\S*": "<version>",
    r"\d\.\d{3}\b": "<score>",
    r"\d+\.\d ms": "<ms>",
    r"\d+ bytes": "<bytes>",
    r"(\[MemoryRef: [a-z0-9-]+)-[a-z0-9]{8}\b": r"\1-<key>",
    r"wellkept-static\S+, \d+|wellkept-static\S+": "<embedder>",
    r"wellkept_mfrw2zi_[a-z2-7_]+": "<key>",
    r"(?m)^[a-z2-7]{8}\s+(?=write\b)": "<id> ",
    r"\b\d+ [0-9a-f]{64}\b": "<head>",
    r"\b[0-9a-f]{64}\b": "<hash>",
    r"[ \t]+": " ",
}


def examples(page: Path) -> list[tuple[str, str]]:
    """Each command of a page that can be run, with what it prints."""
    parts = re.split(r"^\$ (.*)\n", "".join(read_blocks(page, "console")), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def unchanging(text: str) -> str:
    for pattern, stands_for in CHANGING.items():
        text = re.sub(pattern, stands_for, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def test_the_reference_is_current() -> None:
    assert REFERENCE.read_text("utf-8") == render_page(), "Run python -m tools.reference"


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.stem)
def test_the_examples_print_what_the_page_says(program: Program, page: Path) -> None:
    environment = program.environment(PATH=f"{shared_warm().bin}:{os.environ['PATH']}")
    shown = examples(page)
    script = "".join(f"echo '== {number}'\n{line}\n" for number, (line, _) in enumerate(shown))

    done = subprocess.run(
        ["sh", "-c", f"exec 2>&1\n{script}"], cwd=program.folder, env=environment, capture_output=True, timeout=280
    )

    printed = re.split(r"^== \d+\n", done.stdout.decode(), flags=re.MULTILINE)[1:]
    for (line, expected), real in zip(shown, printed, strict=True):
        assert unchanging(real) == unchanging(expected), line


def test_examples_are_found() -> None:
    assert len(examples(DOCS / "cli.md")) > 8
