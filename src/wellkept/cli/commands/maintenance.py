"""Maintenance of the store: archive, scan for secrets, make vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import wellkept
from wellkept.cli.options import read_text
from wellkept.cli.output import Column, Grid, Output, Styled, tick
from wellkept.cli.parameters import Argument
from wellkept.cli.run import Command, Run
from wellkept.cli.text import EMPTY, one_line, safe
from wellkept.errors import Invalid
from wellkept.settings import Settings

if TYPE_CHECKING:
    from wellkept.extension import Embedder
    from wellkept.secrets.stored import Sighting
    from wellkept.upkeep.maintain import MaintenanceReport

NO_EMBEDDER = "off"


def maintain(run: Run) -> None:
    """Archive memories that expired, are not used or exceed the quota.

    Covers every tenant and agent of the store, and computes missing vectors."""
    with run.progress("Maintaining") as bar:
        report = run.store.maintain(progress=bar.report)
    run.show(_render_report(report))


def scan(run: Run) -> None:
    """Search everything the tenant has stored for secrets.

    That is memories, conversations, long texts, documents, workflows, logged prompts, audit events and agents."""
    with run.progress("Scanning") as bar:
        found = list(run.tenant.scan(progress=bar.report))
    run.show(_render_sightings(found))


def allow(
    run: Run, text: Annotated[str, Argument(help="The text that holds no secret; - reads standard input.")]
) -> None:
    """Allow a text that only looks like a secret, so that it can be stored.

    Only its hash is kept."""
    run.show(_render_allowed(run.tenant.allow_secret(read_text(text))))


def reembed(run: Run) -> None:
    """Compute missing vectors, or all of them after a change of embedder, and repair the search index.

    Covers every tenant and agent of the store."""
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
        count = store.embed_waiting(progress=bar.report)
    run.show(_render_reembedded(count, embedder.name, mended=mended))


COMMANDS = (
    Command(run=maintain, example="wellkept maintain"),
    Command(run=reembed, example="WELLKEPT_EMBEDDER=minilm wellkept reembed"),
)
SECRET_COMMANDS = (
    Command(run=scan, example="wellkept secrets scan --tenant acme"),
    Command(run=allow, example="wellkept secrets allow 'AKIAIOSFODNN7EXAMPLQ is a sample'"),
)


def open_embedder(settings: Settings) -> Embedder | None:
    """Open the embedder the settings name. Raises: Invalid, ModelError."""
    providers = import_module("wellkept.providers.embedders")
    chosen: Embedder | None = providers.open_embedder(
        settings.embedder, api_key=settings.openai_api_key, base_url=settings.openai_base_url
    )
    return chosen


def _render_report(report: MaintenanceReport) -> Output:
    values = {name: (value, one_line(str(value))) for name, value in asdict(report).items()}
    return Output(
        json=asdict(report) | {"archived": report.archived},
        lines=[f"{name}: {text or EMPTY}" for name, (_, text) in values.items()],
        blocks=[
            Grid(
                [
                    (Styled(name, "dim"), Styled(text, "bold" if value else ""))
                    for name, (value, text) in values.items()
                    if value != ""
                ]
            )
        ],
    )


def _render_sightings(sightings: Sequence[Sighting]) -> Output:
    """Render what looks like a secret."""
    rows = [(each.shelf, safe(each.agent or EMPTY), safe(each.id), ", ".join(each.rules)) for each in sightings]
    return Output(
        json={"items": [asdict(each) for each in sightings]},
        lines=rows,
        columns=(
            Column("Shelf", "cyan"),
            Column("Agent", "cyan"),
            Column("Id", "cyan", whole=True),
            Column("Seems to hold", "red"),
        ),
        rows=rows,
        if_empty=(tick(True), "Nothing that is stored looks like a secret."),
    )


def _render_allowed(count: int) -> Output:
    line = f"Allowed: {count}"
    return Output(json={"allowed": count}, lines=[line], blocks=[(tick(True), line)])


def _render_reembedded(count: int, embedder: str, *, mended: int) -> Output:
    lines = []
    if mended:
        lines.append(f"Mended {mended:,} {'entry' if mended == 1 else 'entries'} of the search index")
    if count or not mended:
        lines.append(f"Embedded {count:,} with {embedder}")
    return Output(
        json={"ok": True, "embedded": count, "embedder": embedder, "mended": mended},
        lines=lines,
        blocks=[(tick(True), line) for line in lines],
    )
