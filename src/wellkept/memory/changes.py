"""Changes: what add, logged turns, consolidation and edits of several memories did or propose, applied and undone.

A change names the memories that it adds, edits or ends, each with the version it is made from. It is carried out and
recorded in one transaction, and undone in one, unless one of them was changed since. It holds no text of a stored
memory: former texts are in the history, and what is forgotten is gone from here, too.

Restoring makes archived, expired, ended and forgotten memories live again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from wellkept.caller import current_caller
from wellkept.errors import Conflict, Invalid
from wellkept.extension import Clock
from wellkept.language.names import memory_seq
from wellkept.memory import rules_kinds as kinds
from wellkept.memory import rules_trust as trust
from wellkept.memory.remember import Draft, Edited, Remember, check_own
from wellkept.memory.rules_filters import EQUAL, STATE, Comparison, Condition, Or, join_conditions
from wellkept.memory.rules_items import end_of
from wellkept.memory.rules_lifetime import LIFETIMES, Lifetimes, renew
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
    State,
)
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


T = TypeVar("T")

ENDS = ("valid_to", "archived_at", "forgotten_at")
MARKS = (*ENDS, "ended_by", "ended_as", "held_at", "flag", "expires_at", "sources")
"""Fields that a change keeps itself; former texts, tags, importances and metadata are in the history."""

MAX_COMPARED = 500
"""Number of newest changes that a new proposal is compared with."""

CONTRADICTED = "{} may say something else."
MAX_NAMED = 100
"""Maximum number of memories that an audit event names."""


class Changes:
    """Service that records changes, and applies, rejects and undoes them."""

    def __init__(self, store: SqlStore, remember: Remember, now: Clock) -> None:
        self._store, self._remember, self._now = store, remember, now

    def record(
        self,
        owner: Owner,
        cause: ChangeCause,
        reason: str,
        *,
        added: Sequence[Memory] = (),
        edited: Sequence[Edited] = (),
    ) -> Change:
        """Record what was done to memories of one user. The caller holds the transaction."""
        now, actor = self._now(), current_caller().actor
        memories = [*map(_describe_added, added), *(_describe_edited(*each) for each in edited)]
        change = propose_change(owner, cause, reason, memories, now)
        applied = replace(change, state=ChangeState.APPLIED, actor=actor, decided_at=now)
        (stored,) = self._store.add_changes(owner, [applied])
        self._record_event(stored, "apply", "was applied")
        return stored

    def edit(self, owner: Owner, ids: Sequence[str], edit: Callable[[Memory], object], reason: str) -> Sequence[Change]:
        """Run `edit` on each of these memories in one transaction, as one change for each user.

        Raises: NotFound, and any error of `edit`, in which case nothing is changed.
        """

        def work() -> Sequence[Change]:
            former = [self._store.get_memory(owner, id) for id in dict.fromkeys(ids)]
            for memory in former:
                edit(memory)
            of_users: dict[str | None, list[Edited]] = {}
            for memory in former:
                of_users.setdefault(memory.user, []).append((memory, self._store.get_memory(owner, memory.id)))
            made = ((user, [(a, b) for a, b in pairs if a.version != b.version]) for user, pairs in of_users.items())
            return [
                self.record(owner.of(user), ChangeCause.EDIT, reason, edited=pairs) for user, pairs in made if pairs
            ]

        return self._store.transaction(owner.tenant, work)

    def propose(self, owner: Owner, changes: Sequence[Change]) -> Sequence[Change]:
        """Record changes for a person to decide, and return those that are new.

        What was rejected or undone is not proposed again before one of its memories changes.
        """
        if not changes:
            return []

        def add() -> Sequence[Change]:
            unwanted = self.find_unwanted(owner)
            fresh = [each for each in changes if not {(m.id, m.version) for m in each.memories if m.id} <= unwanted]
            added = self._store.add_changes(owner, fresh)
            for each in added:
                self._record_event(each, "propose", "was proposed")
            return added

        return self._store.transaction(owner.tenant, add)

    def find_unwanted(self, owner: Owner) -> set[tuple[str, int | None]]:
        """Return the memories of changes that were rejected or undone, with the versions that they have since.

        Those that were restored one by one count, too.
        """
        earlier = self._store.list_changes(owner, limit=MAX_COMPARED)
        return {
            # Undoing and restoring add a version to the one that the change made.
            (each.id, each.version if change.state is ChangeState.REJECTED else (each.new_version or 0) + 1)
            for change in earlier
            if change.state is not ChangeState.PROPOSED
            for each in change.memories
            if each.version is not None
        }

    def add_turns(self, owner: Owner, edits: Sequence[Memory]) -> Sequence[Memory]:
        """Return edited memories with the turns of the facts that end: what a turn said is over with its facts."""
        causes = {id: fact for fact in edits if fact.ended_as is not None for id in fact.sources}
        known = {memory.id for memory in edits}
        turns = find_turns(self._store, owner, list(causes.values())) if causes else ()
        found = list(edits)
        for turn in turns:
            if turn.id not in known and turn.valid_to is None:
                fact = causes[turn.id]
                marks: dict[str, Any] = {name: getattr(fact, name) for name in ("valid_to", "ended_by", "ended_as")}
                found.append(replace(turn, **marks))
        return found

    def list(
        self, owner: Owner, state: ChangeState | None, *, before: int | None = None, limit: int
    ) -> Sequence[Change]:
        """List changes with the texts of their memories, newest first."""
        changes = self._store.list_changes(owner, state=state, before=before, limit=limit)
        found = self._find_memories(owner, [each for change in changes for each in change.memories])
        return [replace(each, memories=tuple(_add_texts(each, found))) for each in changes]

    def get(self, owner: Owner, id: str) -> Change:
        """Return a change with what each of its memories says and said. Raises: NotFound."""
        change = self._store.get_change(owner, id)
        found, shown = self._find_memories(owner, change.memories), []
        for each in _add_texts(change, found):
            if each.id in found and each.action is ChangeAction.EDIT and each.new_version is not None:
                versions = self._store.list_versions(owner, each.id, before=each.new_version, limit=1)
                if versions and versions[0].text != each.text:
                    each = replace(each, former_text=versions[0].text)
            shown.append(each)
        return replace(change, memories=tuple(shown))

    def apply(self, owner: Owner, id: str) -> Change:
        """Carry out a proposed change.

        Raises: NotFound; Conflict when it is not proposed, or a memory was edited or deleted since; Forbidden.
        """
        trust.check_decision(current_caller().trust)
        change = self._get_own(owner, id, ChangeState.PROPOSED)
        found, now = self._find_memories(owner, change.memories), self._now()
        edits = list[Memory]()
        for each in change.memories:
            if each.action is ChangeAction.ADD:
                continue
            memory = found.get(each.id)
            if memory is None or memory.version != each.version:
                done = "deleted" if memory is None else "edited"
                raise Conflict(f"Memory {each.id} was {done} since {id} was proposed. Reject the change.")
            edits.append(change_memory(memory, each, now))
        ended = self.add_turns(owner, edits)
        drafts = [_make_draft(change, each, edits) for each in change.memories if each.action is ChangeAction.ADD]

        def also(added: Sequence[Memory], edited: Sequence[Edited], known: set[str]) -> Change:
            memories = (
                *(replace(_describe_added(each), new_version=None if each.id in known else 1) for each in added),
                *(_describe_edited(*each) for each in edited),
            )
            return self._decide(
                replace(change, memories=memories, text=""), ChangeState.APPLIED, was=ChangeState.PROPOSED
            )

        return self._remember.carry_out(owner, drafts, ended, also=also)

    def reject(self, owner: Owner, id: str) -> Change:
        """Reject a proposed change: no memory changes, and the same is not proposed again.

        Raises: NotFound; Conflict when it is not proposed; Forbidden.
        """
        trust.check_decision(current_caller().trust)
        change = self._get_own(owner, id, ChangeState.PROPOSED)
        return self._store.transaction(
            owner.tenant, lambda: self._decide(change, ChangeState.REJECTED, was=ChangeState.PROPOSED)
        )

    def undo(self, owner: Owner, id: str) -> Change:
        """Undo an applied change: delete the memories it added, and restore those it edited or ended.

        Raises: NotFound; Conflict when it is not applied, or a memory was edited or deleted since; Forbidden.
        """
        change = self._get_own(owner, id, ChangeState.APPLIED)
        # A memory that an applied change named and did not make stays as it is.
        touched = [each for each in change.memories if each.new_version is not None]
        found, made, restored = self._find_memories(owner, touched), [], []
        for each in touched:
            memory = found.get(each.id)
            if memory is None or not self._is_as_left(owner, memory, each):
                done = "deleted" if memory is None else f"changed since; it is at version {memory.version}"
                raise Conflict(f"Memory {each.id} was {done}, so {id} is not undone as a whole. Restore by hand.")
            trust.check_change(memory.origin, current_caller().trust)
            if each.action is ChangeAction.ADD:
                made.append(memory.id)
                # Writing what is deleted next compares its version once more, in the transaction.
                restored.append(memory)
            else:
                restored.append(self._restore(owner, memory, each))

        def also() -> Change:
            return self._decide(change, ChangeState.UNDONE, was=ChangeState.APPLIED)

        return self._remember.revert(owner, restored, made=made, also=also)

    def _get_own(self, owner: Owner, id: str, state: ChangeState) -> Change:
        change = self._store.get_change(owner, id)
        check_own(owner, change.user)
        if change.state is not state:
            raise Conflict(f"Change {id} is {change.state.value}, not {state.value}.")
        return change

    def _find_memories(self, owner: Owner, changed: Sequence[ChangedMemory]) -> Mapping[str, Memory]:
        seqs = sorted({memory_seq(each.id) or 0 for each in changed})
        return {memory.id: memory for memory in self._store.find_memories(owner, seqs).values()} if seqs else {}

    def _is_as_left(self, owner: Owner, memory: Memory, each: ChangedMemory) -> bool:
        """Return True if a memory is as the change left it, or is so again: a later change of it was undone."""
        if memory.version == each.new_version:
            return True
        versions = self._store.list_versions(owner, memory.id)
        was = next((version for version in versions if version.version == each.new_version), None)
        left = dict.fromkeys(ENDS) | _parse_marks(each.after)
        return (
            was is not None
            and (was.text, was.tags, was.importance, was.metadata)
            == (memory.text, memory.tags, memory.importance, memory.metadata)
            and all(getattr(memory, name) == value for name, value in left.items())
        )

    def _restore(self, owner: Owner, memory: Memory, each: ChangedMemory) -> Memory:
        memory = replace(memory, **_parse_marks(each.before))
        if each.action is ChangeAction.END:
            return memory
        versions = self._store.list_versions(owner, memory.id, before=each.new_version, limit=1)
        if not versions:
            raise Conflict(f"Memory {memory.id} has no former version.")
        former = versions[0]
        return replace(
            memory, text=former.text, tags=former.tags, importance=former.importance, metadata=former.metadata
        )

    def _decide(self, change: Change, state: ChangeState, *, was: ChangeState) -> Change:
        """Store the new state of a change with an audit event. The caller holds a transaction."""
        actor = current_caller().actor or change.actor
        decided = replace(change, state=state, decided_at=self._now(), actor=actor)
        self._store.decide_change(decided, was=was)
        verb = {ChangeState.APPLIED: "apply", ChangeState.REJECTED: "reject", ChangeState.UNDONE: "undo"}[state]
        self._record_event(decided, verb, f"was {state.value}")
        return decided

    def _record_event(self, change: Change, verb: str, done: str) -> None:
        count = len(change.memories)
        message = f"Change {change.id} of {count:,} {'memory' if count == 1 else 'memories'} {done}."
        ids = [each.id for each in change.memories if each.id][:MAX_NAMED]
        self._store.add_event(
            AuditEvent(
                tenant=change.owner.tenant,
                at=self._now(),
                action=f"change.{verb}",
                agent_id=change.owner.agent,
                message=message,
                meta={"id": change.id, "cause": change.cause.value, "ids": ids},
            )
        )


def find_turns(store: SqlStore, owner: Owner, facts: Sequence[Memory]) -> Sequence[Memory]:
    """Return the turns that these facts were read out of."""
    seqs = {memory_seq(id) or 0 for fact in facts for id in fact.sources}
    return list(store.find_memories(owner, sorted(seqs)).values()) if seqs else []


def propose_change(
    owner: Owner, cause: ChangeCause, reason: str, memories: Sequence[ChangedMemory], now: datetime, *, text: str = ""
) -> Change:
    """Return a change of one user's memories for a person to decide; `text` is that of the memory it adds."""
    return Change(
        owner=owner.whole,
        user=owner.user or None,
        state=ChangeState.PROPOSED,
        cause=cause,
        reason=reason,
        text=text,
        memories=tuple(memories),
        created_at=now,
    )


