"""Consolidation: propose one memory in place of several, and decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from wellkept.cli.output import Column, Output, Styled, list_records, say
from wellkept.cli.parameters import Option
from wellkept.cli.run import Run
from wellkept.cli.text import json_record, one_line
from wellkept.errors import Invalid
from wellkept.model import Proposal, ProposalState


def consolidate(run: Run) -> None:
    """Find memories that one memory could replace, and propose it.

    A configured model is asked; without one, rules find the certain cases.

    Example: wellkept memory consolidate --agent atlas"""
    run.show(_render_proposals(run.memory.consolidate(), if_empty="Nothing to consolidate."))


def proposals(
    run: Run,
    apply: Annotated[str | None, Option(metavar="ID", help="Apply a proposal.")] = None,
    reject: Annotated[str | None, Option(metavar="ID", help="Reject a proposal.")] = None,
    undo: Annotated[str | None, Option(metavar="ID", help="Undo an applied proposal.")] = None,
    state: Annotated[str, Option(help="open, applied, rejected, undone or all.")] = ProposalState.OPEN.value,
) -> None:
    """List proposals of consolidation, or decide on one.

    Example: wellkept memory changes --agent atlas --apply p-1"""
    chosen = {"apply": apply, "reject": reject, "undo": undo}
    decisions = {verb: id for verb, id in chosen.items() if id is not None}
    if len(decisions) > 1:
        raise Invalid("Decide one proposal at a time: --apply, --reject or --undo.")
    for verb, id in decisions.items():
        run.show(_render_decision(getattr(run.memory, f"{verb}_proposal")(id)))
    if not decisions:
        run.show(_render_proposals(run.memory.proposals(state=state), if_empty="No proposals."))


COLUMNS = (
    Column("Id", lambda each: each.id, "cyan", is_whole=True),
    Column("State", lambda each: each.state, is_whole=True),
    Column("Becomes", lambda each: each.kind, is_whole=True),
    Column("Instead of", lambda each: [fold.id for fold in each.folds]),
    Column("Memory", lambda each: Styled(each.text, spans=((f"\n{one_line(each.reason)}", "dim"),))),
)


def _render_proposals(proposals: Sequence[Proposal], *, if_empty: str) -> Output:
    is_open = any(each.state is ProposalState.OPEN for each in proposals)
    hint = "Decide: wellkept memory changes --apply ID, or --reject ID" if is_open else ""
    return list_records(COLUMNS, proposals, if_empty=if_empty, hint=hint)


def _render_decision(proposal: Proposal) -> Output:
    made = f": {proposal.memory_id} stands for {', '.join(fold.id for fold in proposal.folds)}"
    line = f"{proposal.state.value.capitalize()} {proposal.id}{made if proposal.state is ProposalState.APPLIED else ''}"
    return say(line, json_record(proposal))
