"""`doctor`: one look at everything recollect needs, and what to do about what is broken."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import recollect
from recollect.cli.progress import Bar
from recollect.cli.run import REFUSED, Command, Run
from recollect.cli.upkeep import NO_EMBEDDER, POSTGRES, open_embedder
from recollect.errors import Invalid, ModelError, RecollectError, SchemaMismatch
from recollect.model import Check, RefusedText
from recollect.settings import Settings, masked

if TYPE_CHECKING:
    from recollect.ports import Model

IN_MEMORY = ":memory:"
PROBE = "Does it work?"
NOBODY = "recollect-doctor"
"""An agent without memories; asking for it does not make it."""

EMBEDDER_ADVICE = "Mend it, or set RECOLLECT_EMBEDDER to static; meanwhile memories are found by their words."
MAX_NAMED = 5
GIGABYTE = 1024**3
LEAST_FREE = GIGABYTE // 10
"""Bytes on the disk below which a write may fail at any time."""

LITTLE_FREE = GIGABYTE
PROBE_TOKENS = 8
NOT_ASKED = "configured; --online asks it"
MODELS = {"main": "openai_model", "summary": "openai_summary_model", "fast": "openai_fast_model"}
"""The settings that name a model for each purpose."""


def doctor(
    run: Run,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out what reads everything: each page, stored text and event.")
    ] = False,
    online: Annotated[
        bool, typer.Option("--online", help="Also ask the language models that are configured for an answer.")
    ] = False,
) -> None:
    """Check that everything works, or say what to do."""
    checks = list(_checks(run, is_quick=quick, is_online=online))
    run.view.checks(checks)
    if not all(check.is_ok for check in checks):
        raise typer.Exit(REFUSED)


COMMANDS = (Command(run=doctor, example="recollect doctor --quick"),)


def _checks(run: Run, *, is_quick: bool, is_online: bool) -> Iterator[Check]:
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
        yield from _store_checks(run, settings, is_quick=is_quick)
    yield from _model_checks(settings, is_online=is_online)


def _skills(settings: Settings) -> Check:
    files = import_module("recollect.providers.skill_files").SkillFolders(settings.skills)
    try:
        count = len(import_module("recollect.services.knowledge.skills").Skills(files)())
    except Invalid as error:
        return Check(name="skills", is_ok=False, says=str(error), advice="Nothing opens the store before it is mended.")
    return Check(name="skills", is_ok=True, says=f"{count:,} {'skill' if count == 1 else 'skills'} can be read")


def _engine_checks(settings: Settings) -> Iterator[Check]:
    if settings.store_url.startswith(POSTGRES):
        yield _postgres_driver()
        return
    apsw = import_module("apsw")
    oldest = import_module("recollect.store.sqlite.engine").OLDEST_SAFE_SQLITE
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
        folder = Path(path).absolute().parent
        yield _folder(folder)
        if Path(path).exists() and not os.access(path, os.R_OK | os.W_OK):
            advice = "Become its owner, or let its owner give you the right to write: chmod u+rw."
            yield Check(name="file", is_ok=False, says=f"{path} cannot be read and written", advice=advice)
        yield from _exposed(Path(path))
        yield _disk(folder)


def _exposed(path: Path) -> Iterator[Check]:
    """Name files other users of this machine may read; they keep the rights they have."""
    exposed = import_module("recollect.store.sqlite.files").find_exposed(path)
    if exposed:
        names = " ".join(map(str, exposed))
        advice = f"Other users of this machine can read what agents remember. Run: chmod -R go= {names}"
        yield Check(name="rights", is_ok=True, says="others may read the store", advice=advice)


def _postgres_driver() -> Check:
    try:
        version = import_module("psycopg").__version__
    except ModuleNotFoundError:
        advice = "Run: pip install 'recollect[postgres]'"
        return Check(name="driver", is_ok=False, says="psycopg is not installed", advice=advice)
    return Check(name="driver", is_ok=True, says=f"psycopg {version}")


def _folder(folder: Path) -> Check:
    existing = _existing(folder)
    is_ok = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    advice = "" if is_ok else f"Make {existing} a folder you may write to, or keep memories elsewhere with --url."
    says = f"{folder} can be written to" if is_ok else f"{folder} cannot be written to"
    return Check(name="folder", is_ok=is_ok, says=says, advice=advice)


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(_existing(folder)).free
    advice = "Free some space: writes fail when the disk is full." if free < LITTLE_FREE else ""
    return Check(name="disk", is_ok=free >= LEAST_FREE, says=f"{free / GIGABYTE:,.1f} GB free", advice=advice)


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


def _store_checks(run: Run, settings: Settings, *, is_quick: bool) -> Iterator[Check]:
    """The store without its embedder first: that way it is clear which of the two is broken."""
    address = masked(settings.store_url)
    try:
        with (
            recollect.Recollect(settings=replace(settings, embedder=NO_EMBEDDER)) as store,
            Bar(run.view, "Checking") as bar,
        ):
            checks = store.check(is_quick=is_quick, progress=bar.report)
            is_readable = all(check.is_ok for check in checks if check.name == "schema")
            waiting = store.count_waiting() if is_readable else 0
    except SchemaMismatch as error:
        yield Check(name="store", is_ok=True, says=address)
        yield Check(name="schema", is_ok=False, says=str(error))
        return
    except RecollectError as error:
        is_file = not settings.store_url.startswith(POSTGRES)
        advice = "Check the address, or use --url" + ("; if the file is damaged, restore a backup." if is_file else ".")
        yield Check(name="store", is_ok=False, says=f"{address}: {error}", advice=advice)
        return
    yield Check(name="store", is_ok=True, says=address)
    yield from checks
    if is_readable:
        yield from _embedder_checks(settings, is_waiting=waiting > 0)
        yield _waiting(waiting, settings)


def _model_checks(settings: Settings, *, is_online: bool) -> Iterator[Check]:
    """Each model once, however many purposes it serves."""
    providers = import_module("recollect.providers.models")
    try:
        models = providers.open_models(settings)
    except Invalid as error:
        yield Check(name="model", is_ok=False, says=str(error), advice="Correct the setting, or leave the model out.")
        return
    named = {getattr(settings, setting): getattr(models, purpose) for purpose, setting in MODELS.items()}
    for name, model in named.items():
        if name and model is not None:
            yield _answer(name, model) if is_online else Check(name="model", is_ok=True, says=f"{name}: {NOT_ASKED}")


def _answer(name: str, model: Model) -> Check:
    try:
        model.complete([{"role": "user", "content": PROBE}], max_tokens=PROBE_TOKENS)
    except ModelError as error:
        advice = "Memory works without it; turns are summarised by a digest meanwhile."
        return Check(name="model", is_ok=False, says=f"{name}: {error}", advice=advice)
    return Check(name="model", is_ok=True, says=f"{name} answers")


def _waiting(count: int, settings: Settings) -> Check:
    """Not broken either way: without its vector a text is found by its words."""
    says = f"{count:,} {'text has' if count == 1 else 'texts have'} no vector yet" if count else "nothing"
    is_mendable = count and settings.embedder != NO_EMBEDDER
    advice = "Found by their words meanwhile; to make the vectors, run: recollect reembed" if is_mendable else ""
    return Check(name="waiting", is_ok=True, says=says, advice=advice)


def _embedder_checks(settings: Settings, *, is_waiting: bool) -> Iterator[Check]:
    try:
        embedder = open_embedder(settings)
        if embedder is None:
            yield Check(name="embedder", is_ok=True, says="off: memories are found by their words alone")
            return
        embedder.embed([PROBE])
    except (Invalid, ModelError) as error:
        yield Check(name="embedder", is_ok=False, says=str(error), advice=EMBEDDER_ADVICE)
        return
    yield Check(name="embedder", is_ok=True, says=f"{embedder.name}, {embedder.dimensions} dimensions")
    try:
        with recollect.Recollect(settings=settings, embedder=embedder) as store:
            store.agent(NOBODY).recall(PROBE, limit=1)  # a remote embedder is not compared before it is used
            refused = store.find_refused() if is_waiting else ()
    except SchemaMismatch as error:
        yield Check(name="vectors", is_ok=False, says=str(error))
    except ModelError as error:
        yield Check(name="embedder", is_ok=False, says=str(error), advice=EMBEDDER_ADVICE)
    else:
        yield Check(name="vectors", is_ok=True, says="made by this embedder")
        yield from _refused(refused)


def _refused(refused: Sequence[RefusedText]) -> Iterator[Check]:
    """Name the texts that will never get a vector as they are."""
    if refused:
        names = [f"{each.tenant} {each.agent} {each.id}: {each.problem}".replace("  ", " ") for each in refused]
        more = f" And {len(refused) - MAX_NAMED:,} more." if len(refused) > MAX_NAMED else ""
        advice = "Found by their words meanwhile, and tried again later; shorten or edit them, or use another embedder."
        yield Check(name="refused", is_ok=False, says=" ".join(names[:MAX_NAMED]) + more, advice=advice)
