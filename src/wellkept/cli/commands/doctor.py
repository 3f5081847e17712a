"""The installation: show the settings, and check everything wellkept needs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import click

import wellkept
from wellkept.cli import output as out
from wellkept.cli.commands.admin import NO_EMBEDDER, POSTGRES, open_embedder
from wellkept.cli.run import REFUSED, Run
from wellkept.errors import Invalid, ModelError, SchemaMismatch, StoreAway, StoreDamaged, WellkeptError
from wellkept.model import CheckResult, MaintenanceRun
from wellkept.program import advise_install
from wellkept.settings import Settings, masked
from wellkept.settings.choices import SettingValue, describe_settings

IN_MEMORY = ":memory:"
PROBE = "Does it work?"
PROBE_AGENT = "wellkept-doctor"
"""An agent without memories; asking for it does not create it."""

REFUSED_ADVICE = "Found by their words meanwhile, and tried again later; shorten or edit them, or use another embedder."
EMBEDDER_ADVICE = "Mend it, or set WELLKEPT_EMBEDDER to minilm; meanwhile memories are found by their words."
STORE_ADVICE = {
    StoreAway: "Check the address, or use --url.",
    StoreDamaged: "Restore a backup with wellkept data restore, or name another file with --url.",
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
    """Show every setting, its value and where the value comes from. Secrets are masked.

    Example: wellkept admin settings --url sqlite:///notes.db"""
    is_wide = run.printer.width >= out.WIDE

    def value(each: SettingValue) -> out.Styled:
        meaning = ((f"\n{each.meaning}", "dim"),) if is_wide else ()
        # As an environment variable holds it.
        raw = ",".join(each.value) if isinstance(each.value, list) else str(each.value)
        return out.Styled(raw, "" if each.source == "default" else "bold", meaning)

    columns = (
        out.Column("Setting", lambda each: each.name, "cyan", is_whole=True),
        out.Column("Value", value),
        out.Column(
            "From", lambda each: out.Styled(each.source, "dim" if each.source == "default" else "green"), is_whole=True
        ),
    )
    run.show(out.list_records(columns, describe_settings(run.settings, run.flags)))


def doctor(run: Run, quick: bool = False, online: bool = False) -> None:
    """Check that everything works, and advise on what does not.

    --quick: Skip the checks that read every page, stored text and event.
    --online: Also ask the language models that are configured for an answer.

    Example: wellkept doctor --quick"""
    checks = list(_checks(run, is_quick=quick, is_online=online))
    run.show(_render_checks(checks))
    if not all(check.is_ok for check in checks):
        raise click.exceptions.Exit(REFUSED)


def _check(name: str, says: str, advice: str = "", *, is_ok: bool = True) -> CheckResult:
    return CheckResult(name=name, is_ok=is_ok, says=says, advice=advice)


def _fail(name: str, says: str, advice: str = "") -> CheckResult:
    return _check(name, says, advice, is_ok=False)


def _checks(run: Run, *, is_quick: bool, is_online: bool) -> Iterator[CheckResult]:
    """Run one check after the other, as long as the next one makes sense."""
    yield _check("wellkept", f"version {wellkept.__version__}")
    try:
        settings = run.settings
    except Invalid as error:
        yield _fail("settings", str(error), "Correct it; wellkept admin settings shows them.")
        return
    yield _check("settings", "all of them can be read")
    if settings.skills:
        try:
            found = len(import_module("wellkept.knowledge.skills").Skills(settings.skills)())
            yield _check("skills", f"{out.count(found, 'skill')} can be read")
        except Invalid as error:
            yield _fail("skills", str(error), "Nothing opens the store before it is mended.")
        settings = replace(settings, skills=())
    engine = [*(_postgres_checks() if settings.store_url.startswith(POSTGRES) else _sqlite_checks(settings))]
    yield from engine
    if all(check.is_ok for check in engine):
        yield from _store_checks(run, settings, is_quick=is_quick)
    yield from _model_checks(settings, is_online=is_online)


def _postgres_checks() -> Iterator[CheckResult]:
    try:
        yield _check("driver", f"psycopg {import_module('psycopg').__version__}")
    except ModuleNotFoundError:
        yield _fail("driver", "psycopg is not installed", f"To install it, {advise_install('postgres')}")


def _sqlite_checks(settings: Settings) -> Iterator[CheckResult]:
    apsw = import_module("apsw")
    oldest = import_module("wellkept.store.sqlite.engine").OLDEST_SAFE_SQLITE
    version = apsw.sqlite_lib_version()
    is_safe = tuple(int(part) for part in version.split(".")) >= oldest
    advice = "" if is_safe else "This version can corrupt databases; run: pip install -U apsw"
    yield _check("sqlite", f"{version} (apsw {apsw.apsw_version()})", advice, is_ok=is_safe)
    try:
        name = import_module("wellkept.store").sqlite_path(settings.store_url)
    except Invalid as error:
        yield _fail("store", str(error), "Set WELLKEPT_URL or use --url.")
        return
    if name == IN_MEMORY:
        return
    path = Path(name)
    folder = path.absolute().parent
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        yield _check("folder", f"{folder} can be written to")
    else:
        advice = f"Make {existing} a folder you may write to, or keep memories elsewhere with --url."
        yield _fail("folder", f"{folder} cannot be written to", advice)
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        advice = "Become its owner, or let its owner give you the right to write: chmod u+rw."
        yield _fail("file", f"{path} cannot be read and written", advice)
    if exposed := import_module("wellkept.store.sqlite.engine").find_exposed(path):
        run = f"chmod -R go= {' '.join(map(str, exposed))}"
        advice = f"Other users of this machine can read what agents remember. Run: {run}"
        yield _check("rights", "others may read the store", advice)
    free = shutil.disk_usage(existing).free
    advice = "Free some space: writes fail when the disk is full." if free < LITTLE_FREE else ""
    yield _check("disk", f"{free / GIGABYTE:,.1f} GB free", advice, is_ok=free >= LEAST_FREE)


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
            waiting = store.embedding.count_waiting() if is_readable else 0
            last = store.maintenance.refresh().last if is_readable else None
    except SchemaMismatch as error:
        yield _check("store", address)
        yield _fail("schema", str(error))
        return
    except WellkeptError as error:
        # Other failures say themselves what to do.
        advice = next((text for kind, text in STORE_ADVICE.items() if isinstance(error, kind)), "")
        yield _fail("store", f"{address}: {error}", advice)
        return
    yield _check("store", address)
    yield from checks
    if is_readable:
        yield from _embedder_checks(settings, is_waiting=waiting > 0)
        yield _check_waiting(waiting, settings)
        yield _check_maintenance(last, settings)


