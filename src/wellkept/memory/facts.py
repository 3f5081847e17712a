"""Facts out of conversations: `add` reads messages and keeps what lasts.

A model, if there is one, proposes operations in one call outside any transaction; otherwise, and when it fails, rules
pick statements in the user's own words. Each fact is an episode of the category `fact` and passes the write path like
any other memory. All of it is one change, which can be undone while no memory has changed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wellkept.caller import current_caller
from wellkept.deadline import iter_with_deadline
from wellkept.errors import Conflict, Forbidden, Invalid, ModelError, NotFound, SecretRejected, WellkeptError
from wellkept.extension import Clock
from wellkept.history.noting import record_event
from wellkept.language.text import content_hash
from wellkept.memory import rules_fact_answers as fact_answers
from wellkept.memory import rules_fact_slots as fact_slots
from wellkept.memory import rules_facts as facts
from wellkept.memory import rules_trust as trust
from wellkept.memory.changes import Changes
from wellkept.memory.drafts import find_session_user
from wellkept.memory.fact_requests import FactsRequest
from wellkept.memory.fact_writing import ORIGINS, FactWriting
from wellkept.memory.remember import Remember
from wellkept.memory.similar import Similar
from wellkept.model import (
    AddedFacts,
    AuditEvent,
    ChangeCause,
    DroppedFact,
    Kind,
    Memory,
    Origin,
    Owner,
    Role,
)
from wellkept.secrets.check import SecretGuard
from wellkept.upkeep.resting import GuardedModel

if TYPE_CHECKING:
    from wellkept.memory.rules_fact_answers import FactChange
    from wellkept.store.sqlstore import SqlStore


MAX_QUERY_CHARS = 2_000
"""Characters of the conversation by which related memories are searched; the newest."""

MAX_DROPPED = 200
"""Left-out statements that one call names."""

CANDIDATES = 20
"""Memories among which the one is looked for that a statement replaces."""

SAID_TWICE = "said twice in this conversation"
KNOWN_KINDS = (Kind.EPISODE, Kind.NOTE, Kind.CORE)
REFUSALS = (Invalid, Forbidden, NotFound)

log = logging.getLogger("wellkept")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Operations to carry out, and what was left out before."""

    operations: Sequence[FactChange]
    dropped: Sequence[DroppedFact]
    origin: Origin | None = None  # None: by the speaker
    problem: str = ""


