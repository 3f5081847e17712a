"""Restoring: archived, expired, ended and forgotten memories become live again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from wellkept.caller import current_caller
from wellkept.errors import Conflict, Invalid
from wellkept.extension import Clock
from wellkept.language.names import memory_seq
from wellkept.memory import rules_kinds as kinds
from wellkept.memory import rules_trust as trust
from wellkept.memory.drafts import check_own
from wellkept.memory.rules_categories import LIFETIMES, Lifetimes
from wellkept.memory.rules_conditions import EQUAL, STATE, Comparison, Condition, Or, join_conditions
from wellkept.memory.rules_items import end_of
from wellkept.memory.rules_lifetime import renew
from wellkept.model import AuditEvent, EndedAs, Kind, Memory, Owner, State
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

GONE = (State.ARCHIVED, State.EXPIRED)
"""States from which a memory can be restored."""

BATCH = 200
"""Memories restored in one transaction."""

MAX_TOLD = 1_000
"""Newest facts among which what stayed true of a restored one is looked for."""

MAX_NAMED = 100
"""Maximum number of memories that an audit event names."""


class RestoreMemories:
    """Service that restores memories, by id or all that match a filter."""

    def __init__(
        self, store: SqlStore, embedding: Embedding, judge: trust.Judge, now: Clock, *, lifetimes: Lifetimes = LIFETIMES
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._judge = judge
        self._now = now
        self._lifetimes = lifetimes

    def __call__(self, owner: Owner, ids: Sequence[str]) -> Sequence[Memory]:
        """Restore the memories with these ids and return them; a live one is returned unchanged.

        All of them are checked before the first is restored.

        Raises: NotFound; Conflict when one was corrected or a live memory has its text; Forbidden when one is trusted
        more than the caller.
        """
        now = self._now()
        found = {id: self._store.get_memory(owner, id) for id in dict.fromkeys(ids)}
        gone = [memory for memory in found.values() if memory.state(now) in GONE]
        gone += self._find_trail(owner, gone)
        for memory in gone:
            if problem := self._find_problem(owner, memory, now):
                raise Conflict(problem)
        if len(_drop_same_keys(gone)) < len(gone):
            raise Conflict("Two of these items have the same key; restore only the one that you want.")
        restored = {memory.id: memory for batch in _batches(gone) for memory in self._restore(owner, batch, now)}
        return [restored.get(id, memory) for id, memory in found.items()]

    def _find_trail(self, owner: Owner, gone: Sequence[Memory]) -> Sequence[Memory]:
        """Return the turns that were hidden or ended together with facts, unless something else still keeps them so."""
        seqs = {memory_seq(id) or 0 for memory in gone for id in memory.sources}
        turns = self._store.find_memories(owner, sorted(seqs)) if seqs else {}
        causes = {(memory.ended_by, memory.forgotten_at is not None) for memory in gone}
        named = {memory.id for memory in gone}
        return [
            turn
            for turn in turns.values()
            if turn.id not in named and (turn.ended_by, turn.forgotten_at is not None) in causes
        ]

    def restore_matching(
        self, owner: Owner, state: State | None, *, kind: Kind | None = None, where: Condition | None = None
    ) -> Sequence[Memory]:
        """Restore all memories in a state (None: archived or expired) that meet `where`; return them, newest first.

        Memories that were corrected, and those whose text a live memory has, stay as they are.

        Raises: Invalid; NotFound when there is no such agent; Forbidden when one is trusted more than the caller.
        """
        self._store.get_agent(owner)
        if state is not None and state not in GONE:
            raise Invalid(f"Only memories that are {' or '.join(GONE)} can be restored, not those that are {state}.")
        # A user's view restores only what it may change.
        owner = owner if owner.user is None else owner.of(owner.user)
        now, before = self._now(), None
        restored: list[Memory] = []
        if state is None:
            where = join_conditions(where, Or(tuple(Comparison(STATE, EQUAL, each.value) for each in GONE)))
        while page := self._store.list_memories(
            owner, kind=kind, where=where, state=state, now=now, before=before, limit=BATCH
        ):
            gone = [memory for memory in page if not self._find_problem(owner, memory, now)]
            restored += self._restore(owner, _drop_same_keys(gone), now)
            before = memory_seq(page[-1].id)
        return restored

    def set_aside(self, owner: Owner, id: str, state: State, *, version: int | None, flag: str) -> Memory:
        """Undo an approval or a restoration: hold a live memory for review with this `flag`, or archive it.

        Raises: NotFound; Conflict when it is not at `version`; Forbidden.
        """
        memory, now, highest = self._store.get_memory(owner, id), self._now(), current_caller().trust
        check_own(owner, memory.user)
        trust.check_change(memory.origin, highest)
        if version not in (None, memory.version):
            raise Conflict(f"Memory {id} was changed since; it is at version {memory.version}.")
        if state is State.HELD:
            trust.check_decision(highest)
            aside, action = replace(memory, held_at=now, flag=flag or None), "memory.hold"
        else:
            aside, action = replace(memory, archived_at=now), "memory.archive"

        def write() -> Memory:
            written = self._store.update_memory(aside, None, replaced_at=now)
            self._store.add_event(_make_event(owner, [id], now, action=action, done=state.value))
            return written

        return self._store.transaction(owner.tenant, write)

    def _find_problem(self, owner: Owner, memory: Memory, now: datetime) -> str:
        """Return the reason why a memory cannot be restored, or an empty text. Raises: Forbidden."""
        check_own(owner, memory.user)
        trust.check_change(memory.origin, current_caller().trust)
        if memory.is_corrected(now) and memory.ended_as is None and memory.ended_by is None:
            return f"Memory {memory.id} was corrected by another one; correct that one, or store the text again."
        if memory.kind in kinds.UNIQUE:
            same = self._store.find_same_memory(memory.home, memory.kind, memory.text, now=now)
            if same is not None:
                return f"Memory {same.id} has the same text as {memory.id}; keep it and forget {memory.id}."
        if memory.archived_at is not None and memory.namespace is not None and memory.item_key is not None:
            item = self._store.find_item(memory.home, memory.namespace, memory.item_key)
            if item is not None:
                return f"Item {item.id} has the key of {memory.id} now; keep it, or delete it first."
        return ""

    def _restore(self, owner: Owner, gone: Sequence[Memory], now: datetime) -> Sequence[Memory]:
        if not gone:
            return []
        renewed = [self._renew(memory, now) for memory in gone]
        seqs = [memory_seq(memory.id) or 0 for memory in renewed]

        def write() -> Sequence[Memory]:
            for rest in self._find_rests(gone, now):
                self._store.update_memory(rest, replaced_at=now)
            written = [self._store.update_memory(memory, replaced_at=now) for memory in renewed]
            # Decay starts again from now; otherwise the next maintenance would archive it once more.
            self._store.mark_retrieved(owner, seqs, at=now, lifetimes=self._lifetimes)
            self._store.add_event(_make_event(owner, [memory.id for memory in gone], now))
            return [replace(memory, last_retrieved_at=now) for memory in written]

        restored = self._store.transaction(owner.tenant, write)
        self._embedding.wake()
        return restored

    def _find_rests(self, gone: Sequence[Memory], now: datetime) -> Iterator[Memory]:
        """Yield the facts made of what stayed true of ended ones, ended by these, which say it again."""
        for memory in gone:
            said = memory.text.lower()
            told = (
                self._store.list_told(memory.home, now=now, limit=MAX_TOLD) if memory.ended_by and memory.told else ()
            )
            for rest in told:
                is_part = all(part.strip(" .") in said for part in rest.text.lower().split(". "))
                if rest.id != memory.id and rest.sources == memory.sources and is_part:
                    yield replace(rest, valid_to=now, ended_by=memory.id, ended_as=EndedAs.SUPERSEDED)

    def _renew(self, memory: Memory, now: datetime) -> Memory:
        end = memory.expires_at
        if end is not None and end <= now:
            if memory.kind is Kind.ITEM:
                end = end_of(now, memory.ttl_seconds) or now + (end - (memory.updated_at or memory.created_at))
            else:
                end = renew(memory.kind, memory.category, memory.created_at, now=now, lifetimes=self._lifetimes)
        # The new version is not judged again when it is shown, so keep the judgement.
        judged = self._judge(memory)
        if judged.ended_as is not None or judged.ended_by is not None:
            judged = replace(judged, valid_to=None, ended_by=None, ended_as=None)
        return replace(judged, archived_at=None, forgotten_at=None, expires_at=end)


def _drop_same_keys(memories: Sequence[Memory]) -> Sequence[Memory]:
    """Drop items with the key of one before them: only one can be live."""
    places = ((memory.home, memory.namespace, memory.item_key) if memory.item_key else memory.id for memory in memories)
    firsts: dict[object, Memory] = {}
    for place, memory in zip(places, memories, strict=True):
        firsts.setdefault(place, memory)
    return list(firsts.values())


def _batches(memories: Sequence[Memory]) -> Iterator[Sequence[Memory]]:
    for start in range(0, len(memories), BATCH):
        yield memories[start : start + BATCH]


def _make_event(
    owner: Owner, ids: Sequence[str], now: datetime, *, action: str = "memory.restore", done: str = "restored"
) -> AuditEvent:
    message = f"Memory {ids[0]} was {done}." if len(ids) == 1 else f"{len(ids):,} memories were {done}."
    meta = {"id": ids[0]} if len(ids) == 1 else {done: len(ids), "ids": list(ids[:MAX_NAMED])}
    return AuditEvent(tenant=owner.tenant, at=now, action=action, agent_id=owner.agent, message=message, meta=meta)
