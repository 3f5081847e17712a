"""The single write path for every kind of memory.

Before the transaction, a draft is validated by the rules of its kind, compared with texts memory itself has shown
(echoes), scanned for secrets and embedded. Inside the transaction, a note or core memory with the text of an existing
one becomes that one, a correction ends the memory it corrects, the oldest memories beyond the limit are deleted, and an
audit event is recorded.

`Similar` looks for near-duplicates, so that they can be merged. It never waits for an embedder: memories are compared
by their words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from wellkept.caller import current_caller
from wellkept.errors import Conflict, Forbidden, Invalid, NotFound, SecretRejected, WellkeptError
from wellkept.extension import Clock
from wellkept.facts.rules_statements import describe_parts, read_statement
from wellkept.history.rules_history import describe_added
from wellkept.language.names import check_user, is_step_reached, memory_seq
from wellkept.language.text import content_hash, is_question
from wellkept.language.values import check_whole
from wellkept.memory import rules_duplicates as duplicates
from wellkept.memory import rules_importance as importance
from wellkept.memory import rules_kinds as kinds
from wellkept.memory import rules_trust as trust
from wellkept.memory.loop_guard import ECHO_REFUSED, LoopGuard
from wellkept.memory.rules_kinds import UNIQUE
from wellkept.memory.rules_lifetime import LIFETIMES, Lifetimes, find_category, find_lifetime, summarise_expired
from wellkept.model import NO_USER, AuditEvent, Kind, Match, Memory, Origin, Owner, Role, Scope
from wellkept.model.stored import Encoded
from wellkept.secrets.check import SecretGuard
from wellkept.settings import Settings
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

T = TypeVar("T")
Edited: TypeAlias = tuple[Memory, Memory]
"""A memory before and after an edit."""

OTHER_USER = "This view belongs to another user; name the same user, or none."
SHARED = "This belongs to no user, so a user's view reads it but does not change it; change it through the agent."
NO_ROOM = (
    "Memory is full of notes that are trusted more than this one and are not deleted to make room for it; forget some, "
    "or raise max_total."
)
CORE_NOT_CORRECTED = (
    "A memory from a tool, an import or a model cannot correct a core memory; store it as core, to be reviewed."
)
SAME_TEXT = "Memory {} has the same text; keep it and forget {}, or change the text."
CORRECTS_OTHER_USER = "A correction belongs to the user of the memory it corrects, or like it to none; name that user."

LOOK_BACK = 20
"""Number of earlier drafts of one call that are searched for the message before a draft."""

MAX_NAMED = 100
"""Maximum number of corrected or deleted memories that an audit event names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Unvalidated input for a memory; the rules of its kind fill in missing fields."""

    text: str
    kind: str = Kind.NOTE
    tags: Sequence[str] = ()
    scope: str | None = None
    role: str | None = None
    session_id: str | None = None
    importance: float | None = None
    category: str | None = None
    origin: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    supersedes: str | None = None
    valid_from: datetime | None = None
    user: str | None = None
    metadata: Mapping[str, Any] | None = None


def check_draft(
    draft: Draft,
    owner: Owner,
    now: datetime,
    *,
    lifetimes: Lifetimes = LIFETIMES,
    is_answer: Callable[[], bool] = lambda: False,
) -> Memory:
    """Validate a draft and return the memory it describes.

    `is_answer` says if it follows a question of another speaker; it is asked only when that matters.

    Raises: Invalid.
    """
    kind = kinds.check_kind(draft.kind)
    created_at = _check_time(draft.created_at, "created_at") or now
    text = kinds.check_content(draft.text, kind)
    role = kinds.check_choice(Role, draft.role, Role.USER)
    origin = trust.lower_origin(kinds.check_choice(Origin, draft.origin, Origin.USER), current_caller().trust)
    # Before the category, for which the message before this one in the session may be looked up.
    session_id = kinds.check_name(draft.session_id, "session_id")
    category = kinds.check_name(draft.category, "category")
    weight = None if draft.importance is None else kinds.check_importance(draft.importance)
    expires_at = _check_time(draft.expires_at, "expires_at")
    if kind is not Kind.EPISODE:
        weight = kinds.RULES[kind].importance if weight is None else weight
        expires_at = expires_at or kinds.expires_at(kind, created_at)
    else:
        if category is None:
            judgement = importance.judge(text, role, is_answer=is_answer)
            category, weight = judgement.category.value, judgement.importance if weight is None else weight
        elif weight is None:
            weight = importance.rate_importance(text, role, find_category(category))
        lifetime = find_lifetime(category, lifetimes)
        expires_at = expires_at or (None if lifetime is None else created_at + lifetime)
    if draft.supersedes is not None and memory_seq(draft.supersedes) is None:
        raise Invalid("`supersedes` is the id of a memory, such as m-7.")
    held = trust.find_hold_reason(kind, origin)
    return Memory(
        owner=owner.whole,
        kind=kind,
        text=text,
        tags=kinds.check_tags(draft.tags),
        scope=kinds.check_choice(Scope, draft.scope, Scope.WORKSPACE),
        role=role,
        session_id=session_id,
        importance=weight,
        category=category,
        origin=origin,
        created_at=created_at,
        expires_at=expires_at,
        supersedes=draft.supersedes,
        valid_from=_check_time(draft.valid_from, "valid_from"),
        held_at=now if held else None,
        flag=held,
        user=find_user(owner, draft.user),
        metadata=kinds.check_metadata(draft.metadata),
    )


def _check_time(value: datetime | None, what: str) -> datetime | None:
    return None if value is None else kinds.check_moment(value, what)


def find_user(owner: Owner, user: str | None) -> str | None:
    """Return the user a new record belongs to: the one of the view, or else the one that is named.

    Raises: Invalid when another one is named; Forbidden when the caller is limited to another one.
    """
    named = None if user is None else current_caller().own_user(check_user(user))
    if owner.user is None or named in (None, owner.user):
        return owner.user or named
    raise Invalid(OTHER_USER)


def find_session_user(store: SqlStore, owner: Owner, session_id: str | None) -> str | None:
    """Return the user of a new record of this session: what is said to a user belongs to that user."""
    if owner.user is not None or session_id is None:
        return None
    session = store.find_session(owner, session_id)
    return None if session is None else session.user


def check_own(owner: Owner, user: str | None) -> None:
    """Check that a view may change the record of `user`, which it reads. Raises: Forbidden."""
    if owner.user is not None and owner.user != (user or NO_USER):
        raise Forbidden(SHARED)


@contextmanager
def naming_item(position: int) -> Iterator[None]:
    """Set `item` of an error to the position of the draft that causes it."""
    try:
        yield
    except WellkeptError as error:
        error.item = position
        raise


class Remember:
    """Service for every change to an agent's memories."""

    def __init__(
        self,
        store: SqlStore,
        embedding: Embedding,
        guard: SecretGuard,
        loop_guard: LoopGuard,
        settings: Settings,
        now: Clock,
        *,
        lifetimes: Lifetimes = LIFETIMES,
        step: int = 0,
        on_step: Callable[[Owner], None] = lambda owner: None,
        on_first: Callable[[], None] = lambda: None,
    ) -> None:
        """Set up the service; `on_step` runs after every `step` memories of an agent, `on_first` after the first.

        `on_step` gets the owner of the user's memories.
        """
        self._store, self._embedding, self._settings, self._now = store, embedding, settings, now
        self._guard, self._loop_guard = guard, loop_guard
        self._lifetimes = lifetimes
        self._step, self._on_step, self._on_first = step, on_step, on_first

    def __call__(self, owner: Owner, drafts: Sequence[Draft]) -> Sequence[Memory]:
        """Store the drafts in one transaction, all or none.

        Raises: Invalid, SecretRejected; NotFound when a superseded memory does not exist; Forbidden when that memory is
        trusted more than the caller, or only more trusted memories could make room. `item` of the error is the position
        of the draft, unless the drafts are refused together.
        """
        now, memories = self._now(), list[Memory]()
        for position, memory in enumerate(self._check_drafts(owner, drafts, now)):
            with naming_item(position):
                # The audit event of a refusal does not contain the text.
                if self._loop_guard.is_echo(memory) and self._find_same(memory, now) is None:
                    self._record_refusal(memory, "it came out of memory", now)
                    raise Invalid(ECHO_REFUSED)
                memories.append(self.screen(memory, now))
        corrected = self._find_corrected(owner, memories)
        encoded = self._store.encode_memories(memories)

        def write() -> Sequence[Memory]:
            self.edit_now(owner, corrected, now)
            return self.add_now(owner, memories, encoded, now)

        return self._run_transaction(owner, write)

    def run_with_episodes(
        self,
        owner: Owner,
        drafts: Sequence[Draft],
        work: Callable[[], T],
        *,
        also: Callable[[Sequence[Memory]], object] = lambda added: None,
    ) -> T:
        """Run `work` and store the drafts in one transaction; return its result. Drafts that echo memory are skipped.

        `also` runs in it with the stored episodes.

        An old message that would have become a gist by now becomes one at once.

        Raises: Invalid, SecretRejected, and any error of `work`, in which case nothing is stored.
        """
        now = self._now()
        new = [each for each in self._check_drafts(owner, drafts, now) if not self._loop_guard.is_echo(each)]
        memories = [self.screen(memory, now) for memory in new]
        encoded = self._store.encode_memories(memories)

        def write() -> T:
            added = self.add_now(owner, memories, encoded, now) if memories else []
            also(added)
            for memory in added if self._settings.gist_on_expiry else ():
                if (gist := summarise_expired(memory, now, self._lifetimes)) is not None:
                    self._store.update_memory(gist, replaced_at=now, whole=memory.text)
            return work()

        return self._run_transaction(owner, write)

    def update(
        self,
        owner: Owner,
        id: str,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        version: int | None = None,
    ) -> Memory:
        """Edit a memory and keep its previous state as a version.

        Raises: NotFound, Invalid, SecretRejected; Conflict when it is no longer at `version`, or another memory has the
        same text; Forbidden when it is trusted more than the caller.
        """
        old = self._get_own(owner, id)
        trust.check_change(old.origin, current_caller().trust)
        if version is not None and check_whole(version, "The version", least=1) != old.version:
            raise Conflict(f"This memory is now at version {old.version}, not {version}; read it again.")
        if metadata is not None and old.kind is Kind.ITEM:
            raise Invalid(kinds.NOT_AN_ITEM)
        edited = replace(
            old,
            text=old.text if text is None else kinds.check_content(text, old.kind),
            tags=old.tags if tags is None else kinds.check_tags(tags),
            importance=old.importance if importance is None else kinds.check_importance(importance),
            metadata=old.metadata if metadata is None else kinds.check_metadata(metadata),
        )
        if old.told is not None and edited.text != old.text:
            edited = replace(edited, told=describe_parts(read_statement(edited.text), is_remark=old.told.is_remark))
        is_changed = (edited.text, edited.tags) != (old.text, old.tags)
        new = (self.screen if is_changed else self._check_secrets)(edited, self._now())
        is_reworded = content_hash(new.text) != content_hash(old.text)
        return old if new == old else self._rewrite(new, "memory.update", "edited", is_reworded=is_reworded)

    def approve(self, owner: Owner, id: str) -> Memory:
        """Release a memory held for review and remove its flag.

        Raises: NotFound; Forbidden when the caller is not trusted to decide.
        """
        trust.check_decision(current_caller().trust)
        old = self._get_own(owner, id)
        if old.held_at is None and trust.judge_memory(old, self._settings.suspicious).flag is None:
            return old
        approved = replace(old, held_at=None, flag=None)
        try:
            ended = self._find_corrected(owner, [approved]) if old.held_at is not None else ()
        # The memory it corrects was deleted in the meantime.
        except NotFound:
            ended = ()
        return self._rewrite(approved, "memory.approve", "approved", ended)

    def approve_workspace(self, owner: Owner) -> int:
        """Trust the notes of the workspace file like the user's own; return their number.

        Raises: Invalid when there is no such file; Forbidden.
        """
        trust.check_decision(current_caller().trust)
        check_own(owner, None)

        def approve() -> int:
            count = self._store.approve_notes(owner)
            message = f"{count:,} notes that came with the workspace were approved."
            self._record(owner, "workspace.approve", message, {"notes": count}, self._now())
            return count

        return self._store.transaction(owner.tenant, approve)

    def forget(self, owner: Owner, id: str) -> None:
        """Delete a memory and its history. Raises: NotFound; Forbidden when it is trusted more than the caller."""
        highest = current_caller().trust
        if highest is not None or owner.user is not None:
            trust.check_change(self._get_own(owner, id).origin, highest)

        def forget() -> None:
            self._store.delete_memory(owner, id)
            self._record(owner, "memory.delete", f"Memory {id} was deleted.", {"id": id}, self._now())

        self._store.transaction(owner.tenant, forget)

    def carry_out(
        self,
        owner: Owner,
        drafts: Sequence[Draft],
        ended: Sequence[Memory],
        *,
        also: Callable[[Sequence[Memory], Sequence[Edited], set[str]], T],
    ) -> T:
        """End memories and store what stands for them, as approved, in one transaction.

        Returns the result of `also`, which runs in it with the memories, the ended ones before and after, and the ids
        of memories that were there before.

        Raises: Invalid, SecretRejected; NotFound, Conflict when an ended memory was deleted or edited since.
        """
        now = self._now()
        approved = [replace(each, held_at=None, flag=None) for each in self._check_drafts(owner, drafts, now)]
        memories = [self._check_secrets(each, now) for each in approved]

        def write() -> T:
            edited = self.edit_now(owner, ended, now)
            known = {same.id for each in memories if (same := self._find_same(each, now)) is not None}
            return also(self.add_now(owner, memories, [None] * len(memories), now), edited, known)

        return self._run_transaction(owner, write)

    def revert(self, owner: Owner, restored: Sequence[Memory], *, made: Sequence[str], also: Callable[[], T]) -> T:
        """Undo what a change did: write the former states of memories and delete those that were `made`.

        Raises: NotFound, Conflict when one of them was edited since.
        """

        def write() -> T:
            self.edit_now(owner, restored, self._now())
            for id in made:
                self._store.delete_memory(owner, id)
            return also()

        return self._run_transaction(owner, write)

    def screen(self, memory: Memory, now: datetime) -> Memory:
        """Check for secrets, and flag or hold a memory that reads like instructions. Raises: SecretRejected."""
        memory = self._check_secrets(memory, now)
        flagged = memory if self._settings.suspicious == "show" else trust.flag_memory(memory)
        is_held = flagged is not memory and self._settings.suspicious == "hold"
        return replace(flagged, held_at=now) if is_held else flagged

    def add_now(
        self, owner: Owner, memories: Sequence[Memory], encoded: Sequence[Encoded], now: datetime
    ) -> Sequence[Memory]:
        """Store checked memories. The caller holds a transaction."""
        same = [self._find_same(memory, now) for memory in memories]
        identities = [_find_identity(memory, place) for place, memory in enumerate(memories)]
        # Position of the first draft of each identity; later drafts become the same memory.
        firsts: dict[object, int] = {}
        for position, identity in enumerate(identities):
            if same[position] is None:
                firsts.setdefault(identity, position)
        places = firsts.values()
        new = self._store.add_memories([memories[each] for each in places], [encoded[each] for each in places])
        added = dict(zip(firsts, new, strict=True))
        result = [known or added[identity] for known, identity in zip(same, identities, strict=True)]
        pruned = self._make_room(owner, new)
        if new:
            corrected = [each.supersedes for each in new if each.supersedes is not None and each.held_at is None]
            meta = {
                "ids": [new[0].id, new[-1].id],
                **({"pruned": len(pruned), "pruned_ids": pruned[:MAX_NAMED]} if pruned else {}),
                **({"corrected": corrected[:MAX_NAMED]} if corrected else {}),
            }
            self._record(owner, "memory.add", describe_added(new, len(pruned), corrected), meta, now)
            if self._step and is_step_reached(new[0].id, new[-1].id, self._step):
                for home in {memory.home for memory in new}:
                    self._on_step(home)
        return result

    def edit_now(self, owner: Owner, edited: Sequence[Memory], now: datetime) -> Sequence[Edited]:
        """Write edited memories; return each before and after. The caller holds a transaction."""
        seqs = [memory_seq(memory.id) or 0 for memory in edited]
        former = self._store.find_memories(owner.whole, seqs) if seqs else {}
        written = [self._store.update_memory(memory, replaced_at=now) for memory in edited]
        return [(former[seq], memory) for seq, memory in zip(seqs, written, strict=True)]

    def _check_drafts(self, owner: Owner, drafts: Sequence[Draft], now: datetime) -> Sequence[Memory]:
        """Validate drafts, which are in the order in which they were said. Raises: Invalid."""
        checked: list[Memory] = []
        users: dict[str, str | None] = {}
        for place, draft in enumerate(drafts):
            if draft.user is None and (session_id := draft.session_id) is not None:
                if session_id not in users:
                    users[session_id] = find_session_user(self._store, owner, session_id)
                draft = replace(draft, user=users[session_id])
            is_answer = partial(self._is_answer, owner, draft, drafts[max(0, place - LOOK_BACK) : place])
            with naming_item(place):
                checked.append(check_draft(draft, owner, now, lifetimes=self._lifetimes, is_answer=is_answer))
        return checked

    def _is_answer(self, owner: Owner, draft: Draft, before: Sequence[Draft]) -> bool:
        """Return True if the message before a draft is a question of another speaker: an answer is never routine."""
        role = draft.role or Role.USER
        for other in reversed(before):
            if other.session_id == draft.session_id:
                return (other.role or Role.USER) != role and is_question(other.text)
        if draft.session_id is None:
            return False
        previous = self._store.find_last_episode(owner, draft.session_id)
        return previous is not None and previous.role != role and is_question(previous.text)

    def _check_secrets(self, memory: Memory, now: datetime) -> Memory:
        # The event of a refusal names the agent.
        self._guard.check_names(memory.owner.tenant, agent_id=memory.owner.agent)
        try:
            admitted = self._guard.check(memory)
        except SecretRejected:
            self._record_refusal(memory, "it seems to hold a secret", now)
            raise
        if admitted is not memory and memory.kind is not Kind.ITEM:
            # A redaction mark may make the text longer than the kind allows.
            kinds.check_content(admitted.text, admitted.kind)
        return admitted

    def _get_own(self, owner: Owner, id: str) -> Memory:
        """Return a memory that this view may change. Raises: NotFound, Forbidden."""
        memory = self._store.get_memory(owner, id)
        check_own(owner, memory.user)
        return memory

    def _find_same(self, memory: Memory, now: datetime) -> Memory | None:
        if memory.kind not in kinds.UNIQUE or memory.supersedes is not None:
            return None
        same = self._store.find_same_memory(memory.home, memory.kind, memory.text, now=now)
        # A trusted memory must not be held because the same text of low trust is.
        return None if same is not None and same.held_at is not None and memory.held_at is None else same

    def _find_corrected(self, owner: Owner, corrections: Sequence[Memory]) -> Sequence[Memory]:
        """Return the memories that `corrections` supersede, with their end of validity set.

        A held correction corrects nothing before it is approved. A correction and what it corrects have the same user.

        Raises: NotFound; Forbidden when a corrected memory is trusted more than the caller.
        """
        ended: dict[str, Memory] = {}
        for position, each in enumerate(corrections):
            if each.supersedes is None:
                continue
            with naming_item(position):
                old = ended.get(each.supersedes) or self._get_own(owner, each.supersedes)
                if old.user != each.user:
                    raise Invalid(CORRECTS_OTHER_USER)
                if old.kind is not each.kind and trust.find_hold_reason(old.kind, each.origin):
                    raise Invalid(CORE_NOT_CORRECTED)
                if each.held_at is None:
                    trust.check_change(old.origin, current_caller().trust)
            if each.held_at is None:
                ended[old.id] = replace(old, valid_to=min(old.valid_to or each.since, each.since))
        return list(ended.values())

    def _make_room(self, owner: Owner, new: Sequence[Memory]) -> Sequence[str]:
        """Delete the oldest notes beyond the limit, of each user or of none, and return their ids.

        Memories of low trust (tool, import, model) replace only memories of low trust.

        Raises: Forbidden when there are too few of those.
        """
        pruned: list[str] = []
        prune, keep = partial(self._store.prune_memories, kind=Kind.NOTE), self._settings.max_total
        for user in {memory.user for memory in new if memory.kind is Kind.NOTE}:
            added = [memory for memory in new if memory.kind is Kind.NOTE and memory.user == user]
            trusted = sum(not trust.is_low(memory.origin) for memory in added)
            if trusted < len(added):
                # As if only those of low trust had been added; the others make room for themselves below.
                pruned += prune(owner.of(user), keep=keep + trusted, is_low_trust=True)
                if len(added) <= keep and not {memory.id for memory in added}.isdisjoint(pruned):
                    raise Forbidden(NO_ROOM)
            if trusted:
                pruned += prune(owner.of(user), keep=keep)
        return pruned

    def _rewrite(
        self, memory: Memory, action: str, done: str, ended: Sequence[Memory] = (), *, is_reworded: bool = False
    ) -> Memory:
        owner, now = memory.owner, self._now()

        def rewrite() -> Memory:
            if is_reworded and (same := self._find_same(memory, now)) is not None:
                raise Conflict(SAME_TEXT.format(same.id, memory.id))
            self.edit_now(owner, ended, now)
            written = self._store.update_memory(memory, replaced_at=now)
            self._record(owner, action, f"Memory {memory.id} was {done}.", {"id": memory.id}, now)
            return written

        return self._run_transaction(owner, rewrite)

    def _run_transaction(self, owner: Owner, work: Callable[[], T]) -> T:
        """Run `work` in one transaction, then wake the embedder."""
        # Only after the commit can the embedding thread see the new rows.
        result = self._store.transaction(owner.tenant, work)
        self._embedding.wake()
        on_first, self._on_first = self._on_first, lambda: None
        on_first()
        return result

    def _record_refusal(self, memory: Memory, reason: str, now: datetime) -> None:
        message = f"A {memory.kind.value} was refused: {reason}."
        self._record(memory.owner, "memory.refuse", message, {"kind": memory.kind.value}, now)

    def _record(self, owner: Owner, action: str, message: str, meta: Mapping[str, Any], now: datetime) -> None:
        event = AuditEvent(tenant=owner.tenant, at=now, action=action, agent_id=owner.agent, message=message, meta=meta)
        self._store.add_event(event)