def propose_end(memory: Memory, by: Memory | None = None, ended_as: EndedAs | None = None) -> ChangedMemory:
    """Return the end of a memory, in favour of another one or because that contradicts it."""
    marks = {} if by is None else {"ended_by": by.id} | ({} if ended_as is None else {"ended_as": ended_as.value})
    return ChangedMemory(action=ChangeAction.END, id=memory.id, version=memory.version, after=marks)


def _add_texts(change: Change, found: Mapping[str, Memory]) -> Iterator[ChangedMemory]:
    """Yield the memories of a change with their texts, as far as they are there."""
    for each in change.memories:
        text = found[each.id].text if each.id in found else "" if each.id else change.text
        yield replace(each, text=text)


def _describe_added(memory: Memory) -> ChangedMemory:
    return ChangedMemory(action=ChangeAction.ADD, id=memory.id, new_version=memory.version)


def _describe_edited(before: Memory, after: Memory) -> ChangedMemory:
    names = [name for name in MARKS if getattr(before, name) != getattr(after, name)]
    is_end = any(name in ENDS and getattr(after, name) is not None for name in names)
    return ChangedMemory(
        action=ChangeAction.END if is_end else ChangeAction.EDIT,
        id=after.id,
        version=before.version,
        new_version=after.version,
        before={name: _to_json(getattr(before, name)) for name in names},
        after={name: _to_json(getattr(after, name)) for name in names},
    )


