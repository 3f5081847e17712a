"""`wellkept context` and `wellkept session prompts`, for each kind of reader."""

from __future__ import annotations

import re

import pytest

from tests.cli.program import Program
from wellkept import Wellkept


@pytest.mark.proves("E9")
def test_a_prompt_is_shown_and_looked_at_later(program: Program) -> None:
    program("remember", "Bills are paid on Fridays")

    shown = program(
        "context", "When are bills paid?", "--session", "s-1", "--system-prompt", "You keep the accounts."
    ).out
    assert shown.startswith("system: You keep the accounts.\n")
    assert shown.endswith(
        "  [Memories]\n  - (m-1) Bills are paid on Fridays\n  [End of memories]\nuser: When are bills paid?\n"
    )
    made = program("context", "When are bills paid?", "--session", "s-1", "--layout", "cache_stable", "--json").json
    assert made["messages"][-1] == {"role": "user", "content": "When are bills paid?"}
    assert made["layout"] == "cache_stable"
    assert "notes\t" in program("context", "", "--session", "s-1", "--blocks").out

    assert len(program("session", "prompts").out.splitlines()) == 3
    assert [each["id"] for each in program("session", "prompts", "--json").json["items"]].count(made["id"]) == 1
    seen = program("session", "prompts", made["id"])
    assert "  m-1 Bills are paid on Fridays\n" in seen.out
    assert re.search(r"m-1 \(0\.\d{3}\) not shown: shown in notes ", seen.out)
    assert program("session", "prompts", made["id"], "--json").json["tokens"] == made["tokens"]
    assert "Bills are paid" in program.on_terminal(100, "session", "prompts", made["id"]).out
    assert "1 of" not in program("session", "prompts", "--session", "other").out


def test_a_question_alone_is_a_message(program: Program) -> None:
    program("remember", "Bills are paid on Fridays")
    program("session", "log", "s-1", "--user", "Hello", "--assistant", "Hi")

    shown = program("context", "When are bills paid?").out

    assert "  - (m-1) Bills are paid on Fridays\n" in shown
    assert shown.endswith("user: When are bills paid?\n")
    assert "assistant: Hi" not in shown
    assert program("session", "prompts").out.split("\t")[2] == "-"
    assert program("context", "s-1", "When are bills paid?").code == 2


def test_a_group_is_named(program: Program) -> None:
    shown = program("context", "hello", "--participant", "Lena", "--participant", "Otto", "--agent", "mara").out

    assert shown.startswith("system: You are mara.\n")
    assert "  You take part in a group conversation.\n  Other participants: Lena, Otto.\n" in shown


def test_a_person_is_told_the_command_that_shows_it_again_if_there_is_one(program: Program) -> None:
    program("remember", "Bills are paid on Fridays", "--agent", "mara")

    shown = program.on_terminal(120, "context", "hello", "--session", "s-1", "--agent", "mara").out
    line = re.search(r"tokens; wellkept (session prompts c-\S+ --agent mara)", shown)
    assert line is not None, shown
    assert program(*line[1].split()).code == 0
    assert (
        "wellkept session prompts"
        not in program.on_terminal(120, "context", "hello", "--session", "s-1", "--agent", "nobody").out
    )


def test_what_does_not_fit_and_what_is_missing_is_said(program: Program) -> None:
    ended = program("context", "hello", "--session", "s-1", "--budget", "5")
    assert (ended.code, ended.out) == (1, "")
    assert "more than the budget of 5" in ended.err
    assert program("session", "prompts", "c-0").err == "There is no such call; only the latest are kept.\n"


@pytest.mark.proves("E13")
def test_one_command_says_that_a_prompt_had_no_room(program: Program) -> None:
    with Wellkept(f"sqlite:///{program.folder / 'notes.db'}") as wellkept:
        wellkept.agent().remember_many(
            [{"text": f"Bills of week {week} are {'very ' * 40}long", "kind": "episode"} for week in range(5)]
        )
    made = program("context", "how long are bills?", "--session", "s-1", "--budget", "300", "--json").json
    (memories,) = [block for block in made["blocks"] if block["name"] == "memories"]
    out = next(item["id"] for item in memories["items"] if item["left_out"] == "budget")
    shown = next(item["id"] for item in memories["items"] if not item["left_out"])

    left, told, seen, wide = program.all(
        ["memory", "explain", "how long are bills?", "--id", out],
        ["memory", "explain", "how long are bills?", "--id", shown, "--json"],
        ["session", "prompts", made["id"]],
        ["session", "prompts", "--session", "s-1"],
    )

    assert f"{out}\trecalled" in left.out
    assert left.out.rstrip().endswith("s-1\tnot shown in memories: budget")
    ((appearance),) = told.json["prompts"]
    assert (appearance["call_id"], appearance["block"], appearance["left_out"]) == (made["id"], "memories", "")
    assert f"  {out} (" in seen.out
    assert "not shown: budget" in seen.out
    assert wide.out.startswith(made["id"])
    on_terminal = program.on_terminal(100, "memory", "explain", "how long are bills?", "--id", out)
    assert "not shown in memories: budget" in " ".join(on_terminal.out.split())


def test_what_was_shortened_is_said_to_whoever_looks_on(program: Program) -> None:
    program.ok("remember", "Bills are paid on Fridays")
    shortened = ["context", "When are bills paid?", "--session", "s-1", "--budget", "35"]

    ended, shown = program(*shortened), program.on_terminal(80, *shortened)

    assert "Bills are paid" not in ended.out
    assert ended.err.startswith("truncated by ")
    assert "truncated by " in shown.out
