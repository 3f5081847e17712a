"""Exit codes: 1 with one sentence on standard error for what is refused, 2 for wrong usage."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.program import ANSI, Program
from wellkept.arguments import FORMER

REFUSED = {
    "blank": (["remember", "  "], "Content cannot be blank"),
    "too long": (["remember", "x" * 501], "Content too long (max 500 characters)"),
    "importance": (["remember", "x", "--importance", "nan"], "`importance` must be a number, not nan."),
    "unknown id": (["memory", "forget", "m-99"], "There is no such memory."),
    "blank question": (["recall", " "], "The query is blank"),
    "limit": (["memory", "list", "--limit", "0"], "The limit is a whole number from 1 to 500."),
    "page": (["memory", "list", "--before", "yesterday"], "such as m-7"),
    "agent": (["memory", "list", "--agent", "a b"], "An agent id is"),
    "url": (["memory", "list", "--url", "mysql://db/x"], "A store's address is"),
    "secret": (["remember", "The key is AKIAQYLPMN5HIEXAMP42"], "text appears to contain a secret — not stored"),
    "correction of nothing": (["remember", "x", "--supersedes", "m-9"], "There is no such memory."),
    "approval of nothing": (["memory", "review", "--approve", "m-9"], "There is no such memory."),
    "similar to nothing": (["memory", "similar", "m-9"], "There is no such memory."),
    "nothing to allow": (["admin", "secrets", "allow", "tea"], "Nothing in this text looks like a secret"),
    "a file in a cluster": (["admin", "db", "distribute"], "Only a PostgreSQL database can be distributed"),
    "no server": (["admin", "db", "distribute", "--url", "postgresql://app@127.0.0.1:1/x"], "cannot be reached"),
    "tool set": (["mcp", "--sets", "magic"], "There is no tool set 'magic'"),
}
WRONG = {
    "kind": (["memory", "list", "--kind", "wish"], "'wish' is not one of 'core', 'journal', 'note', 'episode'"),
    "scope": (["remember", "x", "--scope", "world"], "'world' is not one of"),
    "state": (
        ["memory", "list", "--state", "lost"],
        "'lost' is not one of 'live', 'expired', 'archived', 'held', 'all'",
    ),
    "time": (["memory", "list", "--as-of", "yesterday"], "Use a time such as 2026-01-31"),
    "time out of range": (["recall", "x", "--as-of", "0001-01-01"], "Use a time such as 2026-01-31"),
    "source": (["recall", "x", "--source", "wish"], "'wish' is not one of 'memory', 'audit', 'workflow', 'knowledge'"),
    "purpose": (["recall", "x", "--purpose", "wish"], "'wish' is not one of 'task_intake'"),
    "a part of the log": (["data", "audit", "x", "--verify"], "take no query"),
    "number": (["memory", "list", "--limit", "many"], "--limit"),
    "option": (["memory", "list", "--colour"], "No such option"),
    "former option": (["recall", "x", "--min-score", "0.5"], FORMER["min_score"]),
    "former option of context": (["context", "x", "--min-score=0.5"], FORMER["min_score"]),
    "former option of documents": (["knowledge", "search", "x", "--min-score", "0.5"], FORMER["min_score"]),
    "command": (["memorise"], "There is no command 'memorise'. Did you mean 'memory'?"),
    "no text": (["remember"], "Give either a text"),
    "nothing to edit": (["memory", "edit", "m-1"], "Say what to change"),
    "tags and none": (["memory", "edit", "m-1", "--tag", "a", "--no-tags"], "exclude each other"),
}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("empty"))


def test_a_refusal_is_one_sentence_and_exit_code_1(empty: Program) -> None:
    for name, ended in zip(REFUSED, empty.all(*(line for line, _ in REFUSED.values())), strict=True):
        assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1), (name, ended)
        assert REFUSED[name][1] in ended.err, name


def test_wrong_usage_is_exit_code_2(empty: Program) -> None:
    for name, ended in zip(WRONG, empty.all(*(line for line, _ in WRONG.values())), strict=True):
        assert (ended.code, ended.out) == (2, ""), (name, ended)
        assert WRONG[name][1] in " ".join(ended.err.split()), name
        assert "Traceback" not in ended.err


def test_an_unknown_variable_is_refused_with_the_nearest_name(empty: Program) -> None:
    ended = empty("memory", "list", "--json", WELLKEPT_PROT="1")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.strip().endswith('the nearest one is "WELLKEPT_PORT".')


def test_bytes_that_are_no_text_are_refused(empty: Program) -> None:
    assert empty("remember", b"caf\xe9").err == "The text is not UTF-8 text.\n"
    ended = empty("remember", "-", given=b"caf\xe9")
    assert (ended.code, ended.err) == (1, "Standard input is not UTF-8 text (at byte 3).\n")
    ended = empty("remember", "-", given=b"x" * 1_000_001)
    assert (ended.code, ended.err) == (1, "Standard input holds more than a megabyte; a memory is a short text.\n")


def test_an_option_that_must_be_given_is_named(empty: Program) -> None:
    ended = empty("admin", "keys", "create")
    assert ended.code == 2
    assert "Missing option '--scope'" in ended.err


@pytest.mark.parametrize(
    ("command", "missing", "extra"), [("serve", "uvicorn", "server"), ("mcp", "mcp", "mcp")], ids=["serve", "mcp"]
)
def test_a_missing_package_is_named_by_its_extra(empty: Program, command: str, missing: str, extra: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from wellkept.cli import main; main()"
    ended = empty.python(code, command)
    assert (ended.code, ended.out) == (1, "")
    advice = f"run: pip install 'wellkept[{extra}]' (in a clone: pip install '.[{extra}]')"
    assert ended.err.endswith(f"needs more packages; {advice}\n")


def test_what_nobody_expected_keeps_its_traceback_but_shows_no_values(tmp_path: Path) -> None:
    code = """
