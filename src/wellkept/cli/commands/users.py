"""An agent's end users: list them, show what is known of one, and erase one."""

from __future__ import annotations

from typing import Annotated

from wellkept.cli.commands.erase import confirm_erasure, render_receipt
from wellkept.cli.commands.memories import list_memories_of
from wellkept.cli.options import DryRun, Limit, Yes
from wellkept.cli.output import Column, list_records
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run

USER_COLUMNS = (
    Column("User", lambda each: each.user, "cyan"),
    Column("Memories", lambda each: each.memories, is_number=True),
    Column("Sessions", lambda each: each.sessions, is_number=True),
    Column("Agents", lambda each: each.agents, is_number=True),
)


def list_users(
    run: Run,
    limit: Limit = 100,
    after: Annotated[str, Option(metavar="USER", help="Continue after this one.")] = "",
) -> None:
    """List the tenant's end users, by id.

    Example: wellkept user list --tenant acme"""
    found = run.tenant.users.list(after=after, limit=limit)
    page = ("--after", lambda each: each.user)
    run.show(list_records(USER_COLUMNS, found, limit=limit, page=page, if_empty="No memory belongs to a user yet."))


def profile(
    run: Run,
    subject: Annotated[str | None, Option(help="Whom or what: user, a name, or a relation such as sister.")] = None,
) -> None:
    """Show what is true now of the user, and of those the user spoke about.

    Example: wellkept user profile --user u-7 --subject sister"""
    found = run.memory.profile(subject=subject).facts
    none = "Nothing is known yet. Facts come out of what users say in conversations."
    run.show(list_memories_of(run, found, if_empty=none))


def erase(
    run: Run,
    id: Annotated[str, Argument(metavar="USER", help="The end user's id.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Remove everything of an end user for good, and print a receipt.

    Example: wellkept user erase u-7 --dry-run"""
    subject = f"user:{id}"
    if not dry_run and not yes:
        confirm_erasure(run, subject)
    run.show(render_receipt(run.tenant.data.erase(subject, dry_run=dry_run)))
