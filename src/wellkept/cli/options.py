"""Values of commands: options that several have, completion, and reading what is given.

Pressing Tab must do no harm: completion creates nothing, and offers nothing when anything goes wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import click

import wellkept
from wellkept.cli.output import excerpt, safe
from wellkept.errors import Invalid, WellkeptError
from wellkept.settings import Settings

if TYPE_CHECKING:
    from wellkept.api.wellkept import Wellkept
    from wellkept.cli.run import Run

STANDARD_INPUT = "-"
MAX_INPUT_BYTES = 1_000_000
"""More than any memory may hold, so that a file sent by mistake is not read to its end."""

MAX_OFFERS = 50
Offers = list[tuple[str, str]]
"""Completions, each with a description."""


def _offer(find: Callable[[Wellkept], Iterable[tuple[str, str]]]) -> Callable[[click.Context, str], Offers]:
    """Return a function that offers ids, each with a description, of records in the store."""

    def complete(ctx: click.Context, incomplete: str) -> Offers:
        try:
            flags = {name: ctx.params.get(name) for name in ("url", "tenant", "agent")}
            settings, stores = Settings.load(flags=flags), import_module("wellkept.store")
            url = settings.store_url
            if not stores.is_postgres(url) and not Path(stores.sqlite_path(url)).is_file():
                return []
            with wellkept.Wellkept(settings=replace(settings, embedder="off", skills=())) as store:
                return [(id, excerpt(about)) for id, about in find(store) if id.startswith(incomplete)]
        except WellkeptError:
            return []

    return complete


complete_agent = _offer(lambda store: ((each.id, each.name) for each in store.tenant().agents.list()))
complete_memory = _offer(lambda store: ((each.id, each.text) for each in store.agent().list(limit=MAX_OFFERS)))
complete_session = _offer(lambda store: ((each.id, each.summary) for each in store.agent().sessions.list()))
complete_detail = _offer(lambda store: ((each.key, each.description) for each in store.agent().details.search("")))
complete_document = _offer(lambda store: ((each.id, each.title) for each in store.tenant().knowledge.list()))

MemoryId = Annotated[str, complete_memory]
SessionId = Annotated[str, complete_session]
Metadata = dict[str, Any] | None


class FilterOptions(TypedDict):
    """Options that filter memories, by the names of the library.

    --tag: Only memories with this tag.
    Rare:
    --session ID: Only of this conversation."""

    where: str | None
    tag: str | None
    session_id: Annotated[str | None, complete_session]


class ModelOptions(TypedDict):
    """Options that select the model. What is not given is as the settings say.

    Rare:
    --openai-model NAME: The language model.
    --openai-base-url URL: The model's endpoint."""

    openai_model: str | None
    openai_base_url: str | None


class SummaryOptions(ModelOptions):
    """Options of summaries.

    Rare:
    --openai-model NAME: The language model.
    --openai-base-url URL: The model's endpoint.
    --summary-enabled/--no-summary-enabled: Summarise old turns.
    --summary-threshold N: Messages after which old ones are summarised.
    --summary-keep-last N: Newest messages that stay unsummarised.
    --openai-summary-model NAME: Another model for summaries.
    --openai-summary-base-url URL: Another endpoint for summaries."""

    summary_enabled: bool | None
    summary_threshold: int | None
    summary_keep_last: int | None
    openai_summary_model: str | None
    openai_summary_base_url: str | None


def drop_missing(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are given."""
    return {name: value for name, value in options.items() if value not in (None, "", [])}


def parse_time(text: str) -> datetime:
    """Parse a time from the command line; without a zone it is local time, as tables show it."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.astimezone()
    except (ValueError, OverflowError):
        raise click.BadParameter("Use a time such as 2026-01-31 or 2026-01-31T12:00:00Z.") from None


def parse_metadata(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> Metadata:
    """Parse metadata of the form `key=value`, where a value may be JSON, or JSON objects. None if there is none."""
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
    return found if given else None


def _parse_json(text: str) -> Any:
    """Return the value of a JSON text; another text is a value itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def read_file(path: Path | str) -> bytes:
    """Return the content of a file, or standard input for "-". Raises: Invalid."""
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None:
            raise Invalid("There is no standard input to read.")
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}.") from error


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


def confirm_or_refuse(run: Run, question: str, *, refusal: str) -> None:
    """Ask the person at the terminal. Raises: Invalid when there is none, or the answer is no."""
    if not run.has_terminal:
        raise Invalid(f"{refusal}, because there is no terminal to confirm on. Add --yes.")
    if not click.confirm(safe(question), err=True):
        raise Invalid(f"{refusal}.")
