"""`wellkept db`: roles, upgrade and distribution of a PostgreSQL database, by an operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from wellkept.cli.output import Output, Styled, tick
from wellkept.cli.parameters import Option
from wellkept.cli.run import Command, Run, optional_module
from wellkept.cli.text import safe
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
    dry_run: Annotated[bool, Option("--dry-run", help="Only print the SQL.")] = False,
) -> None:
    """Prepare a PostgreSQL database for two roles: an owner, and an application that owns nothing.

    Creates the roles, gives the tables to the owner, upgrades them, and grants the application its rights. Run it as a
    superuser, or as a role that owns the database and may create roles; again is harmless."""
    files = {owner: owner_password_file, application: application_password_file}
    passwords = {role: _read_password(file) for role, file in files.items() if file is not None}
    report = _open_module("schema").initialize(
        _postgres_url(run), owner=owner, application=application, passwords=passwords, dry_run=dry_run
    )
    run.show(_render_init(report))


def migrate(run: Run) -> None:
    """Upgrade the tables of a PostgreSQL database, as the role that owns them.

    Servers may go on meanwhile. On a Citus cluster, new tables are distributed."""
    run.show(_render_migrated(_open_module("schema").migrate_database(_owner_url(run))))


def distribute(run: Run) -> None:
    """Distribute the tables of a PostgreSQL database over a Citus cluster, by tenant.

    Run it as the role that owns the tables; again continues where it stopped."""
    url = _owner_url(run)
    # Create the tables, and fail early if the database cannot be reached.
    _open_module("schema").migrate_database(url)
    run.show(_render_distributed(_open_module("citus").distribute(url)))


COMMANDS = (
    Command(run=init, example="wellkept db init --url postgresql://postgres@db/memories --dry-run"),
    Command(run=migrate, example="wellkept db migrate --url postgresql://wellkept_owner@db/memories"),
    Command(run=distribute, example="wellkept db distribute --url postgresql://wellkept_owner@db/memories"),
)


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


def _render_init(report: Any) -> Output:
    statements = [f"{each};" for each in report.statements]
    done = {
        "ok": True,
        "is_dry_run": report.is_dry_run,
        "statements": list(report.statements),
        "migrations": list(report.migrations),
    }
    lines = [safe(each) for each in (*statements, *(f"-- migration {name}" for name in report.migrations))]
    return Output(json=done, lines=lines, blocks=[Styled(line) for line in lines])


def _render_migrated(names: Sequence[str]) -> Output:
    return Output(
        json={"ok": True, "migrations": list(names)},
        lines=list(names),
        blocks=[(tick(True), name) for name in names] or [Styled("The tables are up to date.", "dim")],
    )


def _render_distributed(tables: Sequence[str]) -> Output:
    return Output(
        json={"ok": True, "tables": list(tables)},
        lines=[safe(name) for name in tables],
        blocks=[(tick(True), safe(name)) for name in tables] or [Styled("Everything is distributed already.", "dim")],
    )
