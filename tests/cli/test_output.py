"""One `Output` for three readers: a program that wants JSON, a pipe, and a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from wellkept.cli.output import Column, JsonPrinter, Output, PlainPrinter, ProgressBar, Remark, Styled, list_records
from wellkept.cli.terminal import TerminalPrinter

RECORDS = [("m-1", "2026-01-05 09:00", "Prefers tabs"), ("m-2", "2026-01-06 09:00", "Likes\ttea")]
COLUMNS = (
    Column("Id", lambda row: row[0], "cyan", is_whole=True),
    Column("Written", lambda row: row[1], "dim", only="terminal", is_wide=True),
    Column("", lambda row: None, only="pipe"),
    Column("Memory", lambda row: row[2]),
)


def listing(records: list[tuple[str, str, str]]) -> Output:
    page = ("--before", lambda row: row[0])
    return list_records(
        COLUMNS, records, limit=2, page=page, if_empty="Nothing yet.", notes=[Remark("missing: knowledge")]
    )


def test_json_printer_prints_the_document_alone(capsys: pytest.CaptureFixture[str]) -> None:
    JsonPrinter().show(listing(RECORDS))
    printed = capsys.readouterr()

    assert json.loads(printed.out) == {"items": [list(each) for each in RECORDS], "next_cursor": "m-2"}
    assert printed.err == ""


def test_json_printer_escapes_what_a_terminal_might_act_on(capsys: pytest.CaptureFixture[str]) -> None:
    JsonPrinter().show(Output(json={"text": "red \x9b31m"}))

    assert capsys.readouterr().out == '{\n  "text": "red \\u009b31m"\n}\n'


def test_output_without_a_document_or_lines_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for printer in (JsonPrinter(), PlainPrinter()):
        printer.show(Output(blocks=[Styled("Only for people")]))

    assert capsys.readouterr().out == ""


def test_plain_printer_separates_fields_by_tabs_and_notes_by_stream(capsys: pytest.CaptureFixture[str]) -> None:
    PlainPrinter().show(listing(RECORDS))
    printed = capsys.readouterr()

    assert printed.out == "m-1\t-\tPrefers tabs\nm-2\t-\tLikes tea\n"
    assert printed.err == "missing: knowledge\n"


@pytest.mark.parametrize(("columns", "is_wide"), [(100, True), (50, False)])
def test_terminal_printer_hides_wide_only_columns(
    columns: int, is_wide: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    printer = TerminalPrinter()
    printer.show(listing(RECORDS))
    shown = capsys.readouterr().out

    assert printer.width == columns
    assert ("Written" in shown, "2026-01-05" in shown) == (is_wide, is_wide)
    assert "Prefers tabs" in shown
    assert shown.endswith("missing: knowledge\n There is more: add --before m-2\n")


def test_terminal_printer_says_that_a_table_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    TerminalPrinter().show(listing([]))

    assert capsys.readouterr().out == "missing: knowledge\nNothing yet.\n"


def test_terminal_printer_ends_a_streamed_line_before_the_next_output(capsys: pytest.CaptureFixture[str]) -> None:
    printer = TerminalPrinter()
    for piece in ("Tabs", "."):
        printer.stream(piece)
    printer.note("")
    printer.show(Output(blocks=["Done"]))

    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == ["Tabs.", "Done"]


def test_progress_is_reported_in_a_pipe_every_thousand_steps(capsys: pytest.CaptureFixture[str]) -> None:
    def report(total: int) -> Iterator[str]:
        with ProgressBar(PlainPrinter(), "Embedding") as bar:
            for done in (1, 999, 1000, 1500, 2500):
                bar.report(done, total)
        yield from capsys.readouterr().err.splitlines()

    assert list(report(3000)) == ["Embedding: 1,000 of 3,000", "Embedding: 2,500 of 3,000"]
    assert list(report(0)) == ["Embedding: 1,000", "Embedding: 2,500"]
