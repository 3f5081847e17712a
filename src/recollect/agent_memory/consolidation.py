"""Saying once what was said many times."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.agent_memory.view import AgentView
from recollect.caller import current_caller
from recollect.errors import Invalid
from recollect.model import Proposal, ProposalState
from recollect.policy import trust
from recollect.policy.names import proposal_seq
from recollect.services.recall import checked_limit

ANY_STATE = "all"
MAX_PAGE = 500
PAGE = 100


class Consolidation(AgentView):
    """The verbs that fold memories into fewer."""

    def consolidate(self) -> Sequence[Proposal]:
        """Look for memories that one could stand for, by a model if one is configured, by rules in any case; the new
        proposals, applied already where the settings say so and they are trusted enough."""
        return self._services.consolidate(self.owner)

    def proposals(
        self, *, state: str = ProposalState.OPEN, before: str | None = None, limit: int = PAGE
    ) -> Sequence[Proposal]:
        """What was proposed, newest first; `state` is open, applied, rejected, undone or all.

        Raises: Invalid.
        """
        seq = None if before is None else proposal_seq(before)
        if before is not None and seq is None:
            raise Invalid("`before` is the id of a proposal, such as p-3.")
        return self._store.list_proposals(
            self.owner, state=_checked_state(state), before=seq, limit=checked_limit(limit, most=MAX_PAGE)
        )

    def apply_proposal(self, id: str) -> Proposal:
        """Let the proposed memory stand for those it takes in, which are ended but kept.

        Raises: NotFound; Conflict when it is not open, or one of them has changed since; Forbidden.
        """
        trust.check_decision(current_caller().trust)
        return self._services.consolidate.apply(self.owner, id)

    def reject_proposal(self, id: str) -> Proposal:
        """Leave everything as it is; the same is not proposed again.

        Raises: NotFound; Conflict when it is not open; Forbidden.
        """
        trust.check_decision(current_caller().trust)
        return self._services.consolidate.reject(self.owner, id)

    def undo_proposal(self, id: str) -> Proposal:
        """Take an applied proposal back: what it took in is as it was, and what it made is gone.

        Raises: NotFound; Conflict when it is not applied, or one of its memories has changed since; Forbidden.
        """
        trust.check_decision(current_caller().trust)
        return self._services.consolidate.undo(self.owner, id)


def _checked_state(state: str) -> ProposalState | None:
    if state == ANY_STATE:
        return None
    try:
        return ProposalState(state)
    except ValueError:
        choices = ", ".join(ProposalState)
        raise Invalid(f"There is no state {str(state)[:40]!r}; choose {choices} or {ANY_STATE}.") from None
