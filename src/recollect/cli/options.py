"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated

import typer

from recollect.cli.completion import complete_memory, complete_session
from recollect.errors import Invalid
from recollect.model import Kind, Origin, Scope

STANDARD_INPUT = "-"
MAX_INPUT_BYTES = 1_000_000
"""More than any memory may hold, so that a file sent by mistake is not read to its end."""


def parse_time(text: str) -> datetime:
    """Parse a time from the command line; without a zone it is local time, as tables show it."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter("Use a time such as 2026-01-31 or 2026-01-31T12:00:00Z.") from None


def read_text(text: str) -> str:
    """Return `text`, or standard input for "-". Raises: Invalid."""
    if text != STANDARD_INPUT:
        return text
    if sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise Invalid("Standard input holds more than a megabyte; a memory is a short text.")
    return decode_input(data)


def decode_input(data: bytes, what: str = "Standard input") -> str:
    """Decode what standard input or a file held. Raises: Invalid."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"{what} is not UTF-8 text (at byte {error.start}).") from error


MemoryId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The memory's id, such as m-7.", show_default=False, autocompletion=complete_memory
    ),
]
OfKind = Annotated[Kind | None, typer.Option(help="Only this kind.", show_default=False)]
WithTag = Annotated[str, typer.Option(help="Only memories with this tag.", show_default=False)]
OfSession = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Only of this conversation.", show_default=False, autocompletion=complete_session),
]
OfScope = Annotated[Scope | None, typer.Option(help="Only notes about this.", show_default=False)]
OfOrigin = Annotated[Origin | None, typer.Option(help="Only of this origin.", show_default=False)]
Since = Annotated[
    datetime | None,
    typer.Option(metavar="TIME", parser=parse_time, help="Only what was written then or later.", show_default=False),
]
Until = Annotated[
    datetime | None,
    typer.Option(metavar="TIME", parser=parse_time, help="Only what was written before then.", show_default=False),
]
AsOf = Annotated[
    datetime | None,
    typer.Option(metavar="TIME", parser=parse_time, help="As of this time; local time unless a zone is given."),
]

Secrets = Annotated[
    str | None,
    typer.Option(
        metavar="MODE", help="Handling of what seems to be a secret: reject, redact or flag.", show_default=False
    ),
]

# Models and summaries. What is not given is as the settings say.
SummaryEnabled = Annotated[
    bool | None, typer.Option("--summary-enabled/--no-summary-enabled", help="Summarise old turns.", show_default=False)
]
SummaryThreshold = Annotated[
    int | None,
    typer.Option(metavar="N", help="How many messages may accumulate before they are summarised.", show_default=False),
]
SummaryKeepLast = Annotated[
    int | None, typer.Option(metavar="N", help="How many of the newest messages stay unsummarised.", show_default=False)
]
OpenaiModel = Annotated[str | None, typer.Option(metavar="NAME", help="The language model.", show_default=False)]
OpenaiBaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="The OpenAI-compatible endpoint.", show_default=False)
]
OpenaiSummaryModel = Annotated[
    str | None, typer.Option(metavar="NAME", help="Another model for summaries.", show_default=False)
]
OpenaiSummaryBaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Another endpoint for summaries.", show_default=False)
]

MinScore = Annotated[
    float | None,
    typer.Option(
        "--min-score",
        help="Least similarity of each result, 0 to 1; 0: no limit. By default as in the settings.",
        show_default=False,
    ),
]
