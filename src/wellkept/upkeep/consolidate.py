"""Consolidation: say once what was said many times, and end what newer facts contradict.

Maintenance merges near-duplicates and ends contradicted facts as one change for each user, which can be shown and
undone as a whole. What needs a decision is proposed: repeated entries of the journal as core, repeated episodes as
notes, whatever a model words anew, and weaker contradictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from wellkept.deadline import check_deadline
from wellkept.errors import Conflict, Invalid, ModelError, NotFound, SecretRejected
from wellkept.extension import Clock
from wellkept.memory import rules_duplicates as duplicates
from wellkept.memory.changes import CONTRADICTED, Changes, change_memory, propose_change, propose_end
from wellkept.memory.remember import Draft, Edited, Remember, check_draft
from wellkept.model import (
    AuditEvent,
    Change,
    ChangeAction,
    ChangeCause,
    ChangedMemory,
    ChangeState,
    EndedAs,
    Kind,
    Memory,
    Owner,
)
from wellkept.secrets.check import SecretGuard
from wellkept.upkeep import rules_consolidation as rules
from wellkept.upkeep.resting import GuardedModel

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_EXAMINED: Mapping[Kind, int] = {Kind.NOTE: 500, Kind.JOURNAL: 200, Kind.EPISODE: 500}
"""Number of newest memories of each kind that one run examines."""

MAX_FACTS = 1_000
"""Number of newest facts that one run examines."""

MAX_WAITING = 1_000
"""Number of changes waiting for a decision whose memories are left alone."""

MAX_ANSWER_TOKENS = 2000
REASON = "Near-duplicates were merged, and facts that newer ones contradict have ended."

Policy = Literal["apply", "propose", "off"]
Contradiction: TypeAlias = tuple[Memory, Memory, EndedAs, bool]
"""An older fact, the newer one that ends it, how it ends, and True if that is sure."""


class Consolidate:
    """Service that consolidates the memories of an agent, user by user."""

    def __init__(
        self,
        store: SqlStore,
        remember: Remember,
        changes: Changes,
        guard: SecretGuard,
        find_contradictions: Callable[[Sequence[Memory], int], Iterable[Contradiction]],
        now: Clock,
        *,
        model: GuardedModel | None = None,
        policy: Policy = "apply",
        is_noted: bool = True,
    ) -> None:
        """Set up; `is_noted` is False when notes live in a file, which keeps no history to undo to."""
        self._store = store
        self._remember = remember
        self._changes = changes
        self._guard = guard
        self._find_contradictions = find_contradictions
        self._now = now
        self._model = model
        self._policy = policy
        self._is_noted = is_noted

    def __call__(self, owner: Owner) -> Sequence[Change]:
        """Examine the newest memories, also by the model, and return the changes that were made or proposed.

        A change is about the memories of one user, or of none. A user's view makes none about the latter.
        """
        return self._consolidate(owner if owner.user is None else owner.of(owner.user), since=0, model=self._model)

    def run_if_changed(self, owner: Owner) -> int:
        """Examine an agent in which memories were stored since the last run; return how many were merged or ended."""
        last, done = self._store.find_consolidated(owner)
        if self._policy == "off" or last <= done:
            return 0
        try:
            changes = self._consolidate(owner, since=done, model=None)
        except (Conflict, NotFound):
            # Somebody writes; the next run sees it all.
            return 0
        self._store.keep_consolidated(owner, last)
        made = [each for each in changes if each.state is ChangeState.APPLIED]
        return sum(memory.action is ChangeAction.END for each in made for memory in each.memories)

    def _consolidate(self, owner: Owner, *, since: int, model: GuardedModel | None) -> Sequence[Change]:
        found: list[Change] = []
        for user, memories in self._list_memories(owner).items():
            own = owner.of(user)
            merged, ended = self._merge(memories), set[str]()
            proposals = list[Change]()
            for old, new, ended_as, is_sure in self._find_contradictions(
                [each for each in memories if each.told is not None and each.id not in merged], since
            ):
                if not {old.id, new.id}.isdisjoint(ended):
                    continue
                ended.add(old.id)
                end = propose_end(old, new, ended_as)
                if is_sure:
                    merged[old.id] = (old, end)
                else:
                    proposals.append(self._propose(own, CONTRADICTED.format(new.id), [end]))
            found += self._apply(own, merged)
            rest = [each for each in memories if each.id not in merged and each.id not in ended]
            proposals += [self._propose_memory(own, each) for each in self._suggest(rest, model, own)]
            found += self._changes.propose(own, proposals)
        return found

    def _list_memories(self, owner: Owner) -> Mapping[str | None, list[Memory]]:
        """Return the live memories to examine by user, without those of changes that wait or were not wanted."""
        now = self._now()
        waiting = self._store.list_changes(owner, state=ChangeState.PROPOSED, limit=MAX_WAITING)
        left_out = {each.id for change in waiting for each in change.memories}
        unwanted = self._changes.find_unwanted(owner)
        of_users: dict[str | None, dict[str, Memory]] = {}
        facts = self._store.list_told(owner, now=now, limit=MAX_FACTS)
        for memories in (
            facts,
            *(
                self._store.list_memories(owner, kind=kind, now=now, limit=limit)
                for kind, limit in MAX_EXAMINED.items()
                if self._is_noted or kind is not Kind.NOTE
            ),
        ):
            for memory in memories:
                if memory.id not in left_out and (memory.id, memory.version) not in unwanted:
                    of_users.setdefault(memory.user, {})[memory.id] = memory
        return {user: list(memories.values()) for user, memories in of_users.items()}

    def _merge(self, memories: Sequence[Memory]) -> dict[str, tuple[Memory, ChangedMemory]]:
        """Return what becomes of near-duplicate notes, and of near-duplicate facts, by id."""
        merged: dict[str, tuple[Memory, ChangedMemory]] = {}
        for kept, others in rules.find_duplicates(memories, is_same=_is_same):
            after = rules.join_fields(kept, others)
            if after:
                edit = ChangedMemory(action=ChangeAction.EDIT, id=kept.id, version=kept.version, after=after)
                merged[kept.id] = (kept, edit)
            merged |= {other.id: (other, propose_end(other, kept)) for other in others}
        return merged

    def _apply(self, owner: Owner, changed: Mapping[str, tuple[Memory, ChangedMemory]]) -> Sequence[Change]:
        """Carry out what is sure as one change, or propose it."""
        if not changed:
            return []
        if self._policy == "propose":
            return self._changes.propose(owner, [self._propose(owner, REASON, [each for _, each in changed.values()])])
        now = self._now()

        def record(added: Sequence[Memory], edited: Sequence[Edited], known: set[str]) -> Change:
            return self._changes.record(owner, ChangeCause.CONSOLIDATION, REASON, edited=edited)

        edits = self._changes.add_turns(owner, [change_memory(*each, now) for each in changed.values()])
        return [self._remember.carry_out(owner, [], edits, also=record)]

    def _suggest(self, memories: Sequence[Memory], model: GuardedModel | None, owner: Owner) -> list[rules.Suggestion]:
        """Return what the model suggests, then what the rules do about the memories that it left."""
        by_model = [] if model is None else self._ask_model(model, owner, memories)
        folded = {memory.id for each in by_model for memory in each.folds}
        rest = [memory for memory in memories if memory.id not in folded]
        return [*by_model, *rules.suggest_by_rules(rest, is_same=_is_same)]

    def _ask_model(self, model: GuardedModel, owner: Owner, memories: Sequence[Memory]) -> list[rules.Suggestion]:
        """Return the model's suggestions; record a failure or an invalid answer and return none."""
        sources = [memory for memory in memories if memory.kind in rules.SOURCES]
        if len(sources) < rules.MIN_REPEATS:
            return []
        sources.sort(key=lambda memory: memory.created_at, reverse=True)
        try:
            question = rules.build_messages(sources)
            answer = model.complete(question, max_tokens=MAX_ANSWER_TOKENS, about=(owner, "consolidation"))
            suggestions = rules.parse_answer(answer, sources[: rules.MAX_ASKED])
            for each in suggestions:
                self._guard.check(check_draft(Draft(text=each.text, kind=each.kind), owner, self._now()))
        except ModelError as error:
            problem = f"A model could not be asked to consolidate: {error}"
        except (Invalid, SecretRejected) as error:
            problem = f"A model's suggestions were not used: {error}"
        else:
            return suggestions
        self._store.add_event(
            AuditEvent(
                tenant=owner.tenant, at=self._now(), action="consolidation.fail", agent_id=owner.agent, message=problem
            )
        )
        return []

    def _propose_memory(self, owner: Owner, suggestion: rules.Suggestion) -> Change:
        after = {"kind": suggestion.kind.value, "tags": list(suggestion.tags), "origin": suggestion.origin.value}
        memories = [ChangedMemory(action=ChangeAction.ADD, after=after), *map(propose_end, suggestion.folds)]
        return self._propose(owner, suggestion.reason, memories, text=suggestion.text)

    def _propose(self, owner: Owner, reason: str, memories: Sequence[ChangedMemory], *, text: str = "") -> Change:
        return propose_change(owner, ChangeCause.CONSOLIDATION, reason, memories, self._now(), text=text)


def _is_same(one: str, other: str) -> bool:
    """Return True if two texts are near-duplicates; long ones take a while, so the deadline is checked first."""
    check_deadline()
    return duplicates.is_near_duplicate(one, other)
