"""Consolidation: merge repeated memories into one lasting memory.

Rules or a model make the proposals, always outside a transaction, and the store keeps them until a caller decides.
Applying a proposal ends the memories it folds, each only if its version has not changed since, and writes the memory
that replaces them. Nothing is deleted, so a proposal can be undone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from wellkept.deadline import check_deadline
from wellkept.errors import Conflict, Invalid, ModelError, NotFound, SecretRejected
from wellkept.extension import Clock
from wellkept.language.names import memory_seq
from wellkept.memory import rules_consolidation as consolidation
from wellkept.memory import rules_duplicates as duplicates
from wellkept.memory import rules_trust as trust
from wellkept.memory.drafts import Draft, check_draft, check_own
from wellkept.memory.remember import Remember
from wellkept.memory.rules_consolidation import Suggestion
from wellkept.model import AuditEvent, FoldedMemory, Kind, Memory, Owner, Proposal, ProposalState
from wellkept.secrets.check import SecretGuard
from wellkept.upkeep.resting import GuardedModel

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_EXAMINED: Mapping[Kind, int] = {Kind.NOTE: 500, Kind.JOURNAL: 200, Kind.EPISODE: 500}
"""Number of newest memories of each kind that one run examines."""

MAX_DECIDED = 500
"""Number of earlier proposals compared, so that a rejected one is not proposed again."""

MAX_ANSWER_TOKENS = 2000

Policy = Literal["propose", "apply"]


class Consolidate:
    """Service that proposes consolidations, and applies, rejects and undoes them."""

    def __init__(
        self,
        store: SqlStore,
        remember: Remember,
        guard: SecretGuard,
        now: Clock,
        *,
        model: GuardedModel | None = None,
        policy: Policy = "propose",
        is_noted: bool = True,
    ) -> None:
        self._store = store
        self._remember = remember
        self._guard = guard
        self._now = now
        self._model = model
        self._policy = policy
        # False when notes live in a file: the file keeps no history to undo to.
        self._is_noted = is_noted

    def __call__(self, owner: Owner) -> Sequence[Proposal]:
        """Add and return new proposals; with the policy "apply", apply the trusted ones at once.

        A proposal folds memories of one user, or of none. A user's view proposes nothing about the latter.
        """
        owner = owner if owner.user is None else owner.of(owner.user)
        earlier = self._store.list_proposals(owner, limit=MAX_DECIDED)
        open_ids = {fold.id for each in earlier if each.state is ProposalState.OPEN for fold in each.folds}
        decided = {_fold_key(each.folds) for each in earlier if each.state is not ProposalState.OPEN}
        fresh = [_make_proposal(owner, each, self._now) for each in self._suggest(owner, open_ids)]
        added = self._add(owner, [each for each in fresh if _fold_key(each.folds) not in decided])
        if self._policy == "propose":
            return added
        return [self._apply_if_trusted(owner, each) for each in added]

    def apply(self, owner: Owner, id: str) -> Proposal:
        """Store the proposed memory and end the memories it folds.

        Raises: NotFound; Conflict when it is not open, or a memory was edited or deleted since it was made.
        """
        proposal = self._get_open(owner, id)
        found = self._store.find_memories(owner, [memory_seq(fold.id) or 0 for fold in proposal.folds])
        memories = {memory.id: memory for memory in found.values()}
        for fold in proposal.folds:
            if fold.id not in memories or memories[fold.id].version != fold.version:
                raise Conflict(
                    f"Memory {fold.id} has changed since {id} was proposed; reject it and consolidate again."
                )
        folded = [memories[fold.id] for fold in proposal.folds]
        draft = Draft(
            text=proposal.text,
            kind=proposal.kind,
            tags=proposal.tags,
            origin=proposal.origin,
            importance=max(memory.importance for memory in folded) if proposal.kind is not Kind.CORE else None,
            user=proposal.user,
        )

        def also(made: Memory, ended: Sequence[Memory], is_new: bool) -> Proposal:
            folds = tuple(
                replace(fold, ended_version=after.version, valid_to=before.valid_to)
                for fold, before, after in zip(proposal.folds, folded, ended, strict=True)
            )
            applied = replace(proposal, folds=folds, memory_id=made.id, is_new=is_new)
            message = f"Proposal {id} was applied: {made.id} stands for {len(folds)} memories."
            return self._decide(applied, ProposalState.APPLIED, message, was=ProposalState.OPEN)

        return self._remember.fold(owner, draft, folded=folded, also=also)

    def reject(self, owner: Owner, id: str) -> Proposal:
        """Reject a proposal: no memory changes, and the same folds are not proposed again.

        Raises: NotFound; Conflict when it is not open.
        """
        proposal, message = self._get_open(owner, id), f"Proposal {id} was rejected."
        return self._store.transaction(
            owner.tenant, lambda: self._decide(proposal, ProposalState.REJECTED, message, was=ProposalState.OPEN)
        )

    def undo(self, owner: Owner, id: str) -> Proposal:
        """Undo an applied proposal: restore the memories it folded and delete the memory it made.

        Raises: NotFound; Conflict when it is not applied, or one of its memories was edited or deleted since.
        """
        proposal = self._get_own(owner, id)
        if proposal.state is not ProposalState.APPLIED:
            raise Conflict(f"Proposal {id} is {proposal.state.value}; only an applied one can be undone.")
        made = proposal.memory_id if proposal.is_new else None
        seqs = [memory_seq(each) or 0 for each in (*(fold.id for fold in proposal.folds), *((made,) if made else ()))]
        memories = {memory.id: memory for memory in self._store.find_memories(owner, seqs).values()}
        if made is not None and (made not in memories or memories[made].version != 1):
            raise Conflict(f"Memory {made} was edited or deleted since; restore by hand the memories that {id} folded.")
        for fold in proposal.folds:
            if fold.id not in memories or memories[fold.id].version != fold.ended_version:
                raise Conflict(f"Memory {fold.id} was edited or deleted since {id} was applied.")
        restored = [replace(memories[fold.id], valid_to=fold.valid_to) for fold in proposal.folds]

        def also() -> Proposal:
            message = f"Proposal {id} was undone: {len(restored)} memories are as they were."
            return self._decide(proposal, ProposalState.UNDONE, message, was=ProposalState.APPLIED)

        return self._remember.revert(owner, restored, made=[made] if made else [], also=also)

    def _suggest(self, owner: Owner, open_ids: Collection[str]) -> list[Suggestion]:
        """Return suggestions of the model, then of the rules for the memories it left, omitting those in `open_ids`."""
        now = self._now()
        of_users: dict[str | None, list[Memory]] = {}
        for kind, limit in MAX_EXAMINED.items():
            for memory in self._store.list_memories(owner, kind=kind, now=now, limit=limit):
                if memory.id not in open_ids:
                    of_users.setdefault(memory.user, []).append(memory)
        suggestions: list[Suggestion] = []
        for memories in of_users.values():
            by_model = self._ask_model(owner, memories)
            folded = {memory.id for each in by_model for memory in each.folds}
            rest = [memory for memory in memories if memory.id not in folded]
            by_rules = consolidation.suggest_by_rules(rest, is_same=_is_same, now=now, is_noted=self._is_noted)
            suggestions += [*by_model, *by_rules]
        return suggestions

    def _ask_model(self, owner: Owner, memories: Sequence[Memory]) -> list[Suggestion]:
        """Return the model's suggestions; record a failure or an invalid answer and return none."""
        sources = [memory for memory in memories if memory.kind in consolidation.SOURCES]
        if self._model is None or len(sources) < consolidation.MIN_REPEATS:
            return []
        sources.sort(key=lambda memory: memory.created_at, reverse=True)
        try:
            question = consolidation.build_messages(sources)
            answer = self._model.complete(question, max_tokens=MAX_ANSWER_TOKENS, about=(owner, "consolidation"))
            suggestions = consolidation.parse_answer(answer, sources[: consolidation.MAX_ASKED])
            for each in suggestions:
                self._guard.check(check_draft(Draft(text=each.text, kind=each.kind), owner, self._now()))
        except ModelError as error:
            self._record(owner, "consolidation.fail", f"A model could not be asked to consolidate: {error}", {})
        except (Invalid, SecretRejected) as error:
            self._record(owner, "consolidation.fail", f"A model's proposals were not used: {error}", {})
        else:
            return suggestions
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

    def _apply_if_trusted(self, owner: Owner, proposal: Proposal) -> Proposal:
        """Apply a proposal unless it needs review or its memories changed; it then stays open."""
        if trust.find_hold_reason(proposal.kind, proposal.origin):
            return proposal
        try:
            return self.apply(owner, proposal.id)
        except (Conflict, NotFound):
            return proposal

    def _get_open(self, owner: Owner, id: str) -> Proposal:
        proposal = self._get_own(owner, id)
        if proposal.state is not ProposalState.OPEN:
            raise Conflict(f"Proposal {id} is already {proposal.state.value}.")
        return proposal

    def _get_own(self, owner: Owner, id: str) -> Proposal:
        proposal = self._store.get_proposal(owner, id)
        check_own(owner, proposal.user)
        return proposal

    def _decide(self, proposal: Proposal, state: ProposalState, message: str, *, was: ProposalState) -> Proposal:
        """Store the proposal's new state and record an audit event. The caller holds a transaction."""
        decided = self._store.decide_proposal(replace(proposal, state=state, decided_at=self._now()), was=was)
        self._record(proposal.owner, f"consolidation.{state.value}", message, {"id": proposal.id})
        return decided

    def _record(self, owner: Owner, action: str, message: str, meta: Mapping[str, Any]) -> None:
        event = AuditEvent(
            tenant=owner.tenant, at=self._now(), action=action, agent_id=owner.agent, message=message, meta=meta
        )
        self._store.add_event(event)


def _make_proposal(owner: Owner, suggestion: Suggestion, now: Clock) -> Proposal:
    return Proposal(
        owner=owner.whole,
        user=suggestion.folds[0].user,
        kind=suggestion.kind,
        text=suggestion.text,
        tags=suggestion.tags,
        folds=tuple(FoldedMemory(id=memory.id, version=memory.version) for memory in suggestion.folds),
        reason=suggestion.reason,
        origin=suggestion.origin,
        created_at=now(),
    )


def _is_same(one: str, other: str) -> bool:
    """Return True if two texts are near-duplicates.

    Long texts take a while to compare, so the deadline is checked first.
    """
    check_deadline()
    return duplicates.is_near_duplicate(one, other)


def _fold_key(folds: Sequence[FoldedMemory]) -> frozenset[tuple[str, int]]:
    """Return a key that identifies a set of memories and their text, also after an undo."""
    # Applying and undoing each add a version without changing the text, so an undone fold counts two versions later.
    return frozenset((fold.id, (fold.ended_version or fold.version - 1) + 1) for fold in folds)
