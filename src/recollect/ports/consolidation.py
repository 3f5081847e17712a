"""Memories that could stand for several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from recollect.model import Owner, Proposal, ProposalState


class ProposalStore(Protocol):
    """What was proposed to an agent, and what became of it."""

    def add_proposals(self, owner: Owner, proposals: Sequence[Proposal]) -> Sequence[Proposal]:
        """Those of which no memory is taken in by an open proposal yet, with their ids."""

    def get_proposal(self, owner: Owner, id: str) -> Proposal:
        """Raises: NotFound."""

    def list_proposals(
        self, owner: Owner, *, state: ProposalState | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[Proposal]:
        """Newest first, beginning behind the number `before`; without a state: all."""

    def decide_proposal(self, proposal: Proposal, *, was: ProposalState) -> Proposal:
        """Write down what became of it.

        Raises: NotFound; Conflict when it is no longer in the state it `was` in.
        """
