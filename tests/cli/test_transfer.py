"""`wellkept data export` and `wellkept data import`."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.proves("X6")


def test_a_tenant_moves_from_one_store_to_another(program: Program) -> None:
    program.ok("remember", "Ships on Fridays", "--tenant", "acme", "--agent", "atlas")
    program.ok("data", "export", "acme.jsonl.zst", "--tenant", "acme")
    elsewhere = ("--tenant", "acme", "--url", f"sqlite:///{program.folder / 'elsewhere.db'}")

    told = program("data", "import", "acme.jsonl.zst", "--dry-run", "--json", *elsewhere)
    moved = program("data", "import", "acme.jsonl.zst", "--json", *elsewhere)
    again = program.ok("data", "import", "acme.jsonl.zst", *elsewhere)

    assert told.json == moved.json | {"dry_run": True}
    assert moved.json["added"] == {"agents": 1, "memories": 1, "audit_log": 1}
    assert "memories\t0 added\t1 there already" in again.splitlines()
    assert "Ships on Fridays" in program.ok("memory", "list", "--agent", "atlas", *elsewhere)


def test_core_memories_wait_unless_the_file_is_signed_or_trusted(program: Program) -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    program.ok("admin", "secrets", "allow", secret)
    program.ok("remember", "I am careful", "--kind", "core")
    program.ok("remember", f"An example is {secret}")
    program.ok("data", "export", "plain.jsonl")
    key = {"WELLKEPT_EXPORT_KEY": "a key of sixteen!"}
    assert program("data", "export", "signed.jsonl", "--json", **key).json["is_signed"] is True

    def arrive(name: str, *options: str) -> tuple[str, str]:
        where = ("--url", f"sqlite:///{program.folder / name}.db")
        moved = program("data", "import", *options, *where, **key)
        assert moved.code == 0
        return moved.err, program.ok("memory", "review", *where)

    assert arrive("a", "signed.jsonl") == ("", "")
    assert arrive("b", "plain.jsonl", "--trusted") == ("", "")
    told, waiting = arrive("c", "plain.jsonl")
    assert "1 core memories wait for review" in told
    assert "I am careful" in waiting
    text = (program.folder / "plain.jsonl").read_text("utf-8")
    assert "a key of sixteen" not in text + (program.folder / "signed.jsonl").read_text("utf-8")


def test_an_export_goes_through_a_pipe(program: Program) -> None:
    program.ok("remember", "Ships on Fridays")
    lines = program("data", "export").out
    assert json.loads(lines.splitlines()[0])["wellkept"] == "export"
    assert "end" in json.loads(lines.splitlines()[-1])

    elsewhere = ("--url", f"sqlite:///{program.folder / 'elsewhere.db'}")
    assert "memories\t1 added" in program.ok("data", "import", "-", *elsewhere, given=lines)
    assert program("data", "export", "--json").code == 2


def test_what_does_not_come_in_is_told_with_the_reason(program: Program) -> None:
    program.ok("remember", "Ships on Fridays")
    program.ok("data", "export", "all.jsonl")
    elsewhere = ("--url", f"sqlite:///{program.folder / 'elsewhere.db'}")
    program.ok("remember", "Something else", *elsewhere)

    clash = program("data", "import", "all.jsonl", *elsewhere)
    merged = program("data", "import", "all.jsonl", "--merge", *elsewhere)
    (program.folder / "torn.jsonl").write_bytes((program.folder / "all.jsonl").read_bytes()[:-50])
    torn = program("data", "import", "torn.jsonl", *elsewhere)

    assert (clash.code, clash.out) == (1, "")
    assert "choose to merge" in clash.err
    assert merged.code == 0
    assert "something else has this id here" in merged.err
    assert torn.code == 1
    assert "cut off" in torn.err
    assert program("data", "import", "nowhere.jsonl").err == "There is no file 'nowhere.jsonl'.\n"
    assert "choose wellkept" in program("data", "import", "all.jsonl", "--from", "sheep").err
