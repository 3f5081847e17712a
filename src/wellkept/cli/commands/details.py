"""Details: store big texts that prompts only refer to, and read them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, TypedDict, Unpack

from wellkept.cli.completion import complete_detail
from wellkept.cli.options import STANDARD_INPUT
from wellkept.cli.output import Column, Indented, Line, Output, OutputNote, Styled, confirm, tick
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Command, Run
from wellkept.cli.text import json_record, one_line, plain_time, safe
from wellkept.details.rules_keys import reference
from wellkept.errors import Invalid
from wellkept.model import Detail, DetailPage, Json

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
    """Store a big text and print the reference that replaces it in prompts."""
    if file == STANDARD_INPUT and sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    is_piped = file == STANDARD_INPUT
    stored = run.memory.store_detail(
        sys.stdin.buffer if is_piped else Path(file),
        description=description or ("" if is_piped else Path(file).name),
        type=type,
        session_id=session,
        metadata={} if is_piped else {"source": file},
    )
    run.show(_render_stored(stored))


def list_(
    run: Run,
    query: Annotated[str, Argument(help="Words to search for, best match first; without any, list the newest.")] = "",
    session: Session = None,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 20,
) -> None:
    """List the big texts an agent has stored."""
    run.show(_render_list(run.memory.search_details(query, session_id=session, limit=limit)))


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
    """Show a part of a big text; standard error says how much remains."""
    run.show(_render_page(run.memory.read_detail(key, offset=offset, context=context, **part)))


def hide(run: Run, key: Key, undo: Annotated[bool, Option("--undo", help="Show it again.")] = False) -> None:
    """Hide a big text, so that it cannot be found or read."""
    detail = run.memory.hide_detail(key, is_hidden=not undo)
    run.show(confirm("Shown again" if undo else "Hidden", detail.key, "memory_key"))


def delete(run: Run, key: Key) -> None:
    """Delete a big text for good."""
    run.memory.delete_detail(key)
    run.show(confirm("Deleted", key, "memory_key"))


COMMANDS = (
    Command(run=store, example="wellkept details store build.log --description 'the nightly build'"),
    Command(run=list_, example="wellkept details list build", alias="list"),
    Command(run=show, example="wellkept details show build-log-x7k2m9qp --grep error", listed_by="details list"),
    Command(run=hide, example="wellkept details hide build-log-x7k2m9qp", listed_by="details list"),
    Command(run=delete, example="wellkept details delete build-log-x7k2m9qp", listed_by="details list"),
)


def _render_stored(detail: Detail) -> Output:
    line = one_line(reference(detail.key, detail.description))
    return Output(
        json=_json(detail),
        lines=[line],
        blocks=[(tick(True), line), Indented(Styled(one_line(detail.summary), "dim"), (0, 2))],
    )


def _render_list(details: Sequence[Detail]) -> Output:
    return Output(
        json={"items": [_json(each) for each in details], "next_cursor": None},
        lines=(
            (each.key, each.type, plain_time(each.created_at), f"{each.lines} lines", one_line(each.summary))
            for each in details
        ),
        columns=(
            Column("Type", wide_only=True),
            Column("Lines", number=True, wide_only=True),
            Column("Key, and what it is"),
        ),
        rows=((safe(each.type), f"{each.lines:,}", _about_cell(each)) for each in details),
        if_empty="There is nothing here.",
    )


def _about_cell(detail: Detail) -> Styled:
    key, summary = (safe(detail.key), "cyan"), (one_line(detail.summary), "dim")
    return Styled(spans=(key, (f"\n{one_line(detail.description)}\n", ""), summary))


def _render_page(page: DetailPage) -> Output:
    return Output(
        json=_with_key(json_record(page)),
        lines=_page_lines(page),
        blocks=[safe(page.content.removesuffix("\n")), Styled(one_line(page.remaining), "dim")],
    )


def _page_lines(page: DetailPage) -> Iterable[Line]:
    # Unchanged, because it goes to a file or another program.
    if page.content:
        yield page.content.removesuffix("\n")
    # The text comes before the remark also when both streams are the same file.
    sys.stdout.flush()
    yield OutputNote(one_line(page.remaining))


def _json(detail: Detail) -> Json:
    record = _with_key(json_record(detail))
    del record["content_hash"]
    return record | {"reference": reference(detail.key, detail.description)}


def _with_key(record: Json) -> Json:
    return {"memory_key": record.pop("key"), **record}
