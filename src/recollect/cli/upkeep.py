"""Looking after the store: doctor, maintain, scan, reembed, and a database cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import recollect
from recollect.cli.memories import given_text
from recollect.cli.run import REFUSED, Command, Run, optional_module
from recollect.cli.view import Check
from recollect.errors import Invalid, ModelError, RecollectError, SchemaMismatch
from recollect.settings import Settings, masked

if TYPE_CHECKING:
    from recollect.ports import Embedder, Vector

POSTGRES = ("postgresql://", "postgres://")
NO_EMBEDDER = "off"
IN_MEMORY = ":memory:"
PROBE = "Does it work?"
NOBODY = "recollect-doctor"
"""An agent without memories; asking for it does not make it."""


def doctor(run: Run) -> None:
    """Check that everything works, or say what to do."""
    checks = list(_checks(run))
    run.view.checks(checks)
    if not all(check.is_ok for check in checks):
        raise typer.Exit(REFUSED)


def maintain(run: Run) -> None:
    """Let memories fade: archive what expired, what nobody asks for and what exceeds the quota.

    This covers every tenant and agent of the store, and makes missing vectors."""
    run.view.maintained(run.store.maintain())


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
        run.view.sightings(run.tenant.scan())
    else:
        run.view.allowed(run.tenant.allow_secret(given_text(allow)))


def distribute(run: Run) -> None:
    """Spread the tables of a PostgreSQL database over a Citus cluster, by tenant."""
    url = run.settings.store_url
    if not url.startswith(POSTGRES):
        raise Invalid("Only a PostgreSQL database can be distributed; name one with --url postgresql://…")
    with recollect.Recollect(settings=replace(run.settings, embedder=NO_EMBEDDER)):
        pass  # the tables are there, and the database can be reached
    citus = optional_module("recollect.store.citus", needs="PostgreSQL", extra="postgres")
    run.view.distributed(citus.distribute(url))


def reembed(run: Run) -> None:
    """Make missing vectors, and all of them after a change of embedder.

    This covers every tenant and agent of the store."""
    embedder = _open_embedder(run.settings)
    if embedder is None:
        raise Invalid("There is no embedder to make vectors with; set RECOLLECT_EMBEDDER, for example to static.")
    reporting = _Reporting(embedder)
    with (
        recollect.Recollect(settings=run.settings, embedder=reporting, replace_embedder=True) as store,
        run.view.progress("Embedding", store.count_waiting()) as report,
    ):
        reporting.report = report
        count = store.embed_waiting()
    run.view.reembedded(count, embedder.name)


COMMANDS = (
    Command(run=doctor, example="recollect doctor"),
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

    def embed(self, texts: Sequence[str]) -> Vector:
        vectors = self._embedder.embed(texts)
        self.report(len(texts))
        return vectors


def _open_embedder(settings: Settings) -> Embedder | None:
    """Raises: Invalid, ModelError."""
    providers = import_module("recollect.providers.embedders")
    chosen = providers.open_embedder(
        settings.embedder, api_key=settings.openai_api_key, base_url=settings.openai_base_url
    )
    return None if chosen is None else providers.CheckedEmbedder(chosen)


def _checks(run: Run) -> Iterator[Check]:
    """One check after the other, for as long as the next one makes sense."""
    yield Check(name="recollect", is_ok=True, says=f"version {recollect.__version__}")
    try:
        settings = run.settings
    except Invalid as error:
        yield Check(name="settings", is_ok=False, says=str(error), advice="Correct it; recollect settings shows them.")
        return
    yield Check(name="settings", is_ok=True, says="all of them can be read")
    if settings.skills:
        yield _skills(settings)
        settings = replace(settings, skills=())
    engine = [*_engine_checks(settings)]
    yield from engine
    if all(check.is_ok for check in engine):
        yield from _store_checks(settings)


def _skills(settings: Settings) -> Check:
    files = import_module("recollect.providers.skill_files").SkillFolders(settings.skills)
    try:
        count = len(import_module("recollect.services.skills").Skills(files)())
    except Invalid as error:
        return Check(name="skills", is_ok=False, says=str(error), advice="Nothing opens the store before it is mended.")
    return Check(name="skills", is_ok=True, says=f"{count:,} {'skill' if count == 1 else 'skills'} can be read")


def _engine_checks(settings: Settings) -> Iterator[Check]:
    if settings.store_url.startswith(POSTGRES):
        yield _postgres_driver()
        return
    apsw = import_module("apsw")
    oldest = import_module("recollect.store.sqlite").OLDEST_SAFE_SQLITE
    version = apsw.sqlite_lib_version()
    is_safe = tuple(int(part) for part in version.split(".")) >= oldest
    advice = "" if is_safe else "This version can corrupt databases; run: pip install -U apsw"
    yield Check(name="sqlite", is_ok=is_safe, says=f"{version} (apsw {apsw.apsw_version()})", advice=advice)
    try:
        path = import_module("recollect.store").sqlite_path(settings.store_url)
    except Invalid as error:
        yield Check(name="store", is_ok=False, says=str(error), advice="Set RECOLLECT_URL or use --url.")
        return
    if path != IN_MEMORY:
        yield _folder(Path(path).absolute().parent)


def _postgres_driver() -> Check:
    try:
        version = import_module("psycopg").__version__
    except ModuleNotFoundError:
        advice = "Run: pip install 'recollect[postgres]'"
        return Check(name="driver", is_ok=False, says="psycopg is not installed", advice=advice)
    return Check(name="driver", is_ok=True, says=f"psycopg {version}")


def _folder(folder: Path) -> Check:
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    is_ok = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    advice = "" if is_ok else f"Make {existing} a folder you may write to, or keep memories elsewhere with --url."
    says = f"{folder} can be written to" if is_ok else f"{folder} cannot be written to"
    return Check(name="folder", is_ok=is_ok, says=says, advice=advice)


def _store_checks(settings: Settings) -> Iterator[Check]:
    """The store without its embedder first: that way it is clear which of the two is broken."""
    address = masked(settings.store_url)
    try:
        with recollect.Recollect(settings=replace(settings, embedder=NO_EMBEDDER)) as store:
            waiting = store.count_waiting()
    except SchemaMismatch as error:
        yield Check(name="store", is_ok=True, says=address)
        yield Check(name="schema", is_ok=False, says=str(error))
        return
    except RecollectError as error:
        yield Check(name="store", is_ok=False, says=f"{address}: {error}", advice="Check the address, or use --url.")
        return
    yield Check(name="store", is_ok=True, says=address)
    yield Check(name="schema", is_ok=True, says="the one this version needs")
    yield from _embedder_checks(settings)
    yield _waiting(waiting, settings)


def _waiting(count: int, settings: Settings) -> Check:
    """Not broken either way: without its vector a text is found by its words."""
    says = f"{count:,} {'text has' if count == 1 else 'texts have'} no vector yet" if count else "nothing"
    is_mendable = count and settings.embedder != NO_EMBEDDER
    advice = "Found by their words meanwhile; to make the vectors, run: recollect reembed" if is_mendable else ""
    return Check(name="waiting", is_ok=True, says=says, advice=advice)


def _embedder_checks(settings: Settings) -> Iterator[Check]:
    try:
        embedder = _open_embedder(settings)
        if embedder is None:
            yield Check(name="embedder", is_ok=True, says="off: memories are found by their words alone")
            return
        embedder.embed([PROBE])
    except (Invalid, ModelError) as error:
        advice = "Mend it, or set RECOLLECT_EMBEDDER to static; meanwhile memories are found by their words."
        yield Check(name="embedder", is_ok=False, says=str(error), advice=advice)
        return
    yield Check(name="embedder", is_ok=True, says=f"{embedder.name}, {embedder.dimensions} dimensions")
    try:
        with recollect.Recollect(settings=settings, embedder=embedder) as store:
            store.agent(NOBODY).recall(PROBE, limit=1)  # a remote embedder is not compared before it is used
    except SchemaMismatch as error:
        yield Check(name="vectors", is_ok=False, says=str(error))
    else:
        yield Check(name="vectors", is_ok=True, says="made by this embedder")
