"""Consolidation for pipes and files."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from recollect.cli.view import one_line, proposal_outcome
from recollect.model import Proposal


class PlainConsolidation:
    """The part of `View` that is about proposals, as lines."""

    def proposals(self, proposals: Sequence[Proposal], *, if_none: str) -> None:
        for each in proposals:
            folded = ",".join(fold.id for fold in each.folds)
            print("\t".join([each.id, each.state.value, each.kind.value, folded, one_line(each.text)]))
        if not proposals:
            print(if_none, file=sys.stderr)

    def proposal_decided(self, proposal: Proposal) -> None:
        print(proposal_outcome(proposal))
