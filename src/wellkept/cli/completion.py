"""Shell completion of what only the store knows: agents, and the ids of an agent's records.

Pressing Tab must do no harm: completion creates nothing, and offers nothing when anything goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

import wellkept
from wellkept.cli.text import HINT_CHARS, one_line
from wellkept.errors import WellkeptError
from wellkept.settings import Settings

if TYPE_CHECKING:
    from wellkept.api.wellkept import Wellkept

MAX_OFFERS = 50
FLAGS = ("url", "tenant", "agent")
Offers = list[tuple[str, str]]
"""Completions, each with a description."""


def complete_agent(ctx: click.Context, incomplete: str) -> Offers:
    """Offer the tenant's agents."""
    return _complete(ctx, incomplete, lambda store: ((each.id, each.name) for each in store.tenant().agents.list()))


def complete_memory(ctx: click.Context, incomplete: str) -> Offers:
    """Offer the agent's newest memories."""
    return _complete(
        ctx, incomplete, lambda store: ((each.id, each.text) for each in store.agent().list(limit=MAX_OFFERS))
    )


def complete_session(ctx: click.Context, incomplete: str) -> Offers:
    """Offer the agent's latest conversations."""
    return _complete(
        ctx,
        incomplete,
        lambda store: ((each.id, each.summary) for each in store.agent().sessions.list(limit=MAX_OFFERS)),
    )


def complete_detail(ctx: click.Context, incomplete: str) -> Offers:
    """Offer the agent's newest details."""
    return _complete(
        ctx, incomplete, lambda store: ((each.key, each.description) for each in store.agent().details.search(""))
    )


def complete_document(ctx: click.Context, incomplete: str) -> Offers:
    """Offer the tenant's documents."""
    return _complete(ctx, incomplete, lambda store: ((each.id, each.title) for each in store.tenant().knowledge.list()))


def _complete(ctx: click.Context, incomplete: str, find: Callable[[Wellkept], Iterable[tuple[str, str]]]) -> Offers:
    try:
        settings = Settings.load(flags={name: ctx.params.get(name) for name in FLAGS})
        if not _has_store(settings.store_url):
            return []
        with wellkept.Wellkept(settings=replace(settings, embedder="off", skills=())) as store:
            return [(id, one_line(about)[:HINT_CHARS]) for id, about in find(store) if id.startswith(incomplete)]
    except WellkeptError:
        return []


def _has_store(url: str) -> bool:
    store = import_module("wellkept.store")
    return bool(store.is_postgres(url)) or Path(store.sqlite_path(url)).is_file()
