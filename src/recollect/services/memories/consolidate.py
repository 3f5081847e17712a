"""Folding what an agent was told many times into what it keeps for good.

Proposals are made by rules or by a model, always outside a transaction, and kept until somebody decides. Applying one
ends the memories it takes in, each only if it is still the version the proposal was made from, and writes the one that
stands for them; nothing is deleted, so it can be undone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from recollect.deadline import check_deadline
from recollect.errors import Conflict, Invalid, ModelError, NotFound, SecretRejected
from recollect.lazy import LazyModule
from recollect.model import AuditEvent, Fold, Kind, Memory, Owner, Proposal, ProposalState
from recollect.policy.memories import consolidation, trust
from recollect.policy.memories.consolidation import Suggestion
from recollect.policy.names import memory_seq
from recollect.ports import Clock, Store
from recollect.services.background.resting import RestedModel
from recollect.services.memories.drafts import Draft, checked
from recollect.services.memories.remember import Remember
from recollect.services.memories.secrets import SecretGuard

if TYPE_CHECKING:
    from recollect.policy.memories import duplicates
else:
    duplicates = LazyModule("recollect.policy.memories.duplicates")

EXAMINED: Mapping[Kind, int] = {Kind.NOTE: 500, Kind.JOURNAL: 200, Kind.EPISODE: 500}
"""How many memories of each kind one run looks at, the newest."""

DECIDED = 500
"""How many earlier proposals are looked at, so that what was rejected is not proposed again."""

MAX_ANSWER_TOKENS = 2000

Policy = Literal["propose", "apply"]


class Consolidate:
    """Proposes, applies, rejects and undoes."""

    def __init__(
        self,
        store: Store,
        remember: Remember,
        guard: SecretGuard,
        now: Clock,
        *,
        model: RestedModel | None = None,
        policy: Policy = "propose",
        is_noted: bool = True,
    ) -> None:
        self._store = store
        self._remember = remember
        self._guard = guard
        self._now = now
        self._model = model
        self._policy = policy
        self._is_noted = is_noted  # False: notes live in a file, which keeps no past to return to

    def __call__(self, owner: Owner) -> Sequence[Proposal]:
        """The new proposals; where the policy is "apply", those that are trusted enough are applied at once."""
        earlier = self._store.list_proposals(owner, limit=DECIDED)
        open_ids = {fold.id for each in earlier if each.state is ProposalState.OPEN for fold in each.folds}
        suggestions = self._suggestions(owner, open_ids)
        refused = {_taken_in(each.folds) for each in earlier if each.state is not ProposalState.OPEN}
        fresh = [_proposal(owner, each, self._now) for each in suggestions]
        added = self._add(owner, [each for each in fresh if _taken_in(each.folds) not in refused])
        if self._policy == "propose":
            return added
        return [self._applied_if_trusted(owner, each) for each in added]

    def apply(self, owner: Owner, id: str) -> Proposal:
        """Let the proposed memory stand for those it takes in.

        Raises: NotFound; Conflict when it is not open, or a memory was edited or deleted since it was made.
        """
        proposal = self._open(owner, id)
        found = self._store.find_memories(owner, [memory_seq(fold.id) or 0 for fold in proposal.folds])
        memories = {memory.id: memory for memory in found.values()}
        for fold in proposal.folds:
            if fold.id not in memories or memories[fold.id].version != fold.version:
                raise Conflict(f"Memory {fold.id} has changed since {id} was proposed; reject it, and propose anew.")
        folded = [memories[fold.id] for fold in proposal.folds]
        draft = Draft(
            text=proposal.text,
            kind=proposal.kind,
            tags=proposal.tags,
            origin=proposal.origin,
            importance=max(memory.importance for memory in folded) if proposal.kind is not Kind.CORE else None,
        )

        def also(made: Memory, ended: Sequence[Memory], is_new: bool) -> Proposal:
            folds = tuple(
                replace(fold, ended_version=after.version, valid_to=before.valid_to)
                for fold, before, after in zip(proposal.folds, folded, ended, strict=True)
            )
            applied = replace(proposal, folds=folds, memory_id=made.id, is_new=is_new)
            message = f"Proposal {id} was applied: {made.id} stands for {len(folds)} memories."
            return self._decided(applied, ProposalState.APPLIED, message, was=ProposalState.OPEN)

        return self._remember.fold(owner, draft, folded=folded, also=also)

    def reject(self, owner: Owner, id: str) -> Proposal:
        """Leave everything as it is; the same is not proposed again.

        Raises: NotFound; Conflict when it is not open.
        """
        proposal, message = self._open(owner, id), f"Proposal {id} was rejected."
        return self._store.transaction(
            owner.tenant,
            lambda: self._decided(proposal, ProposalState.REJECTED, message, was=ProposalState.OPEN),
        )

    def undo(self, owner: Owner, id: str) -> Proposal:
        """Take an applied proposal back: what it took in is as it was, and what it made is gone.

        Raises: NotFound; Conflict when it is not applied, or one of its memories was edited or deleted since.
        """
        proposal = self._store.get_proposal(owner, id)
        if proposal.state is not ProposalState.APPLIED:
            raise Conflict(f"Proposal {id} is {proposal.state.value}; only an applied one can be undone.")
        made = proposal.memory_id if proposal.is_new else None
        seqs = [memory_seq(each) or 0 for each in (*(fold.id for fold in proposal.folds), *((made,) if made else ()))]
        memories = {memory.id: memory for memory in self._store.find_memories(owner, seqs).values()}
        if made is not None and (made not in memories or memories[made].version != 1):
            raise Conflict(f"Memory {made} was edited or deleted since; put right by hand what {id} took in.")
        for fold in proposal.folds:
            if fold.id not in memories or memories[fold.id].version != fold.ended_version:
                raise Conflict(f"Memory {fold.id} was edited or deleted since {id} was applied.")
        restored = [replace(memories[fold.id], valid_to=fold.valid_to) for fold in proposal.folds]

        def also() -> Proposal:
            message = f"Proposal {id} was undone: {len(restored)} memories are as they were."
            return self._decided(proposal, ProposalState.UNDONE, message, was=ProposalState.APPLIED)

        return self._remember.unfold(owner, restored, made=made, also=also)

    def _suggestions(self, owner: Owner, open_ids: Collection[str]) -> list[Suggestion]:
        now = self._now()
        memories = [
            memory
            for kind, limit in EXAMINED.items()
            for memory in self._store.list_memories(owner, kind=kind, now=now, limit=limit)
            if memory.id not in open_ids
        ]
        suggested = self._asked(owner, memories)
        taken = {memory.id for each in suggested for memory in each.folds}
        rest = [memory for memory in memories if memory.id not in taken]
        ruled = consolidation.by_rules(rest, is_same=_is_same, now=now, is_noted=self._is_noted)
        return [*suggested, *ruled]

    def _asked(self, owner: Owner, memories: Sequence[Memory]) -> list[Suggestion]:
        """What a model suggests. One that fails or answers nonsense is in the audit log, and the rules do without."""
        sources = [memory for memory in memories if memory.kind in consolidation.SOURCES]
        if self._model is None or len(sources) < consolidation.MIN_REPEATS:
            return []
        sources.sort(key=lambda memory: memory.created_at, reverse=True)
        try:
            question = consolidation.question(sources)
            answer = self._model.complete(question, max_tokens=MAX_ANSWER_TOKENS, about=(owner, "consolidation"))
            suggested = consolidation.from_answer(answer, sources[: consolidation.MAX_ASKED])
            for each in suggested:
                self._guard.checked(checked(Draft(text=each.text, kind=each.kind), owner, self._now()))
        except ModelError as error:
            self._record(owner, "consolidation.fail", f"A model could not be asked to consolidate: {error}", {})
        except (Invalid, SecretRejected) as error:
            self._record(owner, "consolidation.fail", f"A model's proposals were not used: {error}", {})
        else:
            return suggested
        return []

    def _add(self, owner: Owner, proposals: Sequence[Proposal]) -> Sequence[Proposal]:
        if not proposals:
            return []

        def add() -> Sequence[Proposal]:
            added = self._store.add_proposals(owner, proposals)
            if added:
                message = f"{len(added)} proposal{'' if len(added) == 1 else 's'} to consolidate, from {added[0].id}."
                self._record(owner, "consolidation.propose", message, {"ids": [each.id for each in added]})
            return added

        return self._store.transaction(owner.tenant, add)

    def _applied_if_trusted(self, owner: Owner, proposal: Proposal) -> Proposal:
        if trust.reason_to_hold(proposal.kind, proposal.origin):
            return proposal  # somebody has to look at it
        try:
            return self.apply(owner, proposal.id)
        except (Conflict, NotFound):  # changed in between: it stays open, for a person to see
            return proposal

    def _open(self, owner: Owner, id: str) -> Proposal:
        proposal = self._store.get_proposal(owner, id)
        if proposal.state is not ProposalState.OPEN:
            raise Conflict(f"Proposal {id} is {proposal.state.value} already.")
        return proposal

    def _decided(self, proposal: Proposal, state: ProposalState, message: str, *, was: ProposalState) -> Proposal:
        """Inside a transaction: the proposal in its new state, which the audit log tells."""
        decided = self._store.decide_proposal(replace(proposal, state=state, decided_at=self._now()), was=was)
        self._record(proposal.owner, f"consolidation.{state.value}", message, {"id": proposal.id})
        return decided

    def _record(self, owner: Owner, action: str, message: str, meta: Mapping[str, Any]) -> None:
        event = AuditEvent(
            tenant=owner.tenant, at=self._now(), action=action, agent_id=owner.agent, message=message, meta=meta
        )
        self._store.add_event(event)


def _proposal(owner: Owner, suggestion: Suggestion, now: Clock) -> Proposal:
    return Proposal(
        owner=owner,
        kind=suggestion.kind,
        text=suggestion.text,
        tags=suggestion.tags,
        folds=tuple(Fold(id=memory.id, version=memory.version) for memory in suggestion.folds),
        reason=suggestion.reason,
        origin=suggestion.origin,
        created_at=now(),
    )


def _is_same(one: str, other: str) -> bool:
    """Compare two texts, if there is still time: long ones take long."""
    check_deadline()
    return duplicates.is_near_duplicate(one, other)


def _taken_in(folds: Sequence[Fold]) -> frozenset[tuple[str, int]]:
    """What tells one set of memories from another. Undoing leaves a memory two versions on, saying what it said."""
    return frozenset((fold.id, (fold.ended_version or fold.version - 1) + 1) for fold in folds)
