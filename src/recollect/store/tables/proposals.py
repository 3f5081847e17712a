"""Rows of consolidation proposals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from recollect.errors import Conflict, NotFound
from recollect.model import FoldedMemory, Kind, Origin, Owner, Proposal, ProposalState
from recollect.policy.names import memory_id, memory_seq, proposal_id, proposal_seq
from recollect.store.engine import Row, Unit, Units
from recollect.store.tables.rows import BEHIND_ALL, json_list, json_text, maybe_moment, moment, owner_params

NO_SUCH_PROPOSAL = "There is no such proposal."
MAX_OPEN = 10_000


class ProposalRows(Units):
    """Implementation of `ports.ProposalStore`.

    Adding locks the agent, so that concurrent runs do not propose the same fold twice.
    """

    def add_proposals(self, owner: Owner, proposals: Sequence[Proposal]) -> Sequence[Proposal]:
        def add(unit: Unit) -> Sequence[Proposal]:
            if unit.one("hold_agent", **owner_params(owner)) is None:
                return []
            values = {"state": ProposalState.OPEN.value, "before": BEHIND_ALL, "limit": MAX_OPEN}
            taken = {
                fold.id
                for row in unit.all("list_proposals", **owner_params(owner), **values)
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

        return self._write(owner.tenant, add)

    def get_proposal(self, owner: Owner, id: str) -> Proposal:
        seq = proposal_seq(id)
        row = self._read(owner.tenant, lambda unit: unit.one("find_proposal", **owner_params(owner), seq=seq or 0))
        if row is None:
            raise NotFound(NO_SUCH_PROPOSAL)
        return proposal_from(row)

    def list_proposals(
        self, owner: Owner, *, state: ProposalState | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[Proposal]:
        values = {"state": "" if state is None else state.value, "before": before or BEHIND_ALL, "limit": limit}
        rows = self._read(owner.tenant, lambda unit: unit.all("list_proposals", **owner_params(owner), **values))
        return [proposal_from(row) for row in rows]

    def decide_proposal(self, proposal: Proposal, *, was: ProposalState) -> Proposal:
        owner, values = proposal.owner, _proposal_values(proposal) | {"was": was.value}

        def decide(unit: Unit) -> Proposal:
            if unit.one("find_proposal", **owner_params(owner), seq=values["seq"]) is None:
                raise NotFound(NO_SUCH_PROPOSAL)
            if not unit.run("decide_proposal", **values):
                raise Conflict(f"Proposal {proposal.id} is no longer {was.value}; read it again.")
            return proposal

        return self._write(owner.tenant, decide)


def _proposal_values(proposal: Proposal) -> dict[str, Any]:
    return {
        "tenant_id": proposal.owner.tenant,
        "agent_id": proposal.owner.agent,
        "seq": proposal_seq(proposal.id) or 0,
        "kind": proposal.kind.value,
        "text": proposal.text,
        "tags": json_text(proposal.tags),
        "folds": json_text([_fold_values(fold) for fold in proposal.folds]),
        "reason": proposal.reason,
        "origin": proposal.origin.value,
        "state": proposal.state.value,
        "memory_seq": None if proposal.memory_id is None else memory_seq(proposal.memory_id),
        "is_new": proposal.is_new,
        "created_at": proposal.created_at,
        "decided_at": proposal.decided_at,
    }


def _fold_values(fold: FoldedMemory) -> dict[str, Any]:
    return {
        "id": fold.id,
        "version": fold.version,
        "ended_version": fold.ended_version,
        "valid_to": None if fold.valid_to is None else fold.valid_to.isoformat(),
    }


def proposal_from(row: Row) -> Proposal:
    tenant, agent, seq, kind, text, tags, folds, reason, origin, state, result, is_new, created_at, decided_at = row
    return Proposal(
        id=proposal_id(seq),
        owner=Owner(tenant, agent),
        kind=Kind(kind),
        text=text,
        tags=tuple(json_list(tags)),
        folds=tuple(FoldedMemory(**{**each, "valid_to": maybe_moment(each["valid_to"])}) for each in json_list(folds)),
        reason=reason,
        origin=Origin(origin),
        state=ProposalState(state),
        memory_id=None if result is None else memory_id(result),
        is_new=bool(is_new),
        created_at=moment(created_at),
        decided_at=maybe_moment(decided_at),
    )
