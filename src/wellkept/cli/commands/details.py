"""Details: store big texts that prompts only refer to, and read them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, TypedDict, Unpack

from wellkept.cli.completion import complete_detail
from wellkept.cli.options import STANDARD_INPUT, Limit
from wellkept.cli.output import Column, Indented, Output, OutputNote, Styled, Verbatim, confirm, list_records, tick
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run
from wellkept.cli.text import json_record, one_line
from wellkept.details.rules_keys import reference
from wellkept.errors import Invalid
from wellkept.model import Detail, Json

Key = Annotated[
    str, Argument(metavar="KEY", help="The detail's key, such as npm-install-x7k2m9qp.", complete=complete_detail)
]
Session = Annotated[str | None, Option(help="The conversation it belongs to.")]


def store(
    run: Run,
    file: Annotated[str, Argument(help="A file of text; - reads standard input.")],
    description: Annotated[str, Option(help="One line for the reference.")] = "",
    type: Annotated[str, Option(help="Such as command_output or api_response.")] = "file_content",
    session: Session = None,
) -> None:
    """Store a big text and print the reference that replaces it in prompts.

    Example: wellkept memory details store build.log --description 'the nightly build'"""
    if file == STANDARD_INPUT and sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    is_piped = file == STANDARD_INPUT
    stored = run.memory.details.store(
        sys.stdin.buffer if is_piped else Path(file),
        description=description or ("" if is_piped else Path(file).name),
        type=type,
        session_id=session,
        metadata={} if is_piped else {"source": file},
    )
    line = one_line(reference(stored.key, stored.description))
    summary = Indented(Styled(one_line(stored.summary), "dim"), (0, 2))
    run.show(Output(json=_json(stored), lines=[line], blocks=[(tick(True), line), summary]))


def list_details(
    run: Run,
    query: Annotated[str, Argument(help="Words to search for, best match first; without any, list the newest.")] = "",
    session: Session = None,
    limit: Limit = 20,
) -> None:
    """List the big texts an agent has stored.

    Example: wellkept memory details list build"""
    found = run.memory.details.search(query, session_id=session, limit=limit)
    run.show(list_records(COLUMNS, found, json=_json, if_empty="There is nothing here."))


class PartOptions(TypedDict):
    """Options that choose a part of a text."""

    limit: Annotated[int | None, Option(help="Maximum number of characters.")]
    lines: Annotated[str | None, Option(help="Such as 120-180, 120 or 120-.")]
    head: Annotated[int | None, Option(help="The first lines, this many.")]
    tail: Annotated[int | None, Option(help="The last lines, this many.")]
    grep: Annotated[str | None, Option(help="Lines that contain this text, or match /this/.")]
    json_path: Annotated[str | None, Option(help="Values of a JSON text, such as $.items[0].")]


def show(
    run: Run,
    key: Key,
    offset: Annotated[int, Option(help="The first character to show.")] = 0,
    context: Annotated[int, Option(help="Lines around each match.")] = 2,
    **part: Unpack[PartOptions],
) -> None:
    """Show a part of a big text; standard error says how much remains.

    Example: wellkept memory details show build-log-x7k2m9qp --grep error"""
    page = run.memory.details.read(key, offset=offset, context=context, **part)
    # A file or another program gets it unchanged.
    text, remaining = page.content.removesuffix("\n"), one_line(page.remaining)
    run.show(
        Output(
            json=json_record(page),
            lines=[*([Verbatim(text)] if page.content else []), OutputNote(remaining)],
            blocks=[text, Styled(remaining, "dim")],
        )
    )


def hide(run: Run, key: Key, undo: Annotated[bool, Option("--undo", help="Show it again.")] = False) -> None:
    """Hide a big text, so that it cannot be found or read.

    Example: wellkept memory details hide build-log-x7k2m9qp"""
    detail = run.memory.details.hide(key, is_hidden=not undo)
    run.show(confirm("Shown again" if undo else "Hidden", detail.key, "memory_key"))


def delete(run: Run, key: Key) -> None:
    """Delete a big text for good.

    Example: wellkept memory details delete build-log-x7k2m9qp"""
    run.memory.details.delete(key)
    run.show(confirm("Deleted", key, "memory_key"))


COLUMNS = (
    Column("", lambda each: each.key, only="pipe"),
    Column("Type", lambda each: each.type, only="wide"),
    Column("", lambda each: each.type, only="pipe"),
    Column("", lambda each: each.created_at, only="pipe"),
    Column("Lines", lambda each: each.lines, only="wide", is_number=True),
    Column("", lambda each: f"{each.lines} lines", only="pipe"),
    Column("", lambda each: each.summary, only="pipe"),
    Column(
        "Key, and what it is",
        lambda each: Styled(
            each.key,
            "cyan",
            ((f"\n{one_line(each.description)}\n", "default"), (one_line(each.summary), "dim default")),
        ),
        only="terminal",
    ),
)


def _json(detail: Detail) -> Json:
    return json_record(detail) | {"reference": reference(detail.key, detail.description)}