import wellkept.api.wellkept
from wellkept.cli import main
def fail(self, **options):
    password = "hunter" + "2"
    return 1 / 0
wellkept.api.wellkept.AgentMemory.list = fail
main()
"""
    ended = Program(tmp_path).python(code, "memory", "list")
    assert ended.code == 1
    assert ended.err.startswith("Traceback")
    assert ended.err.endswith("ZeroDivisionError: division by zero\n")
    assert "hunter2" not in ended.err


def test_what_can_only_be_read_is_read_and_the_mark_that_is_missing_is_told(program: Program) -> None:
    program.ok("remember", "Prefers tabs over spaces")
    with (program.folder / "notes.db").open("r+b") as file:  # says that writing takes a later version of SQLite
        file.seek(18)
        file.write(b"\x03")
    unwritable = "The database file cannot be written to; check its permissions.\n"

    recalled = program("recall", "tabs")
    assert recalled.code == 0
    assert re.fullmatch(r"0\.\d{3}\tm-1\tPrefers tabs over spaces\n", recalled.out)
    assert recalled.err == f"Recalled memories could not be marked as such: {unwritable}"
    assert program("context", "tabs", "--session", "s-1", WELLKEPT_CONTEXT_CALLS_KEPT="0").code == 0
    assert program("session", "prompts").code == 0
    refused = program("remember", "Prefers spaces")
    assert (refused.code, refused.err) == (1, unwritable)


def test_people_are_told_what_to_try_next_and_programs_are_not(program: Program) -> None:
    (program.folder / "broken.db").write_bytes(b"this is not a database, not at all" * 100)
    cases = {
        ("memory", "show", "m-7"): "To see what there is: wellkept memory list",
        ("knowledge", "show", "d-1"): "To see what there is: wellkept knowledge list",
        ("memory", "list", "--url", "sqlite:///broken.db"): "To see what is wrong with the store: wellkept doctor",
    }
    for arguments, hint in cases.items():
        shown = program.on_terminal(80, *arguments).out
        assert hint in ANSI.sub("", shown)
        assert hint not in program(*arguments).err
