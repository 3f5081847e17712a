"""`wellkept admin agents`: list, show, edit and remove agents."""

from __future__ import annotations

import pytest

from tests.cli.program import Program

QUESTION = "Remove ann, its 1 memory and all else it owns for good?"


@pytest.fixture
def ann(program: Program) -> Program:
    """A program whose store has the agent ann."""
    program.ok("remember", "Likes tea", "--agent", "ann")
    return program


def test_an_agent_is_edited_field_by_field(ann: Program) -> None:
    before = ann("admin", "agents", "show", "ann", "--json").json
    looks = ["--colour", "green", "--icon", "leaf", "--model", "small"]
    changed = ann("admin", "agents", "edit", "ann", "--name", "Ann", *looks, "--tools", "notes, recall", "--json").json
    prompted = ann(
        "admin", "agents", "edit", "ann", "--prompt", "-", "--inactive", "--json", given="Be kind.\nBe brief."
    ).json
    cleared = ann("admin", "agents", "edit", "ann", "--tools", "", "--active", "--json").json

    expected: dict[str, object] = {
        "name": "Ann",
        "colour": "green",
        "icon": "leaf",
        "model": "small",
        "tools": ["notes", "recall"],
    }
    assert before["memories_count"] == {"core": 0, "journal": 0, "note": 1, "episode": 0, "item": 0}
    assert changed | {"updated_at": ""} == before | expected | {"updated_at": ""}
    expected = {"system_prompt": "Be kind.\nBe brief.", "is_active": False}
    assert prompted | {"updated_at": ""} == changed | expected | {"updated_at": ""}
    assert cleared | {"updated_at": ""} == prompted | {"tools": [], "is_active": True, "updated_at": ""}
    assert ann("admin", "agents", "show", "ann", "--json").json == cleared
    lines = ann.ok("admin", "agents", "show", "ann").splitlines()
    assert {"id: ann", "name: Ann", "model: small", "colour: green", "icon: leaf", "is_active: yes"} <= set(lines)
    assert lines[-2:] == ["system_prompt: Be kind.", "  Be brief."]
    assert ann.ok("admin", "agents", "list") == "ann\t0 core, 0 journal, 1 note, 0 episode, 0 item\tAnn\n"


def test_wrong_edits_say_what_to_do(ann: Program) -> None:
    nothing, blank, secret, missing, unknown = ann.all(
        ["admin", "agents", "edit", "ann"],
        ["admin", "agents", "edit", "ann", "--name", " "],
        ["admin", "agents", "edit", "ann", "--prompt", "Use AKIAIOSFODNN7EXAMPLQ"],
        ["admin", "agents", "edit", "bob", "--name", "Bob"],
        ["admin", "agents", "show", "ann", "--tenant", "acme"],
    )

    assert nothing.code == 2
    assert "--prompt" in nothing.err
    assert (blank.code, blank.err) == (1, "An agent's name cannot be blank.\n")
    assert (secret.code, "secret" in secret.err) == (1, True)
    assert (missing.code, missing.err) == (unknown.code, unknown.err) == (1, "There is no such agent.\n")
    assert ann("admin", "agents", "show", "ann", "--json").json["name"] == "ann"


def test_an_agent_is_removed_only_with_yes(ann: Program) -> None:
    refused, as_json, missing = ann.all(
        ["admin", "agents", "remove", "ann"],
        ["admin", "agents", "remove", "ann", "--json"],
        ["admin", "agents", "remove", "bob", "--yes"],
    )
    for each in (refused, as_json):
        assert (each.code, each.out) == (1, "")
        assert "--yes" in each.err
    assert (missing.code, missing.err) == (1, "There is no such agent.\n")

    assert ann("admin", "agents", "remove", "ann", "--yes", "--json").json == {"ok": True, "id": "ann"}
    assert ann("admin", "agents", "list", "--json").json["items"] == []
    assert ann.ok("memory", "list", "--agent", "ann", "--json") == ann.ok(
        "memory", "list", "--agent", "nobody", "--json"
    )


@pytest.mark.parametrize(("answer", "is_removed"), [("n", False), ("y", True)])
def test_on_a_terminal_it_asks(ann: Program, answer: str, is_removed: bool) -> None:
    ended = ann.asked(QUESTION, answer, "admin", "agents", "remove", "ann")

    assert ended.code == (0 if is_removed else 1)
    assert QUESTION in ended.out
    assert ("Nothing was removed." in ended.out) is not is_removed
    assert bool(ann("admin", "agents", "list", "--json").json["items"]) is not is_removed
