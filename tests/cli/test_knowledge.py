"""`wellkept knowledge ingest` and `wellkept knowledge`."""

from __future__ import annotations

import pytest

from tests.cli.program import ANSI, Program
from tests.documents import PAGE, pdf

pytestmark = pytest.mark.proves("E5")


@pytest.fixture
def handbook(program: Program) -> Program:
    """A folder with two good files and one that is broken."""
    (program.folder / "handbook" / "sub").mkdir(parents=True)
    (program.folder / "handbook" / "refunds.html").write_text(PAGE)
    (program.folder / "handbook" / "sub" / "leave.pdf").write_bytes(pdf("Leave is 30 days a year."))
    (program.folder / "handbook" / "broken.pdf").write_bytes(b"no")
    return program


def test_a_folder_is_taken_in_and_failures_are_told_at_the_end(handbook: Program) -> None:
    ended = handbook("knowledge", "ingest", "handbook", "--category", "policy")

    assert ended.code == 1
    assert ended.err == (
        "handbook/broken.pdf: broken.pdf is broken: it cannot be read as PDF. Open it in a viewer and save it again.\n"
    )
    first, second = (line.split("\t") for line in ended.out.splitlines())
    assert (first[0], first[2:]) == ("added", ["2 passages", "handbook/refunds.html"])
    assert (second[0], second[2:]) == ("added", ["1 passage", "handbook/sub/leave.pdf"])

    (handbook.folder / "handbook" / "broken.pdf").unlink()
    (handbook.folder / "handbook" / "sub" / "leave.pdf").unlink()
    again = handbook("knowledge", "ingest", "handbook", "--prune", "--json")
    assert again.code == 0
    assert [each["change"] for each in again.json["items"]] == ["unchanged"]
    assert again.json["removed"] == [second[1]]


def test_documents_are_found_shown_changed_and_deleted(handbook: Program) -> None:
    handbook.ok("knowledge", "ingest", "handbook/refunds.html", "--title", "Refunds", "--category", "policy")
    (listed,) = handbook.ok("knowledge", "list").splitlines()
    id = listed.split("\t")[0]
    assert listed.split("\t")[1:] == ["published", "policy", "Refunds"]

    assert "14 days" in handbook.ok("knowledge", "search", "when are refunds paid", "--category", "policy")
    assert handbook.ok("knowledge", "search", "when are refunds paid", "--category", "other") == ""
    shown = handbook("knowledge", "show", id, "--json").json
    assert shown["passages"][0]["text"].startswith("Refunds > Refund policy\n\n")
    assert handbook("knowledge", "show", id).out.startswith(f"id: {id}\ntitle: Refunds\n")
    assert handbook.ok("knowledge", "edit", id, "--hide", "--title", "Old").split("\t")[1:] == [
        "hidden",
        "policy",
        "Old\n",
    ]
    assert handbook.ok("knowledge", "search", "refunds") == ""
    assert handbook("knowledge", "edit", id).code == 2
    assert handbook.ok("knowledge", "delete", id) == f"Deleted: {id}\n"
    assert handbook("knowledge", "show", id).code == 1


def test_a_text_from_standard_input_and_what_does_not_fit(handbook: Program) -> None:
    out = handbook.ok("knowledge", "ingest", "-", "--title", "Rules", "--draft", given="Be kind.")
    assert out.split("\t")[::3] == ["added", "Rules\n"]
    assert handbook.ok("knowledge", "list").split("\t")[1] == "hidden"
    assert handbook("knowledge", "ingest", "handbook", "--title", "x").code == 2
    missing = handbook("knowledge", "ingest", "nowhere.md")
    assert (missing.code, missing.err) == (1, "There is no file or folder 'nowhere.md'.\n")


def test_on_a_terminal_there_are_tables(handbook: Program) -> None:
    shown = handbook.on_terminal(100, "knowledge", "ingest", "handbook")
    assert shown.code == 1
    assert "handbook/refunds.html" in shown.out
    assert "is broken" in shown.out
    listed = ANSI.sub("", handbook.on_terminal(100, "knowledge", "list").out)
    assert "Refund policy" in listed
    id = next(line.split()[0] for line in listed.splitlines() if "Refund policy" in line)
    assert "Norway | 3 EUR" in handbook.on_terminal(100, "knowledge", "show", id).out
