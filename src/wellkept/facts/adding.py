"""Facts out of conversations that were held elsewhere: read like logged turns, and undone as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from wellkept.deadline import iter_with_deadline
from wellkept.errors import ModelError
from wellkept.extension import Clock
from wellkept.facts.asking import MAX_FACTS as MAX_COMPARED
from wellkept.facts.asking import AskModel
from wellkept.facts.requests import FactsRequest
from wellkept.facts.rules_pairs import Consequence, Verdict
from wellkept.facts.rules_question import MAX_CASES, MAX_OLD, FactCase
from wellkept.facts.telling import Ending, ParsedFact, Telling, TurnReading, WrittenTurn
from wellkept.language.names import memory_id
from wellkept.language.text import content_hash
from wellkept.memory.changes import Changes
from wellkept.memory.remember import Remember, find_session_user
from wellkept.memory.rules_filters import check_filters
from wellkept.model import AddedFacts, ChangeCause, DroppedFact, FoundFact, Kind, Memory, Owner, Role
from wellkept.secrets.check import SecretGuard

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_DROPPED = 200
"""Left-out statements that one call names."""

MAX_TURNS = 1_000
"""Logged messages of a session among which those of the conversation are looked for."""

OWN_WORDS = "the assistant's own words"


class AddFacts:
    """Service that stores the facts of conversations."""

    def __init__(
        self,
        store: SqlStore,
        remember: Remember,
        telling: Telling,
        changes: Changes,
        guard: SecretGuard,
        now: Clock,
        *,
        model: AskModel,
    ) -> None:
        self._store = store
        self._remember = remember
        self._telling = telling
        self._changes = changes
        self._guard = guard
        self._now = now
        self._model = model

    def __call__(self, owner: Owner, request: FactsRequest) -> AddedFacts:
        """Store the facts of a conversation, or with `dry_run` only show them.

        Raises: Invalid, SecretRejected when the session id or the metadata is wrong; StoreError.
        """
        self._guard.check_names(owner.tenant, agent_id=owner.agent, session_id=request.session_id)
        metadata, _ = self._guard.check_metadata(owner.tenant, request.metadata or {})
        # Facts belong to the user of the conversation, or to none, and are compared with those of the same.
        owner = owner.of(owner.user or find_session_user(self._store, owner, request.session_id))
        said = [(turn, text) for turn, (role, text) in enumerate(request.messages) if role is Role.USER]
        cleaned = ((turn, self._guard.clean(owner.tenant, text)[0]) for turn, text in iter_with_deadline(said))
        reading = self._telling.read_conversation(owner, cleaned)
        source, problem = self._ask_model(owner, reading)
        now, dropped = self._now(), self._list_dropped(owner, request, reading)
        turns = self._find_turns(owner, request)
        written = WrittenTurn()
        if request.dry_run:
            made = self._telling.make_memories(
                owner, reading, turns, session_id=request.session_id, at=now, metadata=metadata
            )
            known = self._store.find_memories(owner, [each.seq for each in reading.endings if each.seq > 0])
            old = [known.get(each.seq) or made[-1 - each.seq] for each in reading.endings]
            ends = [*zip(reading.endings, old, strict=True)]
            rests = [(end.by, self._telling.make_rest(owner, fact, end.rest)) for end, fact in ends if end.rest]
            written = WrittenTurn(made, [(end.by, fact) for end, fact in ends], rests=rests)
        elif reading.statements or (turns and reading.repeated):
            written = self._remember.run_with_episodes(
                owner,
                [],
                lambda: self._telling.write(
                    owner,
                    reading,
                    turns,
                    session_id=request.session_id,
                    at=now,
                    cause=ChangeCause.ADD,
                    metadata=metadata,
                ),
            )
            if source == "model":
                self._model.leave_out(owner, written.added)
        facts = [FoundFact(memory=each, turn=turn) for each, turn in zip(written.added, reading.turns, strict=False)]
        kept = (FoundFact(memory=each, turn=reading.turns[place]) for place, each in written.rests)
        newer = {place for place, _ in written.ended}
        return AddedFacts(
            added=(*(each for place, each in enumerate(facts) if place not in newer), *kept),
            superseded=tuple(replace(facts[place], replaces=old.id) for place, old in written.ended),
            dropped=tuple(dropped),
            source=source,
            problem=problem,
            is_dry_run=request.dry_run,
            change=None if written.change is None else written.change.id,
            revert=lambda change: self._changes.undo(owner, change),
        )

    def _find_turns(self, owner: Owner, request: FactsRequest) -> Mapping[int, Sequence[Memory]]:
        """Return the logged turns of the session that messages of the user, and the answers to them, are."""
        if request.session_id is None:
            return {}
        where = check_filters(session_id=request.session_id)
        logged = self._store.list_memories(owner, kind=Kind.EPISODE, where=where, now=self._now(), limit=MAX_TURNS)
        by_text = {(each.role, content_hash(each.text)): each for each in logged if each.told is None}
        found = [by_text.get((role, content_hash(text))) for role, text in request.messages]
        return {
            number: [said, *(each for each in found[number + 1 : number + 2] if each and each.role is Role.ASSISTANT)]
            for number, said in enumerate(found)
            if said is not None and said.role is Role.USER
        }

    def _ask_model(self, owner: Owner, reading: TurnReading) -> tuple[Literal["rules", "model"], str]:
        """Add what a model decides to the endings of a reading; return who read it, and why a model did not."""
        ended = {each.seq for each in reading.endings}
        known = [each for each in self._telling.list_known(owner)[:MAX_COMPARED] if each[0] not in ended]
        cases: dict[int, FactCase] = {}
        said = [(-1 - place, ParsedFact(each)) for place, each in enumerate(reading.statements)]
        for place, new in enumerate(reading.statements if self._model.has_model else ()):
            older = dict([*known, *(each for each in said[:place] if each[0] not in ended)])
            near = self._telling.find_nearest(new, [*older.items()], MAX_OLD)
            if near:
                cases[place] = FactCase(new=new.text, old={str(seq): older[seq].statement.text for seq in near})
        if not cases:
            return "rules", ""
        places, asked = list(cases), list(cases.values())
        try:
            for start in range(0, len(asked), MAX_CASES):
                for each in self._model.ask(owner, asked[start : start + MAX_CASES]):
                    verdict = Verdict(Consequence.END, each.ended_as)
                    reading.endings.append(Ending(int(each.id), places[start + each.case], verdict))
        except ModelError as error:
            self._model.record_failure(owner, error)
            return "rules", str(error)
        return "model", ""

    def _list_dropped(self, owner: Owner, request: FactsRequest, reading: TurnReading) -> Sequence[DroppedFact]:
        """Return what is left out, in the order in which it was said, without any secret it holds."""
        known = self._store.find_memories(owner, list(reading.repeated))
        found = [
            *reading.left_out,
            *(
                (turn, known[seq].text, f"already remembered as {memory_id(seq)}")
                for seq, turn in reading.repeated.items()
            ),
            *(
                # Without its secrets before it is cut: half of one would not be recognised.
                (turn, self._guard.redact(owner.tenant, text)[:80], OWN_WORDS)
                for turn, (role, text) in enumerate(request.messages)
                if role is Role.ASSISTANT and text.strip()
            ),
        ]
        return [
            DroppedFact(text=self._guard.redact(owner.tenant, text), turn=turn, reason=reason)
            for turn, text, reason in sorted(found, key=lambda each: each[0])[:MAX_DROPPED]
        ]
