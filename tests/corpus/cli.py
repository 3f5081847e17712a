"""The command line part of the corpus: what each command prints in a pipe, on a terminal and as JSON, and its help.

The commands of `commands.txt` are run in their order on a store of their own. The program has a clock of its own, so
times are masked. What machines differ in is masked by `MACHINE`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tests.cli.program import ANSI, SOURCE, Program
from tests.corpus.recording import Masks, Section, in_a_row, load, replay, save
from wellkept.cli.app import program as whole_program
from wellkept.cli.parameters import ALL

COMMANDS = Path(__file__).with_name("commands.txt")
GIVEN = " <<< "
VARIABLES = {
    "WELLKEPT_EMBEDDER": "off",
    "WELLKEPT_OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENBLAS_NUM_THREADS": "1",
}
TERMINAL_VARIABLES = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
FORMS = ("plain", "json", "terminal")
FILES = {
    "tea.md": "# Tea\n\nGreen tea is steeped for two minutes.\n\n## Black\n\nBlack tea takes four minutes.\n",
    "memories.json": '[{"id": "1", "memory": "Likes cats"}]',
}
PROGRESS = re.compile("━.*( [0-9-]:[0-9-]{2}:[0-9-]{2}|/[?])$")  # a bar is drawn as often as there is time
MACHINE = {
    r"\bversion \d+\.\d+\.\d+\S*": "version <version>",
    r"\bwellkept \d+\.\d+\.\d+\S*": "wellkept <version>",
    r"\d[\d,.]* (?:bytes|kB|KB|MB|GB)\b": "<size>",
    r"\b\d+(?:\.\d+)? (?:s|ms)\b": "<duration>",
    r"/[^\"\\\s]*/bin/wellkept": "<program>",
    r"\bexpires in \S+ \w+": "expires in <duration>",
}
"""What differs between machines and releases, and how it is written."""


class Shell:
    """Runs commands in one of the forms, in a folder of their own."""

    def __init__(self, form: str, folder: Path) -> None:
        self._form = form
        self._folder = folder
        self._masks = Masks(has_times=True)
        for name, text in FILES.items():
            (folder / name).write_text(text, "utf-8")
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        paths = f"{SOURCE}:{SOURCE.parent}"
        environment = Program(folder).environment(PYTHONPATH=paths, TERM="xterm-256color", **VARIABLES)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.corpus.running", form, str(theirs_in), str(theirs_out)],
            cwd=folder,
            env={name: value for name, value in environment.items() if name not in TERMINAL_VARIABLES},
            pass_fds=(theirs_in, theirs_out),
        )
        for each in (theirs_in, theirs_out):
            os.close(each)
        self._asked, self._answers = os.fdopen(ours_out, "w"), os.fdopen(ours_in)

    def __call__(self, title: str, asked: str) -> str:
        line, _, given = self._masks.reveal(asked).partition(GIVEN)
        arguments = shlex.split(line)
        place = arguments.index("--") if "--" in arguments else len(arguments)
        if self._form == "json" and arguments[0] not in ("--version", "hook"):
            arguments.insert(place, "--json")
        self._asked.write(json.dumps([arguments, given.replace("\\n", "\n")]) + "\n")
        self._asked.flush()
        ended = json.loads(self._answers.readline().replace(str(self._folder), "<folder>"))
        errors = "".join(f"! {line}\n" for line in self._readable(ended["err"]).splitlines())
        try:
            value = json.loads(ended["out"]) if self._form == "json" else None
        except ValueError:
            value = None
        if value is not None:
            out = self._machine(json.dumps(self._masks.mask(value), ensure_ascii=False)) + "\n"
        else:
            out = self._readable(ended["out"])
        return f"{ended['code']}\n{out}{errors}".rstrip("\n")

    def close(self) -> None:
        for stream in (self._asked, self._answers):
            stream.close()
        self._process.wait()

    def _readable(self, text: str) -> str:
        shown = "".join(f"{line.rstrip()}\n" for line in ANSI.sub("", text).splitlines())
        lines = self._masks.mask_text(shown).splitlines()
        return self._machine("".join(f"{line}\n" for line in lines if not PROGRESS.search(line)))

    def _machine(self, text: str) -> str:
        for pattern, name in MACHINE.items():
            text = re.sub(pattern, name, text)
        return text


@contextmanager
def running(form: str) -> Iterator[Callable[[str, str], str]]:
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(form, Path(folder))
        try:
            yield shell
        finally:
            shell.close()


def record(form: str) -> int:
    lines = [line for line in COMMANDS.read_text("utf-8").splitlines() if not line.startswith("#")]
    with running(form) as ask:
        sections = [Section(form, in_a_row((each, ask(form, each)) for each in lines))]
    save(f"cli_{form}", sections)
    return len(lines)


def compare(form: str) -> list[str]:
    with running(form) as ask:
        return replay(load(f"cli_{form}"), ask)


def record_help() -> int:
    sections = [Section("help", in_a_row((name, text) for name, text in _helps()))]
    save("cli_help", sections)
    return len(sections[0].exchanges)


def compare_help() -> list[str]:
    helps = dict(_helps())
    recorded = load("cli_help")
    known = {asked for section in recorded for each in section.exchanges for asked in each.asked}
    new = [f"{name}\n    is a new command" for name in helps if name not in known]
    return [*replay(recorded, lambda _, asked: helps.get(asked, "gone")), *new]


def _helps() -> Iterator[tuple[str, str]]:
    """Yield the help of the program, and of each command."""

    def walk(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
        text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
        yield f"{context.command_path} --help", text
        if isinstance(command, click.Group):
            all_of_it = click.Context(command)
            all_of_it.meta[ALL] = True
            for name in command.list_commands(all_of_it):
                each = command.get_command(context, name)
                assert each is not None
                yield from walk(each, click.Context(each, info_name=name, parent=context, **SETTINGS))

    app = whole_program()
    yield from walk(app, click.Context(app, info_name="wellkept", **SETTINGS))


SETTINGS: dict[str, Any] = {"terminal_width": 100, "max_content_width": 100, "help_option_names": ["-h", "--help"]}