def _to_json(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


def _parse_marks(marks: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: marks[name] for name in (*MARKS, "tags", "importance") if name in marks}
    for name, value in found.items():
        if isinstance(value, list):
            found[name] = tuple(value)
        elif value is not None and (name == "valid_to" or name.endswith("_at")):
            found[name] = datetime.fromisoformat(value)
        elif value is not None and name == "ended_as":
            found[name] = EndedAs(value)
    return found


def change_memory(memory: Memory, each: ChangedMemory, now: datetime) -> Memory:
    """Return a memory as a proposed change would edit or end it."""
    if each.action is ChangeAction.END:
        memory = replace(memory, valid_to=min(memory.valid_to or now, now))
    return replace(memory, **_parse_marks(each.after))


def _make_draft(change: Change, each: ChangedMemory, ended: Sequence[Memory]) -> Draft:
    kind = str(each.after["kind"])
    return Draft(
        text=change.text,
        kind=kind,
        tags=each.after["tags"],
        origin=each.after["origin"],
        importance=max((memory.importance for memory in ended), default=None) if kind != Kind.CORE else None,
        user=change.user,
    )


GONE = (State.ARCHIVED, State.EXPIRED)
"""States from which a memory can be restored."""

BATCH = 200
"""Memories of a filter restored in one transaction."""

MAX_TOLD = 1_000
"""Newest facts among which what stayed true of a restored one is looked for."""


class RestoreMemories:
    """Service that restores memories, by id or all that match a filter."""

    def __init__(
        self, store: SqlStore, embedding: Embedding, judge: trust.Judge, now: Clock, *, lifetimes: Lifetimes = LIFETIMES
    ) -> None:
        self._store, self._embedding, self._now = store, embedding, now
        self._judge, self._lifetimes = judge, lifetimes

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
        restored = {memory.id: memory for memory in self._restore(owner, gone, now)}
        return [restored.get(id, memory) for id, memory in found.items()]

    def _find_trail(self, owner: Owner, gone: Sequence[Memory]) -> Sequence[Memory]:
        """Return the turns that were hidden or ended together with facts, unless something else still keeps them so."""
        causes = {(memory.ended_by, memory.forgotten_at is not None) for memory in gone}
        named = {memory.id for memory in gone}
        return [
            turn
            for turn in find_turns(self._store, owner, gone)
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


def _make_event(
    owner: Owner, ids: Sequence[str], now: datetime, *, action: str = "memory.restore", done: str = "restored"
) -> AuditEvent:
    message = f"Memory {ids[0]} was {done}." if len(ids) == 1 else f"{len(ids):,} memories were {done}."
    meta = {"id": ids[0]} if len(ids) == 1 else {done: len(ids), "ids": list(ids[:MAX_NAMED])}
    return AuditEvent(tenant=owner.tenant, at=now, action=action, agent_id=owner.agent, message=message, meta=meta)
