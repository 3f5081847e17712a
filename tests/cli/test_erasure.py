"""`wellkept data erase`: it asks on a terminal, wants --yes elsewhere, and prints a receipt."""

from __future__ import annotations

import pytest

from tests.cli.program import Program

QUESTION = "Erase this for good?"

pytestmark = pytest.mark.proves("X5")


def test_nothing_goes_unasked_and_everything_with_yes(program: Program) -> None:
    program.ok("remember", "Mara Lindqvist prefers mail")

    refused = program("data", "erase", "Mara Lindqvist")
    shown = program.ok("data", "erase", "Mara Lindqvist", "--dry-run")
    receipt = program("data", "erase", "Mara Lindqvist", "--yes", "--json").json

    assert (refused.code, refused.out) == (1, "")
    assert "--yes" in refused.err
    assert shown.startswith(
        "remove\tmemories\tdefault\tm-1\tMara Lindqvist prefers mail\nwould be removed\tmemories\t1\n"
    )
    assert receipt["removed"] == {"memories": 1, "memory_index": 1}
    assert not [each for each in program.folder.rglob("*") if each.is_file() and b"Lindqvist" in each.read_bytes()]
    missing = program("data", "erase", "agent:nobody", "--yes")
    assert (missing.code, missing.err) == (1, "There is no such agent.\n")


def test_a_receipt_is_checked(program: Program) -> None:
    program.ok("remember", "Mara Lindqvist prefers mail")
    printed = program("data", "erase", "Mara Lindqvist", "--yes", "--json").out
    (program.folder / "receipt.json").write_text(printed)
    (program.folder / "forged.json").write_text(printed.replace('"memories": 1', '"memories": 0'))
    (program.folder / "none.json").write_text("[1]")

    assert program.ok("data", "erase", "--verify", "receipt.json").startswith("unchanged: ")
    assert program("data", "erase", "--verify", "-", "--json", given=printed).json["ok"] is True
    for name in ("forged", "none"):
        refused = program("data", "erase", "--verify", f"{name}.json")
        assert (refused.code, refused.out) == (1, "")
        assert "hash does not fit" in refused.err
    assert "cannot be read" in program("data", "erase", "--verify", "nowhere.json").err
    assert program("data", "erase").code == 2


@pytest.mark.parametrize(("answer", "is_erased"), [("n", False), ("y", True)])
def test_on_a_terminal_it_shows_what_would_go_and_asks(program: Program, answer: str, is_erased: bool) -> None:
    program.ok("remember", "Mara Lindqvist prefers mail")
    ended = program.asked(QUESTION, answer, "data", "erase", "Mara Lindqvist")

    assert ended.code == (0 if is_erased else 1)
    assert "Mara Lindqvist prefers mail" in ended.out
    assert QUESTION in ended.out
    assert ("Receipt" in ended.out) is is_erased
    assert bool(program("memory", "list", "--json").json["items"]) is not is_erased


def test_a_single_word_deletes_an_agent_only_if_told(program: Program) -> None:
    program.ok("remember", "Opens at nine", "--agent", "ann-bot")

    refused = program("data", "erase", "text:Ann", "--yes")
    kept = program("data", "erase", "text:Ann", "--yes", "--keep-agents", "--json").json
    gone = program("data", "erase", "text:Ann", "--yes", "--with-agents", "--json").json

    assert (refused.code, refused.out) == (1, "")
    assert "--keep-agents" in refused.err
    assert ("agents" in kept["removed"], gone["removed"]["agents"]) == (False, 1)
