"""Asking for help is quick, because nothing heavy is loaded for it."""

from __future__ import annotations

import re
from typing import Any

import click

import wellkept
from tests.cli.program import Program
from wellkept.cli.app import COMMANDS
from wellkept.cli.app import program as whole_program
from wellkept.cli.parameters import CommandOption

HEAVY = ("apsw", "fastapi", "mcp", "psycopg", "wellkept.api.wellkept", "rich", "uvicorn", "yaml")
NOT_TO_RECALL = """fastapi markdown_it mcp psycopg pydantic_ai wellkept.upkeep.erase wellkept.server rich uvicorn
    yaml""".split()
CODE = """
import sys
from wellkept.cli import main
try:
    main()
finally:
    print("\\nloaded:", *sorted(sys.modules))
"""


def loaded(program: Program, *arguments: str) -> set[str]:
    """The modules a run has loaded by its end."""
    ended = program.python(CODE, *arguments)
    assert ended.code == 0
    return set(ended.out.rpartition("loaded:")[2].split())


def test_help_loads_nothing_heavy(program: Program) -> None:
    for arguments in (["--help"], ["remember", "--help"], ["admin", "db", "distribute", "--help"]):
        assert not loaded(program, *arguments) & {*HEAVY}
    assert not (program.folder / "notes.db").exists()


def test_recall_loads_what_it_needs_and_no_more(program: Program) -> None:
    assert not loaded(program, "recall", "anything") & {*NOT_TO_RECALL}


def test_measuring_uses_one_thread_of_the_linear_algebra(program: Program) -> None:
    """Those that wait for work spin, and their time would count as that of a verb."""
    code = (
        f"import os\nos.environ.pop('OPENBLAS_NUM_THREADS', None)\n{CODE}    print(os.environ['OPENBLAS_NUM_THREADS'])"
    )

    assert program.python(code, "admin", "bench", "--seconds", "0", "--memories", "30").out.endswith("\n1\n")


def test_version_and_the_help_of_the_program(program: Program) -> None:
    version, short, nothing = program.all(["--version"], ["-h"], [])
    assert version.out == f"wellkept {wellkept.__version__}\n"
    assert "Usage: wellkept [OPTIONS] COMMAND" in short.out
    assert nothing.code == 2


def test_the_shell_can_complete(program: Program) -> None:
    assert completed(program, "wellkept re") == ["remember", "recall"]
    assert completed(program, "wellkept memory re") == ["restore", "review"]
    for shell in ("bash", "zsh", "fish"):
        assert f"_WELLKEPT_COMPLETE={shell}_complete" in program.ok("--show-completion", shell)


def completed(program: Program, line: str) -> list[str]:
    """What bash is offered behind this line, as if Tab was pressed at its end."""
    words = line.split(" ")
    variables = {"_WELLKEPT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    # Each line is the kind of a completion and the completion itself.
    return [offered.partition(",")[2] for offered in program("", **variables).out.split()]


def test_the_shell_completes_what_only_the_store_knows(program: Program) -> None:
    assert completed(program, "wellkept memory show m") == []
    assert not (program.folder / "notes.db").exists()  # pressing a key makes nothing
    program.ok("remember", "Prefers tabs")
    program.ok("remember", "Prefers spaces", "--agent", "atlas")
    program.ok("session", "log", "monday", "--user", "Hi", "--assistant", "Hello", "--agent", "atlas")

    assert completed(program, "wellkept memory show m") == ["m-1"]
    assert completed(program, "wellkept recall spaces? --agent a") == ["atlas"]
    assert completed(program, "wellkept session show --agent atlas m") == ["monday"]
    assert completed(program, "wellkept memory list --state e") == ["expired"]
    assert completed(program, "wellkept recall x --kind ") == ["core", "journal", "note", "episode", "item"]
    assert completed(program, "wellkept memory show --url sqlite:///none.db m") == []


def test_the_first_screen_is_one_screen(program: Program) -> None:
    for width in (80, 100):
        shown = program.on_terminal(width).out.splitlines()
        assert len(shown) <= 24
        assert max(map(len, shown)) <= 80
    names = re.findall(r"^  ([a-z]+) ", program().out, re.MULTILINE)
    assert names[:8] == "remember recall context chat serve mcp demo doctor".split()
    assert names[8:] == "memory user session knowledge data admin".split()


def test_a_verb_shows_at_most_eight_options_of_its_own() -> None:
    for path in COMMANDS:
        words = path.split()
        command: Any = whole_program()
        for word in words:
            command = command.get_command(click.Context(command), word)
        own = [each for each in command.params if isinstance(each, CommandOption) and not each.is_common]
        assert len([each for each in own if not each.is_rare]) <= 8, path
        assert command.epilog.startswith("Example: ")
        assert f"wellkept {path}" in command.epilog
        common = {name for each in command.params for name in each.opts}
        assert {"--url", "--tenant", "--agent", "--user", "--json"} <= common


def test_what_is_rare_is_shown_by_help_all_and_works(program: Program) -> None:
    usual, whole = program.ok("recall", "--help"), program.ok("recall", "--help", "--all")
    assert "--purpose" not in usual
    assert "--help --all" in usual
    assert "--purpose" in whole
    assert program("recall", "how was it?", "--source", "audit").code == 0
    assert "details" not in program.ok("memory", "--help")
    assert "details" in program.ok("memory", "--help", "--all")
    assert "memory details show" in program.ok("--help", "--all")


def test_a_former_name_is_answered_with_the_new_one(program: Program) -> None:
    refused = program.all(["list"], ["seen"], ["kb", "list"], ["backup", "x"], ["rememer", "x"], ["memory", "lst"])
    assert [each.code for each in refused] == [2] * 6
    says = [each.err.splitlines()[-1].partition("Error: ")[2] for each in refused]
    assert "Use: wellkept memory list, wellkept user list" in says[0]
    assert says[1:4] == [
        "There is no command 'seen'. Use: wellkept session prompts",
        "There is no command 'kb'. Use: wellkept knowledge",
        "There is no command 'backup'. Use: wellkept data backup",
    ]
    assert says[4].endswith("Did you mean 'remember'?")
    assert says[5].endswith("Did you mean 'list'?")
    gone = program("memory", "list", "--since", "2026-01-01")
    assert gone.code == 2
    assert "--where 'created_at >= 2026-01-31'" in gone.err