def _find_identity(memory: Memory, position: int) -> object:
    """Return a key that is equal for drafts that become one memory."""
    if memory.kind not in kinds.UNIQUE or memory.supersedes is not None:
        return position
    return memory.kind, memory.user, memory.held_at is None, content_hash(memory.text)


CANDIDATES = 10
"""Candidates to compare; a near-duplicate ranks among the very nearest by its words."""

log = logging.getLogger("wellkept")


class Similar:
    """Service that finds near-duplicates among an agent's memories of the same kind and user."""

    def __init__(self, store: SqlStore, embedding: Embedding, now: Clock) -> None:
        self._store = store
        self._embedding = embedding
        self._now = now

    def __call__(self, owner: Owner, memory: str | Memory, *, kinds: Collection[Kind] = ()) -> Sequence[Memory]:
        """Return the near-duplicates of a memory, or of the one with this id, most similar first.

        They are of the same kind, or of these `kinds`.

        Raises: NotFound.
        """
        if isinstance(memory, str):
            memory = self._store.get_memory(owner, memory)
        known = {memory_seq(memory.id), memory_seq(memory.supersedes or "")}
        seqs = {match.seq for match in self._find_candidates(memory.home, memory.text, kinds or [memory.kind])} - known
        if not seqs:
            return []
        others = self._store.find_memories(owner, sorted(seqs)).values()
        alike = [other for other in others if duplicates.is_near_duplicate(memory.text, other.text)]
        return sorted(alike, key=lambda other: -duplicates.compute_similarity(memory.text, other.text))

    def find_related(self, owner: Owner, text: str, *, kinds: Collection[Kind], limit: int) -> Sequence[Memory]:
        """Return live memories that share words with a text or are near to it in meaning, oldest first."""
        now, vector = self._now(), self._embedding.of_query(text)
        self._embedding.prepare(owner)
        found = [*self._store.search_memories(owner, text, kinds=kinds, now=now, limit=limit)]
        if vector is not None:
            found += self._store.nearest_memories(owner, vector, kinds=kinds, now=now, limit=limit)
        # Half by words and half by meaning, if there are too many.
        seqs = dict.fromkeys(match.seq for pair in zip_longest(found[:limit], found[limit:]) for match in pair if match)
        return list(self._store.find_memories(owner, sorted([*seqs][:limit])).values())

    def _find_candidates(self, owner: Owner, text: str, kinds: Collection[Kind]) -> Sequence[Match]:
        # Every write asks, so nothing is embedded. Near-duplicates share most of their words.
        return self._store.search_memories(owner, text, kinds=kinds, now=self._now(), limit=CANDIDATES)


def find_lookalikes(similar: Callable[[Memory], Sequence[Memory]], kept: Memory) -> Sequence[Memory]:
    """Return the near-duplicates of a memory that was just stored, for the answer to the write.

    Never raises: the memory is already stored.
    """
    if kept.kind not in UNIQUE:
        return ()
    try:
        return similar(kept)
    except WellkeptError as error:
        log.warning("Memory %s is stored but was not compared with others: %s", kept.id, error)
        return ()
