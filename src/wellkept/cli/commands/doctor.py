"""The installation: show the settings, and check everything wellkept needs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

import wellkept
from wellkept.cli.commands.maintenance import NO_EMBEDDER, open_embedder
from wellkept.cli.database import POSTGRES
from wellkept.cli.output import WIDE, Cell, Column, Grid, Indented, Line, Output, Styled, tick
from wellkept.cli.parameters import Option
from wellkept.cli.run import REFUSED, Command, Run
from wellkept.cli.text import EMPTY, mark, one_line, plain_time
from wellkept.errors import Invalid, ModelError, SchemaMismatch, StoreAway, StoreDamaged, WellkeptError
from wellkept.model import CheckResult, MaintenanceRun, RefusedText
from wellkept.program import advise_install
from wellkept.settings import Settings, masked
from wellkept.settings.origins import SettingValue, describe_settings

if TYPE_CHECKING:
    from wellkept.extension import Model

IN_MEMORY = ":memory:"
PROBE = "Does it work?"
PROBE_AGENT = "wellkept-doctor"
"""An agent without memories; asking for it does not create it."""

EMBEDDER_ADVICE = "Mend it, or set WELLKEPT_EMBEDDER to minilm; meanwhile memories are found by their words."
STORE_ADVICE = {
    StoreAway: "Check the address, or use --url.",
    StoreDamaged: "Restore a backup with wellkept restore, or name another file with --url.",
}
MAX_NAMED = 5
GIGABYTE = 1024**3
LEAST_FREE = GIGABYTE // 10
"""Bytes of free disk space below which a write may fail at any time."""

LITTLE_FREE = GIGABYTE
PROBE_TOKENS = 8
NOT_ASKED = "configured; --online asks it"
MODELS = {"main": "openai_model", "summary": "openai_summary_model", "fast": "openai_fast_model"}
"""Settings that name a model, by the purpose it serves."""


def settings(run: Run) -> None:
    """Show every setting, its value and where the value comes from. Secrets are masked."""
    values = describe_settings(run.settings, run.flags)
    run.show(_render_settings(values, is_wide=run.printer.width >= WIDE))


def doctor(
    run: Run,
    quick: Annotated[
        bool, Option("--quick", help="Skip the checks that read every page, stored text and event.")
    ] = False,
    online: Annotated[
        bool, Option("--online", help="Also ask the language models that are configured for an answer.")
    ] = False,
) -> None:
    """Check that everything works, and advise on what does not."""
    checks = list(_checks(run, is_quick=quick, is_online=online))
    run.show(_render_checks(checks))
    if not all(check.is_ok for check in checks):
        raise click.exceptions.Exit(REFUSED)


COMMANDS = (
    Command(run=settings, example="wellkept settings --url sqlite:///notes.db"),
    Command(run=doctor, example="wellkept doctor --quick"),
)


def _pass(name: str, says: str, advice: str = "") -> CheckResult:
    return CheckResult(name=name, is_ok=True, says=says, advice=advice)


def _fail(name: str, says: str, advice: str = "") -> CheckResult:
    return CheckResult(name=name, is_ok=False, says=says, advice=advice)


def _checks(run: Run, *, is_quick: bool, is_online: bool) -> Iterator[CheckResult]:
    """Run one check after the other, as long as the next one makes sense."""
    yield _pass("wellkept", f"version {wellkept.__version__}")
    try:
        settings = run.settings
    except Invalid as error:
        yield _fail("settings", str(error), "Correct it; wellkept settings shows them.")
        return
    yield _pass("settings", "all of them can be read")
    if settings.skills:
        yield _check_skills(settings)
        settings = replace(settings, skills=())
    engine = [*_engine_checks(settings)]
    yield from engine
    if all(check.is_ok for check in engine):
        yield from _store_checks(run, settings, is_quick=is_quick)
    yield from _model_checks(settings, is_online=is_online)


def _check_skills(settings: Settings) -> CheckResult:
    files = import_module("wellkept.knowledge.skill_files").SkillFolders(settings.skills)
    try:
        count = len(import_module("wellkept.knowledge.skills").Skills(files)())
    except Invalid as error:
        return _fail("skills", str(error), "Nothing opens the store before it is mended.")
    return _pass("skills", f"{count:,} {'skill' if count == 1 else 'skills'} can be read")


def _engine_checks(settings: Settings) -> Iterator[CheckResult]:
    if settings.store_url.startswith(POSTGRES):
        yield _check_driver()
        return
    apsw = import_module("apsw")
    oldest = import_module("wellkept.store.sqlite.engine").OLDEST_SAFE_SQLITE
    version = apsw.sqlite_lib_version()
    is_safe = tuple(int(part) for part in version.split(".")) >= oldest
    advice = "" if is_safe else "This version can corrupt databases; run: pip install -U apsw"
    yield CheckResult(name="sqlite", is_ok=is_safe, says=f"{version} (apsw {apsw.apsw_version()})", advice=advice)
    try:
        path = import_module("wellkept.store").sqlite_path(settings.store_url)
    except Invalid as error:
        yield _fail("store", str(error), "Set WELLKEPT_URL or use --url.")
        return
    if path != IN_MEMORY:
        folder = Path(path).absolute().parent
        yield _check_folder(folder)
        if Path(path).exists() and not os.access(path, os.R_OK | os.W_OK):
            advice = "Become its owner, or let its owner give you the right to write: chmod u+rw."
            yield _fail("file", f"{path} cannot be read and written", advice)
        yield from _check_rights(Path(path))
        yield _check_disk(folder)


def _check_rights(path: Path) -> Iterator[CheckResult]:
    """Name files that other users of this machine can read; their rights are not changed."""
    exposed = import_module("wellkept.store.sqlite.files").find_exposed(path)
    if exposed:
        names = " ".join(map(str, exposed))
        advice = f"Other users of this machine can read what agents remember. Run: chmod -R go= {names}"
        yield _pass("rights", "others may read the store", advice)


def _check_driver() -> CheckResult:
    try:
        version = import_module("psycopg").__version__
    except ModuleNotFoundError:
        advice = f"To install it, {advise_install('postgres')}"
        return _fail("driver", "psycopg is not installed", advice)
    return _pass("driver", f"psycopg {version}")


def _check_folder(folder: Path) -> CheckResult:
    existing = _find_existing(folder)
    is_ok = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    advice = "" if is_ok else f"Make {existing} a folder you may write to, or keep memories elsewhere with --url."
    says = f"{folder} can be written to" if is_ok else f"{folder} cannot be written to"
    return CheckResult(name="folder", is_ok=is_ok, says=says, advice=advice)


def _check_disk(folder: Path) -> CheckResult:
    free = shutil.disk_usage(_find_existing(folder)).free
    advice = "Free some space: writes fail when the disk is full." if free < LITTLE_FREE else ""
    return CheckResult(name="disk", is_ok=free >= LEAST_FREE, says=f"{free / GIGABYTE:,.1f} GB free", advice=advice)


def _find_existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


def _store_checks(run: Run, settings: Settings, *, is_quick: bool) -> Iterator[CheckResult]:
    """Check the store without its embedder first, to tell which of the two is broken."""
    address = masked(settings.store_url)
    try:
        with (
            wellkept.Wellkept(settings=replace(settings, embedder=NO_EMBEDDER)) as store,
            run.progress("Checking") as bar,
        ):
            checks = store.check(is_quick=is_quick, progress=bar.report)
            is_readable = all(check.is_ok for check in checks if check.name == "schema")
            waiting = store.count_waiting() if is_readable else 0
            last = store.maintenance.refresh().last if is_readable else None
    except SchemaMismatch as error:
        yield _pass("store", address)
        yield _fail("schema", str(error))
        return
    except WellkeptError as error:
        # Other failures say themselves what to do.
        advice = next((text for kind, text in STORE_ADVICE.items() if isinstance(error, kind)), "")
        yield _fail("store", f"{address}: {error}", advice)
        return
    yield _pass("store", address)
    yield from checks
    if is_readable:
        yield from _embedder_checks(settings, is_waiting=waiting > 0)
        yield _check_waiting(waiting, settings)
        yield _check_maintenance(last, settings)


def _model_checks(settings: Settings, *, is_online: bool) -> Iterator[CheckResult]:
    """Check each model once, however many purposes it serves."""
    providers = import_module("wellkept.providers.models")
    try:
        models = providers.open_models(settings)
    except Invalid as error:
        yield _fail("model", str(error), "Correct the setting, or leave the model out.")
        return
    named = {getattr(settings, setting): getattr(models, purpose) for purpose, setting in MODELS.items()}
    for name, model in named.items():
        if name and model is not None:
            yield (_check_answer(name, model) if is_online else _pass("model", f"{name}: {NOT_ASKED}"))


def _check_answer(name: str, model: Model) -> CheckResult:
    try:
        model.complete([{"role": "user", "content": PROBE}], max_tokens=PROBE_TOKENS)
    except ModelError as error:
        advice = "Memory works without it; turns are summarised by a digest meanwhile."
        return _fail("model", f"{name}: {error}", advice)
    return _pass("model", f"{name} answers")


def _check_waiting(count: int, settings: Settings) -> CheckResult:
    """Count texts without a vector. Never a failure: they are found by their words."""
    says = f"{count:,} {'text has' if count == 1 else 'texts have'} no vector yet" if count else "nothing"
    is_mendable = count and settings.embedder != NO_EMBEDDER
    advice = "Found by their words meanwhile; to make the vectors, run: wellkept reembed" if is_mendable else ""
    return _pass("waiting", says, advice)


def _check_maintenance(last: MaintenanceRun | None, settings: Settings) -> CheckResult:
    """Tell when maintenance ran and when a server runs it next."""
    if last is None:
        advice = "wellkept serve runs it by itself; without a server, run: wellkept maintain"
        return _pass("maintenance", "has not run yet", advice)
    says = f"last run {plain_time(last.at)}, {last.counts['archived']:,} archived"
    if last.error:
        return _fail("maintenance", f"{says}: {last.error}", "Run: wellkept maintain")
    if settings.maintenance_interval:
        says += (
            f"; a server runs it next after {plain_time(last.at + timedelta(seconds=settings.maintenance_interval))}"
        )
    return _pass("maintenance", says)


def _embedder_checks(settings: Settings, *, is_waiting: bool) -> Iterator[CheckResult]:
    try:
        embedder = open_embedder(settings)
        if embedder is None:
            yield _pass("embedder", "off: memories are found by their words alone")
            return
        embedder.embed([PROBE])
    except (Invalid, ModelError) as error:
        yield _fail("embedder", str(error), EMBEDDER_ADVICE)
        return
    yield _pass("embedder", f"{embedder.name}, {embedder.dimensions} dimensions")
    try:
        with wellkept.Wellkept(settings=settings, embedder=embedder) as store:
            # A remote embedder is compared with the stored vectors on first use.
            store.agent(PROBE_AGENT).recall(PROBE, limit=1)
            refused = store.find_refused() if is_waiting else ()
    except SchemaMismatch as error:
        yield _fail("vectors", str(error))
    except ModelError as error:
        yield _fail("embedder", str(error), EMBEDDER_ADVICE)
    else:
        yield _pass("vectors", "made by this embedder")
        yield from _check_refused(refused)


def _check_refused(refused: Sequence[RefusedText]) -> Iterator[CheckResult]:
    """Name the texts the embedder refuses."""
    if refused:
        names = [f"{each.tenant} {each.agent} {each.id}: {each.problem}".replace("  ", " ") for each in refused]
        more = f" And {len(refused) - MAX_NAMED:,} more." if len(refused) > MAX_NAMED else ""
        advice = "Found by their words meanwhile, and tried again later; shorten or edit them, or use another embedder."
        yield _fail("refused", " ".join(names[:MAX_NAMED]) + more, advice)


def _render_settings(settings: Sequence[SettingValue], *, is_wide: bool) -> Output:
    return Output(
        json={"items": [asdict(each) for each in settings]},
        lines=((each.name, one_line(_format(each.value)) or EMPTY, one_line(each.source)) for each in settings),
        columns=(Column("Setting", "cyan", whole=True), Column("Value"), Column("From", whole=True)),
        rows=(_setting_row(each, is_wide=is_wide) for each in settings),
    )


def _setting_row(setting: SettingValue, *, is_wide: bool) -> Sequence[Cell]:
    is_default = setting.source == "default"
    meaning = ((f"\n{setting.meaning}", "dim"),) if is_wide else ()
    value = Styled(one_line(_format(setting.value)), "" if is_default else "bold", meaning)
    return setting.name, value, Styled(setting.source, "dim" if is_default else "green")


def _format(value: str | float | list[str] | None) -> str:
    """Format a value as an environment variable holds it."""
    return ",".join(value) if isinstance(value, list) else "" if value is None else str(value)


def _render_checks(checks: Sequence[CheckResult]) -> Output:
    failed = sum(not each.is_ok for each in checks)
    verdict = Styled(f"Broken: {failed}", "red") if failed else Styled("Everything works.", "green")
    return Output(
        json={
            "ok": not failed,
            "checks": [
                {"name": each.name, "ok": each.is_ok, "says": each.says, "advice": each.advice} for each in checks
            ],
        },
        lines=_check_lines(checks),
        blocks=[
            Grid([(tick(each.is_ok), Styled(each.name, "bold"), _says_cell(each)) for each in checks], 1, (1, 1)),
            Indented(verdict, (0, 1)),
        ],
    )


def _check_lines(checks: Iterable[CheckResult]) -> Iterable[Line]:
    for each in checks:
        yield f"{mark(each.is_ok)} {each.name}: {one_line(each.says)}"
        if each.advice:
            yield f"  {one_line(each.advice)}"


def _says_cell(check: CheckResult) -> Styled:
    advice = ((f"\n{one_line(check.advice)}", "yellow"),) if check.advice else ()
    return Styled(one_line(check.says), spans=advice)
