"""Consolidation: propose one memory in place of several, and decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from wellkept.cli.output import Column, Output, OutputNote, Styled
from wellkept.cli.parameters import Option
from wellkept.cli.run import Command, Run
from wellkept.cli.text import json_record, one_line
from wellkept.errors import Invalid
from wellkept.model import Json, Proposal, ProposalState


def consolidate(run: Run) -> None:
    """Find memories that one memory could replace, and propose it.

    A configured model is asked; without one, rules find the certain cases."""
    run.show(_render_proposals(run.memory.consolidate(), if_empty="Nothing to consolidate."))


def proposals(
    run: Run,
    apply: Annotated[str | None, Option(metavar="ID", help="Apply a proposal.")] = None,
    reject: Annotated[str | None, Option(metavar="ID", help="Reject a proposal.")] = None,
    undo: Annotated[str | None, Option(metavar="ID", help="Undo an applied proposal.")] = None,
    state: Annotated[str, Option(help="open, applied, rejected, undone or all.")] = ProposalState.OPEN.value,
) -> None:
    """List proposals of consolidation, or decide on one."""
    chosen = {"apply": apply, "reject": reject, "undo": undo}
    decisions = {verb: id for verb, id in chosen.items() if id is not None}
    if len(decisions) > 1:
        raise Invalid("Decide one proposal at a time: --apply, --reject or --undo.")
    for verb, id in decisions.items():
        run.show(_render_decision(getattr(run.memory, f"{verb}_proposal")(id)))
    if not decisions:
        run.show(_render_proposals(run.memory.proposals(state=state), if_empty="No proposals."))


COMMANDS = (
    Command(run=consolidate, example="wellkept consolidate --agent atlas"),
    Command(run=proposals, example="wellkept proposals --agent atlas --apply p-1", listed_by="proposals"),
)


def _render_proposals(proposals: Sequence[Proposal], *, if_empty: str) -> Output:
    is_open = any(each.state is ProposalState.OPEN for each in proposals)
    return Output(
        json={"items": [_json(each) for each in proposals], "next_cursor": None},
        lines=[_line(each) for each in proposals] or [OutputNote(if_empty)],
        columns=(
            Column("Id", "cyan", whole=True),
            Column("State", whole=True),
            Column("Becomes", whole=True),
            Column("Instead of"),
            Column("Memory"),
        ),
        rows=(
            (
                each.id,
                each.state.value,
                each.kind.value,
                ", ".join(fold.id for fold in each.folds),
                Styled(one_line(each.text), spans=(("\n", ""), (one_line(each.reason), "dim"))),
            )
            for each in proposals
        ),
        if_empty=if_empty,
        blocks=[Styled("Decide: wellkept proposals --apply ID, or --reject ID", "dim")] if is_open else [],
    )


def _render_decision(proposal: Proposal) -> Output:
    made = f": {proposal.memory_id} stands for {', '.join(fold.id for fold in proposal.folds)}"
    line = f"{proposal.state.value.capitalize()} {proposal.id}{made if proposal.state is ProposalState.APPLIED else ''}"
    return Output(json=_json(proposal), lines=[line], blocks=[Styled(line, "green")])


def _json(proposal: Proposal) -> Json:
    return json_record(proposal) | {"folds": [{"id": each.id, "version": each.version} for each in proposal.folds]}


def _line(proposal: Proposal) -> Sequence[str]:
    folded = ",".join(fold.id for fold in proposal.folds)
    return proposal.id, proposal.state.value, proposal.kind.value, folded, one_line(proposal.text)
