"""Consolidation for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recollect.cli.view import one_line, proposal_outcome
from recollect.model import Proposal, ProposalState


class TerminalConsolidation:
    """The part of `View` that is about proposals, in tables."""

    _console: Console

    def proposals(self, proposals: Sequence[Proposal], *, if_none: str) -> None:
        if not proposals:
            self._console.print(Text(if_none, style="dim"))
            return
        table = Table(box=SIMPLE_HEAD, header_style="dim", pad_edge=False, padding=(0, 1))
        for header in ("Id", "State", "Becomes"):
            table.add_column(header, no_wrap=True)
        table.add_column("Instead of", overflow="fold")
        table.add_column("Memory", overflow="fold", ratio=1)
        for each in proposals:
            said = Text.assemble(one_line(each.text), "\n", (one_line(each.reason), "dim"))
            folded = Text(", ".join(fold.id for fold in each.folds))
            table.add_row(Text(each.id, style="cyan"), each.state.value, each.kind.value, folded, said)
        self._console.print(table)
        if any(each.state is ProposalState.OPEN for each in proposals):
            self._console.print(Text("Decide: recollect proposals --apply ID, or --reject ID", style="dim"))

    def proposal_decided(self, proposal: Proposal) -> None:
        self._console.print(Text(proposal_outcome(proposal), style="green"))
