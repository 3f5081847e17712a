"""What a shell offers behind the Tab key where only the store knows: agents, and the ids of what an agent has.

A key that is pressed by habit must do no harm: nothing is made that is not there, and whatever goes wrong, nothing is
offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import recollect
from recollect.cli.view import HINT_CHARS, one_line
from recollect.errors import RecollectError
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.api.recollect import Recollect

MOST_OFFERED = 50
FLAGS = ("url", "tenant", "agent")
Offers = list[tuple[str, str]]
"""What can be typed, and what it is."""


def complete_agent(ctx: typer.Context, incomplete: str) -> Offers:
    """The tenant's agents."""
    return _offered(ctx, incomplete, lambda store: ((each.id, each.name) for each in store.tenant().list_agents()))


def complete_memory(ctx: typer.Context, incomplete: str) -> Offers:
    """The agent's newest memories."""
    return _offered(
        ctx, incomplete, lambda store: ((each.id, each.text) for each in store.agent().list(limit=MOST_OFFERED))
    )


def complete_session(ctx: typer.Context, incomplete: str) -> Offers:
    """The agent's latest conversations."""
    return _offered(
        ctx, incomplete, lambda store: ((each.id, each.summary) for each in store.agent().sessions(limit=MOST_OFFERED))
    )


def complete_detail(ctx: typer.Context, incomplete: str) -> Offers:
    """The agent's newest long texts."""
    return _offered(
        ctx, incomplete, lambda store: ((each.key, each.description) for each in store.agent().search_details(""))
    )


def complete_document(ctx: typer.Context, incomplete: str) -> Offers:
    """The tenant's documents."""
    return _offered(ctx, incomplete, lambda store: ((each.id, each.title) for each in store.tenant().list_documents()))


def _offered(ctx: typer.Context, incomplete: str, ask: Callable[[Recollect], Iterable[tuple[str, str]]]) -> Offers:
    try:
        settings = Settings.load(flags={name: ctx.params.get(name) for name in FLAGS})
        if not _is_there(settings.store_url):
            return []
        with recollect.Recollect(settings=replace(settings, embedder="off", skills=())) as store:
            return [(id, one_line(about)[:HINT_CHARS]) for id, about in ask(store) if id.startswith(incomplete)]
    except RecollectError:
        return []


def _is_there(url: str) -> bool:
    store = import_module("recollect.store")
    return bool(store.is_postgres(url)) or Path(store.sqlite_path(url)).is_file()
