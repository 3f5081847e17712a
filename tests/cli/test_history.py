"""Recording events and steps, purposes and explanations from a shell."""

from __future__ import annotations

import pytest

from tests.cli.program import Program

SECRET = "AKIAQYLPMN5HIEXAMP42"


@pytest.mark.proves("E3", "E8", "E11")
def test_what_was_done_is_recorded_recalled_and_explained(program: Program) -> None:
    program.ok("remember", "The refund desk closes at five")
    program.ok(
        "admin",
        "workflows",
        "record",
        "Refund run",
        "check",
        "-",
        "--agent",
        "billing",
        given="Refund is due\nto order 7",
    )
    program.ok(
        "admin",
        "workflows",
        "record",
        "refund-run",
        "pay",
        "Refund bounced",
        "--status",
        "failed",
        "--agent",
        "carrier",
    )
    program.ok("data", "record", "order.refund", "Refund was approved", "--agent", "kim")

    found, audit, decisions, agents, shown, missing, steps, flows = (
        ended.json
        for ended in program.all(
            ["recall", "refund", "--limit", "20", "--json"],
            ["recall", "refund", "--source", "audit", "--json"],
            ["recall", "refund", "--purpose", "decision_memo", "--json"],
            ["recall", "refund", "--purpose", "delegation", "--json"],
            ["memory", "explain", "refund", "--id", "m-1", "--json"],
            ["memory", "explain", "refund", "--id", "m-9", "--json"],
            ["admin", "workflows", "show", "refund-run", "--limit", "1", "--json"],
            ["admin", "workflows", "list", "--json"],
        )
    )
    assert {hit["source"] for hit in found["hits"]} == {"memory", "audit", "workflow"}
    assert found["missing"] == []
    assert {hit["source"] for hit in audit["hits"]} == {"audit"}
    assert [hit["text"] for hit in decisions["hits"]] == ["Refund was approved"]
    assert decisions["heading"] == "Past approvals and refusals"
    assert [hit["agent_id"] for hit in agents["hits"]][-1] == "carrier"
    assert (shown["outcome"], shown["words"]) == ("recalled", ["refund"])
    assert missing["outcome"] == "missing"
    assert [(step["id"], step["output"]) for step in steps["items"]] == [("refund-run/1", "Refund is due\nto order 7")]
    assert steps["next_cursor"] == "1"
    assert [each["id"] for each in flows["items"]] == ["refund-run"]


def test_what_is_not_acceptable_is_refused(program: Program) -> None:
    wrong_source, wrong_purpose, secret, own, wrong_after = program.all(
        ["recall", "x", "--source", "mind"],
        ["recall", "x", "--purpose", "fun"],
        ["admin", "workflows", "record", "run", "x", f"the key is {SECRET}"],
        ["data", "record", "memory.add", "x"],
        ["admin", "workflows", "show", "run", "--after", "x"],
    )
    assert (wrong_source.code, wrong_purpose.code, wrong_after.code) == (2, 2, 2)
    assert (secret.code, own.code) == (1, 1)
    assert "'task_intake'" in wrong_purpose.err
    assert SECRET not in secret.err + secret.out


def test_on_a_terminal_it_comes_as_tables(program: Program) -> None:
    program.ok("admin", "workflows", "record", "Refund run", "check", "Refund is due", "--agent", "billing")
    for arguments, shown in (
        (["admin", "workflows", "list"], "Refund run"),
        (["admin", "workflows", "show", "refund-run"], "Refund is due"),
        (["admin", "workflows", "list", "--after", "z"], "No workflow"),
        (["recall", "refund", "--purpose", "delegation"], "Which agents did such work well"),
        (["memory", "explain", "refund", "--id", "refund-run/1"], "recalled"),
        (["data", "record", "order.refund", "Paid"], "Recorded as event"),
    ):
        for width in (50, 110):
            ended = program.on_terminal(width, *arguments)
            assert ended.code == 0
            assert shown in " ".join(ended.out.split())
            if arguments[0] == "record":
                break
