"""Running a command whose output may be too long for a prompt: shown as it comes, stored, and ended as it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import TIMEOUT, Program
from wellkept import Settings, Wellkept
from wellkept.details.rules_keys import find_references

LONG = "seq 1 3000"
NUMBERS = "".join(f"{number}\n" for number in range(1, 3001))


def stored(program: Program, shown: str) -> str:
    """All of what a line refers to."""
    (found,) = find_references(shown)
    settings = Settings(url=f"sqlite:///{program.folder / 'notes.db'}")
    with Wellkept(settings=settings) as wellkept:
        return wellkept.agent().details.read(found.key, limit=1_000_000).content


@pytest.mark.proves("D1")
def test_a_short_output_is_shown_and_nothing_else(program: Program) -> None:
    ended = program("memory", "capture", "--", "sh", "-c", "echo out; echo err >&2; exit 7")

    assert (ended.code, ended.out, ended.err) == (7, "out\n", "err\n")


def test_lines_of_the_two_streams_are_kept_whole(program: Program) -> None:
    waits = "until [ -e {} ]; do sleep 0.02; done"
    script = f"printf beg; {waits.format('one')}; echo 'the other' >&2; {waits.format('two')}; echo un; {LONG}"
    with program.start("memory", "capture", "--", "sh", "-c", script) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(3) == b"beg"
        (program.folder / "one").touch()
        assert process.stderr.readline() == b"the other\n"
        (program.folder / "two").touch()
        _, err = process.communicate(timeout=TIMEOUT)

    assert stored(program, err.decode()).splitlines()[:2] == ["the other", "begun"]


@pytest.mark.proves("D1")
def test_a_long_output_is_shown_on_its_own_streams_and_the_line_follows_on_standard_error(program: Program) -> None:
    ended = program("memory", "capture", "--", "sh", "-c", f"{LONG}; echo oops >&2")

    assert (ended.code, ended.out) == (0, NUMBERS)
    oops, line = ended.err.splitlines()
    assert oops == "oops"
    assert line.startswith(f"Command 'sh -c '{LONG}; echo oops >&2'' executed. Logs stored in [MemoryRef: sh-c-seq-")
    assert line.endswith("]. Status: success.")
    assert sorted(stored(program, line).splitlines()) == sorted([*NUMBERS.splitlines(), "oops"])


def test_quiet_prints_only_what_goes_into_the_prompt(program: Program) -> None:
    short, long = program.all(
        ["memory", "capture", "-q", "--", "echo", "hi"], ["memory", "capture", "--quiet", "--", "seq", "1", "3000"]
    )

    assert (short.code, short.out, short.err) == (0, "hi\n", "")
    assert (long.code, long.err) == (0, "")
    assert stored(program, long.out) == NUMBERS


def test_as_json_the_record_alone_is_on_standard_output(program: Program) -> None:
    ended = program(
        "memory", "capture", "--json", "--session", "s-1", "--type", "build", "--", "sh", "-c", f"{LONG}; exit 4"
    )

    assert (ended.code, ended.err) == (4, NUMBERS)
    said = ended.json
    assert said.pop("duration") > 0
    (found,) = find_references(said["text"])
    assert said == {
        "text": f"Logs stored in {found.text}. Status: exit code 4.",
        "captured": True,
        "memory_key": found.key,
        "source": f"sh -c '{LONG}; exit 4'",
        "status": "exit code 4",
        "exit_code": 4,
    }


def test_what_comes_by_a_pipe_is_passed_on_or_replaced(program: Program) -> None:
    raw = b"caf\xc3\xa9 \xff\r\n\x1b[31mred"
    with program.start("memory", "capture", "--source", "x") as process:
        assert process.communicate(raw, timeout=TIMEOUT) == (raw, b"")

    long = program("memory", "capture", "--source", "make all", "--status", "failed", given=NUMBERS)
    assert (long.code, long.err) == (0, "")
    assert long.out.startswith("Command 'make all' executed. Logs stored in [MemoryRef: make-all-")
    assert long.out.endswith(". Status: failed.\n")
    assert stored(program, long.out) == NUMBERS


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (["no-such-command-here"], 127, "no-such-command-here cannot be run: No such file or directory.\n"),
        (["/"], 126, "/ cannot be run: Permission denied.\n"),
        (["sh", "-c", "kill -KILL $$"], 137, ""),
        (["sh", "-c", "exit 255"], 255, ""),
    ],
)
def test_the_exit_code_is_what_a_shell_would_say(program: Program, command: list[str], code: int, says: str) -> None:
    ended = program("memory", "capture", "--", *command)

    assert (ended.code, ended.out, ended.err) == (code, "", says)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_command_which_decides(program: Program, number: signal.Signals) -> None:
    code = (
        "import signal, sys\n"
        "def end(number, frame):\n    print('x' * 4000, 'cleaned up', flush=True)\n    sys.exit(9)\n"
        f"signal.signal({int(number)}, end)\nprint('ready', flush=True)\nsignal.pause()"
    )
    command = [*program.command, "memory", "capture", "--", sys.executable, "-c", code]
    process = subprocess.Popen(
        command,
        cwd=program.folder,
        env=program.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # no terminal that would send the signal to both
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT)

    assert process.returncode == 9
    assert b"cleaned up" in out
    assert b"Status: exit code 9." in err


def test_whoever_stops_reading_does_not_stop_the_command(program: Program) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [*program.command, "memory", "capture", "--", "sh", "-c", f"{LONG}; touch finished; exit 5"]

    done = subprocess.run(
        command, cwd=program.folder, env=program.environment(), stdout=write, stderr=subprocess.PIPE, timeout=TIMEOUT
    )

    os.close(write)
    assert done.returncode == 5
    assert (program.folder / "finished").exists()
    assert stored(program, done.stderr.decode()) == NUMBERS


def test_a_store_that_cannot_be_used_is_said_before_the_command_runs(program: Program) -> None:
    ended = program("memory", "capture", "--url", "sqlite:////proc/no/such.db", "--", "touch", "ran")

    assert ended.code == 1
    assert ended.err
    assert not (program.folder / "ran").exists()


def test_what_makes_no_sense_is_wrong_usage(program: Program) -> None:
    status = program("memory", "capture", "--status", "fine", "--", "echo", "hi")
    assert (status.code, "--status" in status.err) == (2, True)
    assert program.on_terminal(100, "memory", "capture").code == 2


def test_a_large_output_is_not_held_in_memory(program: Program) -> None:
    def peak(count: int) -> int:
        """Kilobytes the program itself needed at most."""
        code = (
            "import re, sys\nfrom pathlib import Path\nfrom wellkept.cli import main\ntry:\n    main()\nfinally:\n"
            "    print(*re.findall(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text()), file=sys.stderr)\n"
        )
        script = f"yes 'INFO request served in 12 ms' | head -n {count}"
        ended = program.python(code, "memory", "capture", "--quiet", "--", "sh", "-c", script)
        assert ended.code == 0, ended.err
        assert (f"log, {count:,} lines" in ended.out) == (count > 1000)
        return int(ended.err.splitlines()[-1])

    small = peak(2000)
    assert peak(1_000_000) - small < 16_000  # of 30 MB


@pytest.mark.proves("D1")
def test_the_temporary_copy_is_gone_afterwards(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()

    ended = program("memory", "capture", "--", "seq", "1", "3000", TMPDIR=str(folder))

    assert ended.code == 0
    assert list(folder.iterdir()) == []
