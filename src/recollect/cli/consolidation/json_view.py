"""Consolidation for programs."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.cli.json_text import write_json
from recollect.cli.view import json_record
from recollect.model import Json, Proposal


class JsonConsolidation:
    """The part of `View` that is about proposals, as JSON."""

    def proposals(self, proposals: Sequence[Proposal], *, if_none: str) -> None:
        write_json({"items": [_proposal(each) for each in proposals], "next_cursor": None})

    def proposal_decided(self, proposal: Proposal) -> None:
        write_json(_proposal(proposal))


def _proposal(proposal: Proposal) -> Json:
    return json_record(proposal) | {"folds": [{"id": each.id, "version": each.version} for each in proposal.folds]}
