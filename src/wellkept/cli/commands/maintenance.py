"""Maintenance of the store: archive, scan for secrets, make vectors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import wellkept
from wellkept.cli.options import read_text
from wellkept.cli.output import Column, Output, list_records, say, show_fields, tick
from wellkept.cli.parameters import Argument
from wellkept.cli.run import Run
from wellkept.cli.text import count, json_record, plain
from wellkept.errors import Invalid
from wellkept.settings import Settings

if TYPE_CHECKING:
    from wellkept.extension import Embedder

NO_EMBEDDER = "off"


def maintain(run: Run) -> None:
    """Archive memories that expired, are not used or exceed the quota.

    Covers every tenant and agent of the store, and computes missing vectors.

    Example: wellkept admin maintain"""
    with run.progress("Maintaining") as bar:
        report = run.store.maintain(progress=bar.report)
    values = json_record(report)
    lines = [f"{name}: {plain(value)}" for name, value in values.items()]
    done = show_fields({name: str(value) for name, value in values.items()}, values | {"archived": report.archived})
    run.show(Output(json=done.json, lines=lines, blocks=done.blocks))


def scan(run: Run) -> None:
    """Search everything the tenant has stored for secrets.

    That is memories, conversations, long texts, documents, workflows, logged prompts, audit events and agents.

    Example: wellkept admin secrets scan --tenant acme"""
    with run.progress("Scanning") as bar:
        found = list(run.tenant.secrets.scan(progress=bar.report))
    none = (tick(True), "Nothing that is stored looks like a secret.")
    run.show(list_records(SIGHTING_COLUMNS, found, if_empty=none))


def allow(
    run: Run, text: Annotated[str, Argument(help="The text that holds no secret; - reads standard input.")]
) -> None:
    """Allow a text that only looks like a secret, so that it can be stored.

    Only its hash is kept.

    Example: wellkept admin secrets allow 'AKIAIOSFODNN7EXAMPLQ is a sample'"""
    allowed = run.tenant.secrets.allow(read_text(text))
    run.show(say(f"Allowed: {allowed}", {"allowed": allowed}))


def reembed(run: Run) -> None:
    """Compute missing vectors, or all of them after a change of embedder, and repair the search index.

    Covers every tenant and agent of the store.

    Example: WELLKEPT_EMBEDDER=minilm wellkept admin reembed"""
    embedder = open_embedder(run.settings)
    if embedder is None:
        mended = run.store.mend_index()
        if not mended:
            raise Invalid("There is no embedder to make vectors with; set WELLKEPT_EMBEDDER, for example to minilm.")
        run.show(_render_reembedded(0, NO_EMBEDDER, mended=mended))
        return
    with (
        wellkept.Wellkept(settings=run.settings, embedder=embedder, replace_embedder=True) as store,
        run.progress("Embedding") as bar,
    ):
        mended = store.mend_index()
        embedded = store.embedding.embed_waiting(progress=bar.report)
    run.show(_render_reembedded(embedded, embedder.name, mended=mended))


SIGHTING_COLUMNS = (
    Column("Shelf", lambda each: each.shelf, "cyan"),
    Column("Agent", lambda each: each.agent, "cyan"),
    Column("Id", lambda each: each.id, "cyan", is_whole=True),
    Column("Seems to hold", lambda each: ", ".join(each.rules), "red"),
)


def open_embedder(settings: Settings) -> Embedder | None:
    """Open the embedder the settings name. Raises: Invalid, ModelError."""
    providers = import_module("wellkept.providers.embedders")
    chosen: Embedder | None = providers.open_embedder(
        settings.embedder, api_key=settings.openai_api_key, base_url=settings.openai_base_url
    )
    return chosen


def _render_reembedded(embedded: int, embedder: str, *, mended: int) -> Output:
    lines = []
    if mended:
        lines.append(f"Mended {count(mended, 'entry')} of the search index")
    if embedded or not mended:
        lines.append(f"Embedded {embedded:,} with {embedder}")
    return Output(
        json={"ok": True, "embedded": embedded, "embedder": embedder, "mended": mended},
        lines=lines,
        blocks=[(tick(True), line) for line in lines],
    )
