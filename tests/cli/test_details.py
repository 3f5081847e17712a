"""`wellkept memory details`."""

from __future__ import annotations

import re

import pytest

from tests.cli.program import Program

LOG = "compiling\nerror: \x1b[31mno such file\x1b[0m\nfailed"


@pytest.mark.proves("D3", "D4")
def test_a_text_is_stored_listed_shown_hidden_and_deleted(program: Program) -> None:
    (program.folder / "build.log").write_text(LOG)

    told = program("memory", "details", "store", "build.log", "--type", "command_output", "--json").json
    key = told["memory_key"]
    assert told["reference"] == f"[MemoryRef: {key} - build.log]"
    assert (told["lines"], told["metadata"], told["type"]) == (3, {"source": "build.log"}, "command_output")
    (listed,) = program("memory", "details", "list", "build", "--json").json["items"]
    assert listed == told
    assert re.match(
        rf"{key}\tcommand_output\t[0-9-]{{10}}T[0-9:]{{8}}Z\t3 lines\t", program("memory", "details", "list").out
    )

    ended = program("memory", "details", "show", key)
    assert (ended.out, ended.err) == (f"{LOG}\n", "This is all of it.\n")  # as it is: it goes into a pipe
    shown = program.on_terminal(80, "memory", "details", "show", key).out
    assert "\\x1b[31mno such file" in shown
    assert (
        program("memory", "details", "show", key, "--lines", "2-3", "--limit", "5", "--json").json["next_offset"] == 15
    )
    assert (
        program("memory", "details", "show", key, "--grep", "/fail|comp/", "--context", "0").out
        == "1:compiling\n3:failed\n"
    )
    refused = program("memory", "details", "show", key, "--head", "1", "--tail", "1")
    assert (refused.code, "one way at a time" in refused.err) == (1, True)

    assert program("memory", "details", "hide", key).out == f"Hidden: {key}\n"
    assert program("memory", "details", "show", key).code == 1
    assert program("memory", "details", "hide", key, "--undo", "--json").json == {"ok": True, "memory_key": key}
    assert key in program.on_terminal(120, "memory", "details", "list").out
    assert program("memory", "details", "delete", key).out == f"Deleted: {key}\n"
    ended = program("memory", "details", "show", key)
    assert (ended.code, ended.err) == (1, "There is no such detail.\n")


def test_a_text_is_stored_from_standard_input(program: Program) -> None:
    ended = program("memory", "details", "store", "-", "--description", "piped", given=b"caf\xc3\xa9 \xff\n")

    assert ended.out.startswith("[MemoryRef: piped-")
    key = ended.out.split()[1]
    assert program("memory", "details", "show", key).out == "café \ufffd\n"
    refused = program("memory", "details", "store", "no-such-file")
    assert (refused.code, "cannot be read: No such file" in refused.err) == (1, True)