class ExtractFacts:
    """Service that stores the facts of conversations."""

    def __init__(
        self,
        store: SqlStore,
        remember: Remember,
        changes: Changes,
        guard: SecretGuard,
        similar: Similar,
        now: Clock,
        *,
        model: GuardedModel | None = None,
        is_noted: bool = True,
    ) -> None:
        """Set up; `is_noted` is False when notes live in a file, which keeps no history to undo to."""
        self._store = store
        self._remember = remember
        self._changes = changes
        self._guard = guard
        self._similar = similar
        self._now = now
        self._model = model
        self._target_kinds = (Kind.EPISODE, Kind.NOTE) if is_noted else (Kind.EPISODE,)

    def __call__(self, owner: Owner, request: FactsRequest) -> AddedFacts:
        """Store the facts of a conversation, or with `dry_run` only show them.

        Raises: Invalid, SecretRejected when the session id is wrong; StoreError.
        """
        self._guard.check_names(owner.tenant, agent_id=owner.agent, session_id=request.session_id)
        # Refused here, rather than once for each fact.
        self._guard.check_metadata(owner.tenant, request.metadata or {})
        # Facts belong to the user of the conversation, or to none, and are compared with those of the same.
        owner = owner.of(owner.user or find_session_user(self._store, owner, request.session_id))
        plan = self._ask_model(owner, request.messages) or self._read_by_rules(request.messages)
        return self._carry_out(owner, request, plan)

    def _read_by_rules(self, messages: Sequence[tuple[Role, str]], problem: str = "") -> _Plan:
        read = list(iter_with_deadline(facts.read_facts(messages)))
        dropped = [DroppedFact(text=each.text, turn=each.turn, reason=each.reason) for each in read if each.reason]
        kept = [
            fact_answers.FactChange(op=fact_answers.FactOp.ADD, text=each.text, turn=each.turn)
            for each in read
            if not each.reason
        ]
        return _Plan(operations=kept, dropped=dropped, problem=problem)

    def _ask_model(self, owner: Owner, messages: Sequence[tuple[Role, str]]) -> _Plan | None:
        """Return the plan of the model, or of the rules if it fails; None without a model or anything to read."""
        spoken = [text for role, text in messages if role in ORIGINS]
        if self._model is None or not any(text.strip() for text in spoken):
            return None
        turns = [(role, self._guard.redact(owner.tenant, text)) for role, text in messages]
        query = "\n".join(text for role, text in turns if role in ORIGINS)[-MAX_QUERY_CHARS:]
        known = self._similar.find_related(owner, query, kinds=self._target_kinds, limit=fact_answers.MAX_MEMORIES)
        # A memory that ends already could not be restored to its former end by an undo.
        targets = [memory for memory in known if memory.valid_to is None]
        try:
            answer = self._model.complete(
                fact_answers.build_messages(turns, targets),
                max_tokens=fact_answers.MAX_TOKENS,
                about=(owner, content_hash("\n".join(spoken))),
                find_problem=fact_answers.find_problem,
            )
        except ModelError as error:
            log.warning("Facts were read by rules because the model failed: %s", error)
            self._record(owner, "facts.model_fail", "A model could not be asked for facts, so rules read them.", {})
            return self._read_by_rules(messages, problem=str(error))
        operations, dropped = fact_answers.parse_answer(answer, turns, targets)
        return _Plan(operations=operations, dropped=dropped, origin=Origin.MODEL)

    def _carry_out(self, owner: Owner, request: FactsRequest, plan: _Plan) -> AddedFacts:
        """Check each operation and carry out those that pass; one that is refused does not affect the others."""
        writing = FactWriting(request, plan.origin)
        for operation in iter_with_deadline(plan.operations):
            operation = self._find_replaced(owner, operation, plan, writing)
            reason = writing.find_problem(operation) or self._find_known(owner, operation, writing)
            if reason:
                writing.dropped.append(DroppedFact(text=operation.text, turn=operation.turn, reason=reason))
            else:
                writing.take(operation, self._now())
        while True:
            try:
                result = self._write(owner, request, writing)
                break
            except REFUSALS as error:
                if error.item is None:
                    raise
                writing.refuse(error.item, _explain(error))
            except Conflict:
                # A memory was changed while the model thought. Its changes are left out, the new facts are kept.
                if not writing.refuse_changes("the memory was changed meanwhile"):
                    raise
        dropped = [
            replace(each, text=self._guard.redact(owner.tenant, each.text))
            for each in (*plan.dropped, *writing.dropped)[:MAX_DROPPED]
        ]
        return replace(
            result,
            dropped=tuple(sorted(dropped, key=lambda each: -1 if each.turn is None else each.turn)),
            source="rules" if plan.origin is None else "model",
            problem=plan.problem,
            is_dry_run=request.dry_run,
            revert=lambda change: self._changes.undo(owner, change),
        )

    def _write(self, owner: Owner, request: FactsRequest, writing: FactWriting) -> AddedFacts:
        drafts, edits = [draft for draft, _ in writing.drafts], [edit for edit, _ in writing.edits]
        if request.dry_run:
            return writing.report(*self._remember.check(owner, drafts, edits))
        if not drafts and not edits:
            return AddedFacts()

        return self._changes.write(
            owner,
            drafts,
            edits,
            cause=ChangeCause.ADD,
            reason="Read out of a conversation.",
            also=lambda added, changed, change: replace(writing.report(added, changed), change=change.id),
        )

    def _find_replaced(self, owner: Owner, operation: FactChange, plan: _Plan, writing: FactWriting) -> FactChange:
        """Return an operation that supersedes the older statement of the same user, if rules are sure of it."""
        slot = fact_slots.find_slot(operation.text) if plan.origin is None else None
        if slot is None or not slot.is_change or ORIGINS[writing.role_of(operation)] is not Origin.USER:
            return operation
        writing.drop_replaced(operation.text)
        known = self._similar.find_related(owner, operation.text, kinds=self._target_kinds, limit=CANDIDATES)
        old = [
            memory
            for memory in known
            if memory.user == (owner.user or None)
            and memory.origin is Origin.USER
            and memory.valid_to is None
            and trust.is_within(memory.origin, current_caller().trust)
            and not writing.is_changed(memory.id)
            and fact_slots.is_replaced(memory.text, operation.text)
        ]
        # Two that contradict each other are for a person to settle.
        return replace(operation, op=fact_answers.FactOp.SUPERSEDE, target=old[0]) if len(old) == 1 else operation

    def _find_known(self, owner: Owner, operation: FactChange, writing: FactWriting) -> str:
        """Return a reason if a fact is remembered already, or an earlier one of this conversation says the same."""
        if operation.op == "drop":
            return ""
        if writing.is_repeated(operation):
            return SAID_TWICE
        # Validated by the write path later; here it only carries the text.
        memory = Memory(
            owner=owner.whole,
            user=owner.user or None,
            kind=Kind.EPISODE,
            text=operation.text,
            created_at=self._now(),
        )
        own = "" if operation.target is None else operation.target.id
        for other in self._similar(owner, memory, kinds=KNOWN_KINDS):
            if other.id != own or content_hash(other.text) == content_hash(operation.text):
                return f"already remembered as {other.id}"
        return SAID_TWICE if writing.has_same(operation.text) else ""

    def _record(self, owner: Owner, action: str, message: str, meta: Mapping[str, Any]) -> None:
        event = AuditEvent(
            tenant=owner.tenant, at=self._now(), action=action, agent_id=owner.agent, message=message, meta=meta
        )
        record_event(self._store, event) if action == "facts.model_fail" else self._store.add_event(event)


def _explain(error: WellkeptError) -> str:
    return "seems to hold a secret" if isinstance(error, SecretRejected) else str(error)
