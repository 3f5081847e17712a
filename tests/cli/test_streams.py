"""Pipes, encodings, interrupts and terminals."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest
from rich.cells import cell_len

from tests.cli.program import ANSI, BOXES, TIMEOUT, Program
from tests.waiting import eventually

SHOWN = {
    "list": ["memory", "list", "--state", "all"],
    "recall": ["recall", "how to indent?", "--explain"],
    "show": ["memory", "show", "m-1"],
    "agents": ["admin", "agents", "list"],
    "agent": ["admin", "agents", "show", "bob"],
    "settings": ["admin", "settings"],
    "review": ["memory", "review", "--agent", "bob"],
    "similar": ["memory", "similar", "m-1", "--agent", "bob"],
    "inject": ["context", "--notes", "how to indent?"],
    "audit": ["data", "audit"],
    "verify": ["data", "audit", "--verify"],
    "maintain": ["admin", "maintain"],
    "scan": ["admin", "secrets", "scan"],
    "doctor": ["doctor"],
    "reembed": ["admin", "reembed"],
    "help": ["remember", "--help"],
    "usage": ["memory", "list", "--kind", "wish"],
    "refused": ["memory", "forget", "m-99"],
}
CODES = {"usage": 2, "refused": 1}


@pytest.mark.parametrize(("width", "names"), [(40, list(SHOWN)), (120, ["list", "settings", "doctor", "audit"])])
def test_on_a_terminal_everything_fits_its_width(filled: Program, width: int, names: list[str]) -> None:
    with ThreadPoolExecutor(4) as threads:
        ended = list(threads.map(lambda name: filled.on_terminal(width, *SHOWN[name]), names))
    for name, each in zip(names, ended, strict=True):
        assert each.code == CODES.get(name, 0), (name, each.out)
        assert "Traceback" not in each.out
        for coloured in ("\x1b[31m[bold]again", "\x1b[31mweb"):
            assert coloured not in each.out, "a stored text must not colour the terminal"
        # A bar that moves; lines that the terminal itself wraps.
        if name not in ("reembed", "help", "usage", "refused"):
            lines = ANSI.sub("", each.out).splitlines()
            assert max(cell_len(line) for line in lines) <= width, name
        if name == "list":
            assert set("Prefers two spaces over tabs #preference #style".split()) <= set(ANSI.sub("", each.out).split())
    assert ANSI.search(ended[0].out)
    assert "Everything works." in ended[names.index("doctor")].out


def test_on_a_narrow_terminal_what_is_typed_again_is_on_one_line(program: Program) -> None:
    (program.folder / "refunds.md").write_text("# Refunds\n\nPaid to Erik within 14 days.\n")
    document = program("knowledge", "ingest", "refunds.md").out.split("\t")[1]
    program("session", "log", "monday-morning", "--user", "Who is Erik?", "--assistant", "He pays refunds.")
    detail = program("memory", "details", "store", "-", "--json", given="line\n" * 9).json["memory_key"]

    for command, wanted in (
        (["knowledge", "ingest", "refunds.md"], "refunds.md"),
        (["knowledge", "list"], document),
        (["session", "list"], "monday-morning"),
        (["memory", "details", "list"], detail),
        (["data", "erase", "Erik", "--dry-run"], "monday-morning/1"),
    ):
        assert wanted in program.on_terminal(40, *command).out, command


def test_in_a_pipe_there_are_no_frames_and_no_colours(filled: Program) -> None:
    names = ("list", "recall", "doctor", "help", "usage")
    for name, each in zip(names, filled.all(*(SHOWN[name] for name in names)), strict=True):
        assert each.code == CODES.get(name, 0), (name, each)
        assert not ANSI.search(each.out + each.err), name
        assert not BOXES.search(each.out + each.err), name
        assert name != "list" or len(each.out.splitlines()) == 4


def test_json_on_a_terminal_is_still_only_json(filled: Program) -> None:
    ended = filled.on_terminal(40, "memory", "list", "--json")
    assert len(ended.json["items"]) == 4
    assert "\x1b" not in ended.out


def test_a_reader_that_leaves_early_is_no_error(filled: Program) -> None:
    for command in (["memory", "list"], ["memory", "list", "--json"]):
        process = filled.start(*command)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.close()
        process.stdout.close()
        assert (process.wait(TIMEOUT), process.stderr.read()) == (0, b"")
        process.stderr.close()


@pytest.mark.parametrize("command", [["memory", "list"], ["memory", "list", "--json"], ["data", "export", "-"]])
def test_output_that_finds_no_room_is_one_sentence_and_exit_code_1(filled: Program, command: list[str]) -> None:
    line = [*filled.command, *command]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(line, cwd=filled.folder, env=filled.environment(), stdout=full, stderr=subprocess.PIPE)

    assert (done.returncode, done.stderr) == (1, b"The output cannot be written (No space left on device).\n")


def test_an_interrupt_ends_quietly_with_130(program: Program) -> None:
    process = program.start("remember", "-")
    assert process.stdin is not None
    pipe = process.stdin
    os.write(pipe.fileno(), b"Prefers")
    eventually(lambda: not _unread(pipe) or process.poll() is not None)
    assert process.poll() is None  # it waits for the rest
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, err) == (130, b"", b"")


def _unread(pipe: IO[bytes]) -> int:
    """Bytes that nobody has taken out of it."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
    ],
    ids=["C", "C and nothing else", "ascii"],
)
def test_text_survives_where_only_ascii_is_spoken(program: Program, variables: dict[str, str]) -> None:
    text = "Größe ✓ 東京 🎉"
    stored = program("remember", text, "--json", **variables)
    assert (stored.code, stored.err) == (0, "")
    assert stored.json["text"] == text
    lines = program("memory", "list", **variables)
    assert (lines.code, lines.err) == (0, "")
    assert lines.out.startswith("m-1\tnote\t")


def test_marks_are_words_where_they_cannot_be_shown(program: Program) -> None:
    ended = program("doctor", PYTHONIOENCODING="latin-1", WELLKEPT_PROT="1")
    assert [line[:2] for line in ended.out.splitlines()] == ["ok", "!!", "  "]
