"""Consolidation for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from recollect.cli.table import new_table
from recollect.cli.view import one_line, proposal_outcome
from recollect.model import Proposal, ProposalState


class TerminalConsolidation:
    """The part of `View` that is about proposals, in tables."""

    _console: Console

    def proposals(self, proposals: Sequence[Proposal], *, if_none: str) -> None:
        if not proposals:
            self._console.print(Text(if_none, style="dim"))
            return
        table = new_table("Id", "State", "Becomes", "Instead of", "Memory", whole=("Id", "State", "Becomes"))
        for each in proposals:
            said = Text.assemble(one_line(each.text), "\n", (one_line(each.reason), "dim"))
            folded = Text(", ".join(fold.id for fold in each.folds))
            table.add_row(Text(each.id, style="cyan"), each.state.value, each.kind.value, folded, said)
        self._console.print(table)
        if any(each.state is ProposalState.OPEN for each in proposals):
            self._console.print(Text("Decide: recollect proposals --apply ID, or --reject ID", style="dim"))

    def proposal_decided(self, proposal: Proposal) -> None:
        self._console.print(Text(proposal_outcome(proposal), style="green"))