def _model_checks(settings: Settings, *, is_online: bool) -> Iterator[CheckResult]:
    """Check each model once, however many purposes it serves."""
    try:
        models = import_module("wellkept.providers.checked").open_models(settings)
    except Invalid as error:
        yield _fail("model", str(error), "Correct the setting, or leave the model out.")
        return
    named = {getattr(settings, setting): getattr(models, purpose) for purpose, setting in MODELS.items()}
    for name, model in named.items():
        if not name or model is None:
            continue
        if not is_online:
            yield _check("model", f"{name}: {NOT_ASKED}")
            continue
        try:
            model.complete([{"role": "user", "content": PROBE}], max_tokens=PROBE_TOKENS)
            yield _check("model", f"{name} answers")
        except ModelError as error:
            advice = "Memory works without it; turns are summarised by a digest meanwhile."
            yield _fail("model", f"{name}: {error}", advice)


def _check_waiting(number: int, settings: Settings) -> CheckResult:
    """Count texts without a vector. Never a failure: they are found by their words."""
    says = f"{number:,} {'text has' if number == 1 else 'texts have'} no vector yet" if number else "nothing"
    is_mendable = number and settings.embedder != NO_EMBEDDER
    advice = "Found by their words meanwhile; to make the vectors, run: wellkept admin reembed" if is_mendable else ""
    return _check("waiting", says, advice)


def _check_maintenance(last: MaintenanceRun | None, settings: Settings) -> CheckResult:
    """Tell when maintenance ran and when a server runs it next."""
    if last is None:
        advice = "wellkept serve runs it by itself; without a server, run: wellkept admin maintain"
        return _check("maintenance", "has not run yet", advice)
    says = f"last run {out.plain_time(last.at)}, {last.counts['archived']:,} archived"
    if last.error:
        return _fail("maintenance", f"{says}: {last.error}", "Run: wellkept admin maintain")
    if settings.maintenance_interval:
        after = last.at + timedelta(seconds=settings.maintenance_interval)
        says += f"; a server runs it next after {out.plain_time(after)}"
    return _check("maintenance", says)


def _embedder_checks(settings: Settings, *, is_waiting: bool) -> Iterator[CheckResult]:
    try:
        embedder = open_embedder(settings)
        if embedder is None:
            yield _check("embedder", "off: memories are found by their words alone")
            return
        embedder.embed([PROBE])
    except (Invalid, ModelError) as error:
        yield _fail("embedder", str(error), EMBEDDER_ADVICE)
        return
    yield _check("embedder", f"{embedder.name}, {embedder.dimensions} dimensions")
    try:
        with wellkept.Wellkept(settings=settings, embedder=embedder) as store:
            # A remote embedder is compared with the stored vectors on first use.
            store.agent(PROBE_AGENT).recall(PROBE, limit=1)
            refused = store.embedding.find_refused() if is_waiting else ()
    except SchemaMismatch as error:
        yield _fail("vectors", str(error))
    except ModelError as error:
        yield _fail("embedder", str(error), EMBEDDER_ADVICE)
    else:
        yield _check("vectors", "made by this embedder")
        if refused:
            names = [f"{each.tenant} {each.agent} {each.id}: {each.problem}".replace("  ", " ") for each in refused]
            more = f" And {len(refused) - MAX_NAMED:,} more." if len(refused) > MAX_NAMED else ""
            yield _fail("refused", " ".join(names[:MAX_NAMED]) + more, REFUSED_ADVICE)


def _render_checks(checks: Sequence[CheckResult]) -> out.Output:
    failed = sum(not each.is_ok for each in checks)
    rows: list[Sequence[out.Cell]] = []
    blocks: list[out.Block] = []
    for each in checks:
        says, advice = out.one_line(each.says), out.one_line(each.advice)
        blocks += [
            out.Piped(f"{out.mark(each.is_ok)} {each.name}: {says}"),
            *([out.Piped(f"  {advice}")] if advice else []),
        ]
        spans = ((f"\n{advice}", "yellow"),) if advice else ()
        rows.append((out.tick(each.is_ok), out.Styled(each.name, "bold"), out.Styled(says, spans=spans)))
    verdict = out.Styled(f"Broken: {failed}", "red") if failed else out.Styled("Everything works.", "green")
    found = [{"name": each.name, "ok": each.is_ok, "says": each.says, "advice": each.advice} for each in checks]
    return out.Output(
        {"ok": not failed, "checks": found}, [*blocks, out.Grid(rows, 1, (1, 1)), out.Indented(verdict, (0, 1))]
    )
