"""Arguments and options that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import click

from wellkept.cli.completion import complete_memory, complete_session
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.text import safe
from wellkept.errors import Invalid
from wellkept.model import Kind

if TYPE_CHECKING:
    from wellkept.cli.run import Run

STANDARD_INPUT = "-"
MAX_INPUT_BYTES = 1_000_000
"""More than any memory may hold, so that a file sent by mistake is not read to its end."""


def parse_time(text: str) -> datetime:
    """Parse a time from the command line; without a zone it is local time, as tables show it."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.astimezone()
    except (ValueError, OverflowError):
        raise click.BadParameter("Use a time such as 2026-01-31 or 2026-01-31T12:00:00Z.") from None


def read_file(path: Path) -> bytes:
    """Return the content of a file, or standard input for "-". Raises: Invalid."""
    if str(path) != STANDARD_INPUT:
        try:
            return path.read_bytes()
        except OSError as error:
            raise Invalid(f"{path} cannot be read: {error.strerror}.") from error
    if sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    return sys.stdin.buffer.read()


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


MemoryId = Annotated[str, Argument(metavar="ID", help="The memory's id, such as m-7.", complete=complete_memory)]
SessionId = Annotated[str, Argument(metavar="SESSION", help="The session's id.", complete=complete_session)]
OfKind = Annotated[Kind | None, Option(help="Only this kind.")]
Limit = Annotated[int, Option(help="Maximum number of results.")]
Where = Annotated[
    str | None,
    Option(metavar="FILTER", help="Only what passes this filter, such as \"tags = food and metadata.city = 'Oslo'\"."),
]
Metadata = Annotated[
    list[str] | None,
    Option(
        "--metadata",
        metavar="KEY=VALUE",
        help="A field of your own, such as city=Oslo, or a JSON object; repeat for more.",
    ),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, Option("--dry-run", help="Write nothing; show what would happen.")]


class FilterOptions(TypedDict):
    """Options that filter memories."""

    where: Where
    tag: Annotated[str | None, Option(help="Only memories with this tag.")]
    session: Annotated[
        str | None, Option(metavar="ID", help="Only of this conversation.", is_rare=True, complete=complete_session)
    ]


_ARGUMENTS = {"session": "session_id", "kind": "kinds", "source": "sources"}
"""Arguments of the library for options of another name."""


def name_options(options: FilterOptions) -> dict[str, Any]:
    """Return the options that are set, as arguments of the library."""
    return {_ARGUMENTS.get(name, name): value for name, value in options.items() if value not in (None, "", [])}


def confirm_or_refuse(run: Run, question: str, *, refusal: str) -> None:
    """Ask the person at the terminal. Raises: Invalid when there is none, or the answer is no."""
    if not run.has_terminal:
        raise Invalid(f"{refusal}, because there is no terminal to confirm on. Add --yes.")
    if not click.confirm(safe(question), err=True):
        raise Invalid(f"{refusal}.")


def parse_metadata(given: Sequence[str] | None) -> dict[str, Any] | None:
    """Parse metadata of the form `key=value`, where a value may be JSON, or JSON objects. None if there is none."""
    if not given:
        return None
    found: dict[str, Any] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if each.lstrip().startswith("{"):
            read = _parse_json(each)
            if not isinstance(read, dict):
                raise click.BadParameter("--metadata begins like a JSON object but is none.")
            found |= read
        elif not equals or not key:
            raise click.BadParameter("--metadata takes KEY=VALUE, such as city=Oslo, or a JSON object.")
        else:
            found[key] = _parse_json(value)
    return found


def _parse_json(text: str) -> Any:
    """Return the value of a JSON text; another text is a value itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


AsOf = Annotated[
    datetime | None,
    Option(metavar="TIME", parser=parse_time, help="As of this time; local time unless a zone is given."),
]

Secrets = Annotated[
    str | None,
    Option(metavar="MODE", help="Handling of what seems to be a secret: reject, redact or flag.", is_rare=True),
]


class ModelOptions(TypedDict):
    """Options that select the model. What is not given is as the settings say."""

    openai_model: Annotated[str | None, Option(metavar="NAME", help="The language model.", is_rare=True)]
    openai_base_url: Annotated[str | None, Option(metavar="URL", help="The model's endpoint.", is_rare=True)]


class SummaryOptions(ModelOptions):
    """Options of summaries."""

    summary_enabled: Annotated[
        bool | None, Option("--summary-enabled/--no-summary-enabled", help="Summarise old turns.", is_rare=True)
    ]
    summary_threshold: Annotated[
        int | None, Option(metavar="N", help="Messages after which old ones are summarised.", is_rare=True)
    ]
    summary_keep_last: Annotated[
        int | None, Option(metavar="N", help="Newest messages that stay unsummarised.", is_rare=True)
    ]
    openai_summary_model: Annotated[
        str | None, Option(metavar="NAME", help="Another model for summaries.", is_rare=True)
    ]
    openai_summary_base_url: Annotated[
        str | None, Option(metavar="URL", help="Another endpoint for summaries.", is_rare=True)
    ]


MinRelevance = Annotated[float | None, Option("--min-relevance", help="Leave out results of less relevance, 0 to 1.")]
