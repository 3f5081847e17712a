"""`wellkept admin db`: roles, upgrade and distribution of a PostgreSQL database, by an operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated

from wellkept.cli.options import DryRun
from wellkept.cli.output import Output, Styled, tick
from wellkept.cli.parameters import Option
from wellkept.cli.run import Run, optional_module
from wellkept.cli.text import json_record
from wellkept.errors import Invalid

POSTGRES = ("postgresql://", "postgres://")


def init(
    run: Run,
    owner: Annotated[str, Option(metavar="ROLE", help="The role that owns the tables.")] = "wellkept_owner",
    application: Annotated[str, Option(metavar="ROLE", help="The role that serves and owns nothing.")] = "wellkept_app",
    owner_password_file: Annotated[Path | None, Option(metavar="FILE", help="File with the owner's password.")] = None,
    application_password_file: Annotated[
        Path | None, Option(metavar="FILE", help="File with the application's password.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Prepare a PostgreSQL database for two roles: an owner, and an application that owns nothing.

    Creates the roles, gives the tables to the owner, upgrades them, and grants the application its rights. Run it as a
    superuser, or as a role that owns the database and may create roles; again is harmless.

    Example: wellkept admin db init --url postgresql://postgres@db/memories --dry-run"""
    files = {owner: owner_password_file, application: application_password_file}
    passwords = {role: _read_password(file) for role, file in files.items() if file is not None}
    report = _open_module("schema").initialize(
        _postgres_url(run), owner=owner, application=application, passwords=passwords, dry_run=dry_run
    )
    lines = [*(f"{each};" for each in report.statements), *(f"-- migration {name}" for name in report.migrations)]
    run.show(Output(json={"ok": True} | json_record(report), lines=lines, blocks=lines))


def migrate(run: Run) -> None:
    """Upgrade the tables of a PostgreSQL database, as the role that owns them.

    Servers may go on meanwhile. On a Citus cluster, new tables are distributed.

    Example: wellkept admin db migrate --url postgresql://wellkept_owner@db/memories"""
    names = _open_module("schema").migrate_database(_owner_url(run))
    run.show(_render_done("migrations", names, "The tables are up to date."))


def distribute(run: Run) -> None:
    """Distribute the tables of a PostgreSQL database over a Citus cluster, by tenant.

    Run it as the role that owns the tables; again continues where it stopped.

    Example: wellkept admin db distribute --url postgresql://wellkept_owner@db/memories"""
    url = _owner_url(run)
    # Create the tables, and fail early if the database cannot be reached.
    _open_module("schema").migrate_database(url)
    run.show(_render_done("tables", _open_module("citus").distribute(url), "Everything is distributed already."))


def _open_module(name: str) -> ModuleType:
    return optional_module(f"wellkept.store.postgres.{name}", needs="PostgreSQL", extra="postgres")


def _postgres_url(run: Run) -> str:
    """Return the address that the options or settings name. Raises: Invalid."""
    url = run.settings.store_url
    if not url.startswith(POSTGRES):
        raise Invalid(
            "Only a PostgreSQL database can be distributed, migrated or given roles; name one with --url postgresql://…"
        )
    return url


def _owner_url(run: Run) -> str:
    """Return the address of the owner: `--url`, then the setting `owner_url`. Raises: Invalid."""
    has_flag = run.flags.get("url") is not None
    return _postgres_url(run) if has_flag or not run.settings.owner_url else run.settings.owner_url


def _read_password(file: Path) -> str:
    try:
        password = file.read_text("utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"The password file {file} cannot be read as UTF-8 text.") from error
    if not password:
        raise Invalid(f"The password file {file} is empty.")
    return password


def _render_done(what: str, names: Sequence[str], none: str) -> Output:
    blocks = [(tick(True), name) for name in names]
    return Output(json={"ok": True, what: [*names]}, lines=names, blocks=blocks or [Styled(none, "dim")])
