"""Rows of consolidation proposals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from wellkept.errors import Conflict, NotFound
from wellkept.language.names import proposal_id, proposal_seq
from wellkept.model import FoldedMemory, Owner, Proposal, ProposalState
from wellkept.store.engine import Unit, Units
from wellkept.store.tables.columns import COLUMNS
from wellkept.store.tables.rows import (
    BEHIND_ALL,
    MEMORY_ID,
    RecordRows,
    json_list,
    json_text,
    maybe_moment,
    merge_parts,
    owner_params,
)

NO_SUCH_PROPOSAL = "There is no such proposal."
MAX_OPEN = 10_000


class ProposalRows(Units):
    """Consolidation proposals of an agent and their state.

    Adding locks the agent, so that concurrent runs do not propose the same fold twice.
    """

    def add_proposals(self, owner: Owner, proposals: Sequence[Proposal]) -> Sequence[Proposal]:
        """Add proposals and return them with their ids; skip those with a memory of another open proposal."""

        def add(unit: Unit) -> Sequence[Proposal]:
            if unit.one("hold_agent", **owner_params(owner)) is None:
                return []
            values = {"state": ProposalState.OPEN.value, "before": BEHIND_ALL, "limit": MAX_OPEN}
            taken = {
                fold.id
                for part in owner.parts
                for row in unit.all("list_proposals", **owner_params(part), **values)
                for fold in proposal_from(row).folds
            }
            found = unit.one("last_proposal", **owner_params(owner))
            last: int = found[0] if found else 0
            added: list[Proposal] = []
            for proposal in proposals:
                if taken.isdisjoint(fold.id for fold in proposal.folds):
                    taken.update(fold.id for fold in proposal.folds)
                    added.append(replace(proposal, id=proposal_id(last + len(added) + 1)))
            unit.run_many("add_proposal", map(_proposal_values, added))
            return added

        return self.write(owner.tenant, add)

    def get_proposal(self, owner: Owner, id: str) -> Proposal:
        """Return one proposal. Raises: NotFound."""
        seq = proposal_seq(id)
        row = self.read(owner.tenant, lambda unit: unit.one("find_proposal", **owner_params(owner), seq=seq or 0))
        if row is None:
            raise NotFound(NO_SUCH_PROPOSAL)
        return proposal_from(row)

    def list_proposals(
        self, owner: Owner, *, state: ProposalState | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[Proposal]:
        """List proposals, newest first, starting after the number `before`; `state` None lists all."""
        values = {"state": "" if state is None else state.value, "before": before or BEHIND_ALL, "limit": limit}

        def read(unit: Unit) -> list[list[Proposal]]:
            parts = (unit.all("list_proposals", **owner_params(part), **values) for part in owner.parts)
            return [[*map(proposal_from, rows)] for rows in parts]

        return merge_parts(self.read(owner.tenant, read), limit, lambda proposal: proposal_seq(proposal.id) or 0)

    def decide_proposal(self, proposal: Proposal, *, was: ProposalState) -> Proposal:
        """Store the decision about a proposal.

        Raises: NotFound; Conflict when it is no longer in the state it `was` in.
        """
        owner, values = proposal.owner, _proposal_values(proposal) | {"was": was.value}

        def decide(unit: Unit) -> Proposal:
            if unit.one("find_proposal", **owner_params(owner), seq=values["seq"]) is None:
                raise NotFound(NO_SUCH_PROPOSAL)
            if not unit.run("decide_proposal", **values):
                raise Conflict(f"Proposal {proposal.id} is no longer {was.value}; read it again.")
            return proposal

        return self.write(owner.tenant, decide)


def _parse_folds(folds: str | list[Any]) -> tuple[FoldedMemory, ...]:
    return tuple(FoldedMemory(**{**each, "valid_to": maybe_moment(each["valid_to"])}) for each in json_list(folds))


def _render_folds(folds: Sequence[FoldedMemory]) -> str:
    ends = [None if fold.valid_to is None else fold.valid_to.isoformat() for fold in folds]
    return json_text([{**asdict(fold), "valid_to": end} for fold, end in zip(folds, ends, strict=True)])


_PROPOSALS = RecordRows(
    Proposal,
    COLUMNS["proposal"],
    seq=("id", proposal_id, lambda id: proposal_seq(id) or 0),
    folds=("folds", _parse_folds, _render_folds),
    memory_seq=MEMORY_ID,
)
proposal_from, _proposal_values = _PROPOSALS.parse, _PROPOSALS.render
