"""docs/cli.md names every command and option, and the examples of pages show what really happens."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program, shared_warm
from tests.documentation import DOCS, read_blocks
from wellkept.cli.app import program as whole_program

PAGE = (DOCS / "cli.md").read_text("utf-8")
# Pages whose commands can be run one after the other in an empty folder.
PAGES = [
    DOCS / "cli.md",
    *(page for folder in ("tutorials", "how-to") for page in sorted((DOCS / folder).glob("*.md"))),
]
PROMISED = {
    *"serve mcp chat remember recall search forget context capture ingest explain maintain export import erase".split(),
    *"keys doctor reembed demo".split(),
}
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


def sections() -> dict[str, str]:
    """What the page says about each command."""
    parts = re.split(r"^### ([\w -]+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def examples(page: Path) -> list[tuple[str, str]]:
    """Each command of a page that can be run, with what it prints."""
    parts = re.split(r"^\$ (.*)\n", "".join(read_blocks(page, "console")), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def unchanging(text: str) -> str:
    for pattern, stands_for in CHANGING.items():
        text = re.sub(pattern, stands_for, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


EVERYWHERE = ["--url", "--tenant", "--agent", "--user", "--json"]
OWN = {"keys create": ("--agent", "--user"), "log": ("--user",), "export": ("--user",)}
"""Commands with options of their own by these names."""


def all_commands() -> dict[str, Any]:
    """Every command by its name, those of a group behind the group's."""
    found: dict[str, Any] = {}
    for name, command in whole_program().commands.items():
        inner = getattr(command, "commands", None)
        found |= {name: command} if inner is None else {f"{name} {each}": inner[each] for each in inner}
    return found


def test_every_command_and_option_is_documented() -> None:
    commands = all_commands()
    about = sections()
    assert set(about) == set(commands)
    common = PAGE.partition("## Memories")[0]
    for name, command in commands.items():
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
        common_ones = [each for each in EVERYWHERE if each not in OWN.get(name, ())]
        assert options[-len(common_ones) :] == common_ones
        assert set(EVERYWHERE) <= set(options)
        missing = [option for option in options if f"`{option}`" not in about[name] + common]
        assert not missing, (name, missing)
        documented = set(re.findall(r"^\| `(--[\w-]+)`", about[name], flags=re.MULTILINE))
        assert documented <= set(options), (name, documented - set(options))
        assert command.epilog.startswith("Example: "), name


def test_every_command_other_programs_rely_on_is_there() -> None:
    assert {name.partition(" ")[0] for name in all_commands()} >= PROMISED


def test_the_options_of_the_program_are_documented() -> None:
    for option in ("--version", "--show-completion"):
        assert option in PAGE


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
    assert len(examples(DOCS / "cli.md")) > 15
