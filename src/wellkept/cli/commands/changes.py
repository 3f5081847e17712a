"""Changes of several memories: list, show, apply, reject and undo them."""

from __future__ import annotations

from typing import Annotated

from wellkept.cli.output import Column, Output, list_records, say
from wellkept.cli.parameters import Argument, Option, offer_words
from wellkept.cli.run import Run
from wellkept.cli.text import json_record
from wellkept.errors import Invalid
from wellkept.model import Change, ChangeAction, ChangedMemory, ChangeState

ACTIONS = ("list", "show", "apply", "reject", "undo", "consolidate")


def changes(
    run: Run,
    action: Annotated[str, Argument(help=f"One of {', '.join(ACTIONS)}.", complete=offer_words(ACTIONS))] = "list",
    id: Annotated[str, Argument(metavar="ID", help="The change, such as c-3.")] = "",
    state: Annotated[
        str, Option(help="list: proposed, applied, rejected, undone or all.")
    ] = ChangeState.PROPOSED.value,
) -> None:
    """List what add, turns, consolidation and edits of several memories did or propose; show one, apply or reject a
    proposed one, undo an applied one as a whole, or consolidate now.

    Example: wellkept memory changes undo c-3 --agent atlas"""
    if action not in ACTIONS:
        raise Invalid(f"There is no action {action[:40]!r}; choose {', '.join(ACTIONS)}.")
    known = run.memory.changes
    if action in ("list", "consolidate"):
        found = known.consolidate() if action == "consolidate" else known.list(state=state)
        waits = any(each.state is ChangeState.PROPOSED for each in found)
        hint = "Decide: wellkept memory changes apply ID, or reject ID" if waits else ""
        none = "No changes." if state == "all" else f"No {state} changes; --state all lists all."
        run.show(list_records(COLUMNS, found, if_empty=none, hint=hint))
        return
    if not id:
        raise Invalid("Name the change, such as c-3; wellkept memory changes list --state all lists them.")
    if action == "show":
        run.show(_render_change(known.get(id)))
        return
    decided = {"apply": known.apply, "reject": known.reject, "undo": known.undo}[action](id)
    run.show(say(f"{decided.state.value.capitalize()} {decided.id}: {_describe(decided)}", json_record(decided)))


def _describe(change: Change) -> str:
    """Return what a change does: "adds m-7, ends m-3 m-4"."""
    ids = {action: [each.id or "a memory" for each in change.memories if each.action is action] for action in VERBS}
    return ", ".join(f"{VERBS[action]} {' '.join(found)}" for action, found in ids.items() if found)


VERBS = {ChangeAction.ADD: "adds", ChangeAction.EDIT: "edits", ChangeAction.END: "ends"}
COLUMNS = (
    Column("Id", lambda each: each.id, "cyan", is_whole=True),
    Column("State", lambda each: each.state, is_whole=True),
    Column("Cause", lambda each: each.cause, is_whole=True),
    Column("Does", _describe),
    Column("Because", lambda each: each.reason),
    Column("New text", lambda each: each.text),
)
MEMORY_COLUMNS = (
    Column("Does", lambda each: VERBS[each.action], is_whole=True),
    Column("Memory", lambda each: each.id, "cyan", is_whole=True),
    Column("Text", lambda each: _describe_text(each)),
)


def _describe_text(memory: ChangedMemory) -> str:
    former = "" if memory.former_text is None else f"{memory.former_text} -> "
    by = f" (by {memory.after['ended_by']})" if memory.after.get("ended_by") else ""
    return f"{former}{memory.text}{by}"


def _render_change(change: Change) -> Output:
    head = f"{change.id} {change.state.value}, by {change.cause.value}: {change.reason}"
    listed = list_records(MEMORY_COLUMNS, change.memories, intro=[head])
    return Output(json=json_record(change), lines=listed.lines, blocks=listed.blocks)
