"""Facts that rules alone cannot compare: a configured model is asked which older ones a new one ends.

It is asked after the turn is stored, on a thread, about all turns of a moment in one question, and its decisions are
one change that can be undone. How far it has come is stored, so that what a process leaves is done by the next turn or
maintenance in any process. A failure changes nothing: the facts stay as the rules left them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from wellkept.errors import ModelError, WellkeptError
from wellkept.extension import Clock
from wellkept.facts import rules_question as question
from wellkept.facts.rules_question import FactCase, ModelEnding
from wellkept.facts.telling import Telling, parse_fact
from wellkept.history.workflows import record_event
from wellkept.language.names import memory_seq
from wellkept.language.text import content_hash
from wellkept.memory.changes import Changes
from wellkept.memory.remember import Edited, Remember
from wellkept.model import AuditEvent, ChangeCause, Memory, Owner
from wellkept.secrets.check import SecretGuard
from wellkept.upkeep.background import Job
from wellkept.upkeep.resting import GuardedModel

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_FACTS = 300
"""Newest facts of a user that new ones are compared with. Older ones are left to the rules."""

GATHER_SECONDS = 0.2
"""Seconds between a turn and the question, so that turns of the same moment are one question."""

WAIT_SECONDS = 2.0
"""Longest time that a prompt waits for the answer about a turn just before it."""

REASON = "A model read that something else holds now."

log = logging.getLogger("wellkept")


class AskModel:
    """Service that asks a model about the facts of turns."""

    def __init__(
        self,
        store: SqlStore,
        remember: Remember,
        telling: Telling,
        changes: Changes,
        guard: SecretGuard,
        model: GuardedModel | None,
        now: Clock,
    ) -> None:
        """Set up; without a model, nothing is asked."""
        self._store = store
        self._remember = remember
        self._telling = telling
        self._changes = changes
        self._guard = guard
        self._model = model
        self._now = now
        self._job = Job("facts", self._compare_waiting, failed="Facts could not be compared")
        # Guards the fields below.
        self._lock = threading.Lock()
        self._waiting: dict[Owner, None] = {}
        self._running: Owner | None = None

    @property
    def has_model(self) -> bool:
        return self._model is not None

    def request(self, owner: Owner) -> None:
        """Compare an agent's new facts soon, and return at once."""
        if self._model is None:
            return
        with self._lock:
            self._waiting[owner.whole] = None
        self._job.wake(GATHER_SECONDS)

    def settle(self, owner: Owner) -> None:
        """Wait a moment for what was requested, so that a prompt shows its result."""
        agent = owner.whole
        self._job.wait_for(lambda: agent not in self._waiting and agent != self._running, WAIT_SECONDS)

    def close(self) -> None:
        """End the job without waiting for a model; the next turn or maintenance continues."""
        self._waiting.clear()
        self._job.close(patience=0.0)

    def run(self, owner: Owner) -> int:
        """Compare an agent's facts that are new since the last time; return how many ended.

        Raises: ModelError, StoreError.
        """
        new = self._list_new(owner)
        count = sum(self._compare(owner.of(user), new) for user in dict.fromkeys(each.user for each in new))
        if new:
            self._store.keep_compared(owner, _seq(new[-1]))
        return count

    def leave_out(self, owner: Owner, added: Sequence[Memory]) -> None:
        """Do not compare facts that were compared before they were stored, if no others wait."""
        new = self._list_new(owner)
        if new and {each.id for each in new} <= {each.id for each in added}:
            self._store.keep_compared(owner, _seq(new[-1]))

    def _list_new(self, owner: Owner) -> Sequence[Memory]:
        """Return the facts of all users of an agent that no question was about, oldest first."""
        done = self._store.find_compared(owner)
        facts = self._store.list_told(owner.whole, now=self._now(), limit=MAX_FACTS)
        return [each for each in reversed(facts) if _seq(each) > done]

    def attempt(self, owner: Owner) -> None:
        """Do as `run`, but log what fails; do nothing without a model."""
        if self._model is None:
            return
        try:
            self.run(owner)
        except ModelError as error:
            self.record_failure(owner, error)
        except WellkeptError as error:
            # Such as somebody who edited a fact meanwhile; the next turn asks again.
            log.warning("Facts could not be compared: %s", error)

    def ask(self, owner: Owner, cases: Sequence[FactCase]) -> list[ModelEnding]:
        """Return what a model decides about some cases, in one question. Raises: ModelError."""
        assert self._model is not None
        asked = [self._redact(owner, each) for each in cases]
        answer = self._model.complete(
            question.build_messages(asked),
            max_tokens=question.MAX_TOKENS,
            about=(owner, content_hash("\n".join(each.new for each in asked))),
            find_problem=lambda answer: question.find_problem(answer, asked),
        )
        return question.parse_answer(answer)

    def record_failure(self, owner: Owner, error: ModelError) -> None:
        """Record in the audit log that a model could not be asked."""
        log.warning("Facts were compared by rules alone because the model failed: %s", error)
        message = "A model could not be asked about facts, so they stay as the rules left them."
        event = AuditEvent(
            tenant=owner.tenant, at=self._now(), action="facts.model_fail", agent_id=owner.agent, message=message
        )
        record_event(self._store, event)

    def _compare(self, owner: Owner, new: Sequence[Memory]) -> int:
        """Compare those of the new facts that are of one user, question by question; return how many ended."""
        count, own = 0, [each for each in new if each.user == (owner.user or None)]
        for start in range(0, len(own), question.MAX_CASES):
            part = own[start : start + question.MAX_CASES]
            standing = {_seq(each): each for each in self._store.list_told(owner, now=self._now(), limit=MAX_FACTS)}
            made = [(each, self._make_case(each, standing)) for each in part if _seq(each) in standing]
            cases = [(each, case) for each, case in made if case is not None]
            if cases:
                count += self._end(owner, cases, self.ask(owner, [case for _, case in cases]))
        return count

    def _make_case(self, new: Memory, standing: Mapping[int, Memory]) -> FactCase | None:
        """Return the question about a fact; None if nothing is near it."""
        older = [(seq, parse_fact(each.text)) for seq, each in standing.items() if _is_older(each, new)]
        near = self._telling.find_nearest(parse_fact(new.text).statement, older, question.MAX_OLD) if older else []
        if not near:
            return None
        turn = self._store.find_memories(new.home, [memory_seq(id) or 0 for id in new.sources[:1]])
        said = next(iter(turn.values()), None)
        old = {standing[seq].id: standing[seq].text for seq in near}
        return FactCase(new=new.text, old=old, turn="" if said is None else said.text)

    def _end(self, owner: Owner, cases: Sequence[tuple[Memory, FactCase]], endings: Sequence[ModelEnding]) -> int:
        """End facts as one change; one that was edited or ended meanwhile is left alone."""

        def end() -> int:
            edited, rests = list[Edited](), list[Memory]()
            for each in endings:
                by, case = cases[each.case]
                rest = self._telling.find_rest(parse_fact(case.old[each.id]).statement, parse_fact(by.text).statement)
                ended = self._telling.end(owner, memory_seq(each.id) or 0, by, each.ended_as, at=by.since, rest=rest)
                edited += ended[0]
                rests += ended[1]
            if edited:
                self._changes.record(owner, ChangeCause.TURN, REASON, added=rests, edited=edited)
            return sum(before.told is not None for before, _ in edited)

        return self._remember.run_with_episodes(owner, [], end) if endings else 0

    def _redact(self, owner: Owner, case: FactCase) -> FactCase:
        redact = self._guard.redact
        old = {id: redact(owner.tenant, text) for id, text in case.old.items()}
        return replace(case, new=redact(owner.tenant, case.new), turn=redact(owner.tenant, case.turn), old=old)

    def _compare_waiting(self) -> None:
        while not self._job.is_closed:
            with self._lock:
                self._running = next(iter(self._waiting), None)
                if self._running is None:
                    return
                del self._waiting[self._running]
            try:
                self.attempt(self._running)
            finally:
                self._running = None
                self._job.note_progress()


def _seq(memory: Memory) -> int:
    return memory_seq(memory.id) or 0


def _is_older(old: Memory, new: Memory) -> bool:
    return (old.since, _seq(old)) < (new.since, _seq(new))
