"""Asking for help is quick, because nothing heavy is loaded for it."""

from __future__ import annotations

import wellkept
from tests.cli.program import Program
from wellkept.cli.app import GROUPS, load_commands

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
    for arguments in (["--help"], ["remember", "--help"], ["db", "distribute", "--help"]):
        assert not loaded(program, *arguments) & {*HEAVY}
    assert not (program.folder / "notes.db").exists()


def test_recall_loads_what_it_needs_and_no_more(program: Program) -> None:
    assert not loaded(program, "recall", "anything") & {*NOT_TO_RECALL}


def test_measuring_uses_one_thread_of_the_linear_algebra(program: Program) -> None:
    """Those that wait for work spin, and their time would count as that of a verb."""
    code = (
        f"import os\nos.environ.pop('OPENBLAS_NUM_THREADS', None)\n{CODE}    print(os.environ['OPENBLAS_NUM_THREADS'])"
    )

    assert program.python(code, "bench", "--seconds", "0", "--memories", "30").out.endswith("\n1\n")


def test_version_and_the_help_of_the_program(program: Program) -> None:
    version, short, nothing = program.all(["--version"], ["-h"], [])
    assert version.out == f"wellkept {wellkept.__version__}\n"
    assert "Usage: wellkept [OPTIONS] COMMAND" in short.out
    assert nothing.code == 2


def test_the_shell_can_complete(program: Program) -> None:
    assert completed(program, "wellkept re") == ["remember", "review", "recall", "record", "reembed", "restore"]
    for shell in ("bash", "zsh", "fish"):
        assert f"_WELLKEPT_COMPLETE={shell}_complete" in program.ok("--show-completion", shell)


def completed(program: Program, line: str) -> list[str]:
    """What bash is offered behind this line, as if Tab was pressed at its end."""
    words = line.split(" ")
    variables = {"_WELLKEPT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    # Each line is the kind of a completion and the completion itself.
    return [offered.partition(",")[2] for offered in program("", **variables).out.split()]


def test_the_shell_completes_what_only_the_store_knows(program: Program) -> None:
    assert completed(program, "wellkept show m") == []
    assert not (program.folder / "notes.db").exists()  # pressing a key makes nothing
    program.ok("remember", "Prefers tabs")
    program.ok("remember", "Prefers spaces", "--agent", "atlas")
    program.ok("log", "monday", "--user", "Hi", "--assistant", "Hello", "--agent", "atlas")

    assert completed(program, "wellkept show m") == ["m-1"]
    assert completed(program, "wellkept recall spaces? --agent a") == ["atlas"]
    assert completed(program, "wellkept messages --agent atlas m") == ["monday"]
    assert completed(program, "wellkept list --state e") == ["expired"]
    assert completed(program, "wellkept recall x --kind ") == ["core", "journal", "note", "episode", "item"]
    assert completed(program, "wellkept show --url sqlite:///none.db m") == []


def test_the_table_of_commands_names_those_of_each_module() -> None:
    """A run imports only the module of its command, so the table has to know where each is."""
    for modules in GROUPS.values():
        for module, names in modules.items():
            assert [each.name for each in load_commands(module)] == names.split()
