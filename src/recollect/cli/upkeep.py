"""Looking after the store: maintain, scan, reembed, and a database cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

import recollect
from recollect.cli.memories import given_text
from recollect.cli.progress import Bar
from recollect.cli.run import Command, Run, optional_module
from recollect.errors import Invalid
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.ports import Embedder, Vector

POSTGRES = ("postgresql://", "postgres://")
NO_EMBEDDER = "off"


def maintain(run: Run) -> None:
    """Let memories fade: archive what expired, what nobody asks for and what exceeds the quota.

    This covers every tenant and agent of the store, and makes missing vectors."""
    with Bar(run.view, "Maintaining") as bar:
        report = run.store.maintain(progress=bar.report)
    run.view.maintained(report)


def scan(
    run: Run,
    allow: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Say that what looks like a secret in this text is none; - reads it from standard input.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Look for secrets in what all agents of the tenant have stored."""
    if allow is None:
        with Bar(run.view, "Scanning") as bar:
            run.view.sightings(run.tenant.scan(progress=bar.report))
    else:
        run.view.allowed(run.tenant.allow_secret(given_text(allow)))


def distribute(run: Run) -> None:
    """Spread the tables of a PostgreSQL database over a Citus cluster, by tenant."""
    url = run.settings.store_url
    if not url.startswith(POSTGRES):
        raise Invalid("Only a PostgreSQL database can be distributed; name one with --url postgresql://…")
    with recollect.Recollect(settings=replace(run.settings, embedder=NO_EMBEDDER)):
        pass  # the tables are there, and the database can be reached
    citus = optional_module("recollect.store.postgres.citus", needs="PostgreSQL", extra="postgres")
    run.view.distributed(citus.distribute(url))


def reembed(run: Run) -> None:
    """Make missing vectors, and all of them after a change of embedder; mend what is missing from the search index.

    This covers every tenant and agent of the store."""
    embedder = open_embedder(run.settings)
    if embedder is None:
        mended = run.store.mend_index()
        if not mended:
            raise Invalid("There is no embedder to make vectors with; set RECOLLECT_EMBEDDER, for example to static.")
        run.view.reembedded(0, NO_EMBEDDER, mended=mended)
        return
    reporting = _Reporting(embedder)
    with (
        recollect.Recollect(settings=run.settings, embedder=reporting, replace_embedder=True) as store,
        Bar(run.view, "Embedding") as bar,
    ):
        mended = store.mend_index()
        waiting = store.count_waiting()
        reporting.report = lambda done: bar.report(done, waiting)
        count = store.embed_waiting()
    run.view.reembedded(count, embedder.name, mended=mended)


COMMANDS = (
    Command(run=maintain, example="recollect maintain"),
    Command(run=scan, example="recollect scan --tenant acme"),
    Command(run=reembed, example="RECOLLECT_EMBEDDER=static recollect reembed"),
)
DB_COMMANDS = (Command(run=distribute, example="recollect db distribute --url postgresql://app@db/memories"),)


class _Reporting:
    """An embedder that tells how many texts it has done."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.is_remote = bool(getattr(embedder, "is_remote", False))
        self.report: Callable[[int], None] = lambda done: None
        self._embedder = embedder
        self._done = 0

    def embed(self, texts: Sequence[str]) -> Vector:
        vectors = self._embedder.embed(texts)
        self._done += len(texts)
        self.report(self._done)
        return vectors


def open_embedder(settings: Settings) -> Embedder | None:
    """Raises: Invalid, ModelError."""
    providers = import_module("recollect.providers.embedders")
    chosen = providers.open_embedder(
        settings.embedder, api_key=settings.openai_api_key, base_url=settings.openai_base_url
    )
    return None if chosen is None else providers.CheckedEmbedder(chosen)
