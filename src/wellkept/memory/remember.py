"""The single write path for every kind of memory.

Before the transaction, a draft is validated by the rules of its kind, compared with texts memory itself has shown
(echoes), scanned for secrets and embedded. Inside the transaction, a note or core memory with the text of an existing
one becomes that one, a correction ends the memory it corrects, the oldest memories beyond the limit are deleted, and an
audit event is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from wellkept.caller import current_caller
from wellkept.errors import Conflict, Invalid, NotFound, SecretRejected
from wellkept.extension import Clock
from wellkept.facts.rules_statements import describe_parts, read_statement
from wellkept.history.rules_history import describe_added
from wellkept.language.names import is_step_reached, memory_seq
from wellkept.language.text import content_hash
from wellkept.language.values import check_whole
from wellkept.memory import rules_kinds as kinds
from wellkept.memory import rules_trust as trust
from wellkept.memory.drafts import Draft, DraftChecker, check_own, find_identity, make_room, naming_item
from wellkept.memory.loop_guard import ECHO_REFUSED, LoopGuard
from wellkept.memory.rules_lifetime import LIFETIMES, Lifetimes, summarise_expired
from wellkept.model import AuditEvent, Kind, Memory, Owner
from wellkept.model.stored import Encoded
from wellkept.secrets.check import SecretGuard
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

T = TypeVar("T")
Edited: TypeAlias = tuple[Memory, Memory]
"""A memory before and after an edit."""

CORE_NOT_CORRECTED = (
    "A memory from a tool, an import or a model cannot correct a core memory; store it as core, to be reviewed."
)
SAME_TEXT = "Memory {} has the same text; keep it and forget {}, or change the text."
CORRECTS_OTHER_USER = "A correction belongs to the user of the memory it corrects, or like it to none; name that user."
MAX_NAMED = 100
"""Maximum number of corrected or deleted memories that an audit event names."""


class Remember:
    """Service for every change to an agent's memories."""

    def __init__(
        self,
        store: SqlStore,
        embedding: Embedding,
        guard: SecretGuard,
        loop_guard: LoopGuard,
        now: Clock,
        *,
        max_counts: Mapping[Kind, int],
        suspicious: str = "last",
        lifetimes: Lifetimes = LIFETIMES,
        keeps_gist: bool = True,
        step: int = 0,
        on_step: Callable[[Owner], None] = lambda owner: None,
        on_first: Callable[[], None] = lambda: None,
    ) -> None:
        """Set up the service; `on_step` runs after every `step` memories of an agent, `on_first` after the first.

        `on_step` gets the owner of the user's memories.
        """
        self._store = store
        self._embedding = embedding
        self._guard = guard
        self._loop_guard = loop_guard
        self._now = now
        self._max_counts = max_counts
        self._suspicious = suspicious
        self._check = DraftChecker(store, lifetimes)
        self._lifetimes = lifetimes
        self._keeps_gist = keeps_gist
        self._step = step
        self._on_step = on_step
        self._on_first = on_first

    def __call__(self, owner: Owner, drafts: Sequence[Draft]) -> Sequence[Memory]:
        """Store the drafts in one transaction, all or none.

        Raises: Invalid, SecretRejected; NotFound when a superseded memory does not exist; Forbidden when that memory is
        trusted more than the caller, or only more trusted memories could make room. `item` of the error is the position
        of the draft, unless the drafts are refused together.
        """
        return self.apply(owner, drafts, (), also=lambda added, edited: added)

    def check(
        self, owner: Owner, drafts: Sequence[Draft], edits: Sequence[Memory] = (), *, now: datetime | None = None
    ) -> tuple[Sequence[Memory], Sequence[Memory]]:
        """Return the memories that drafts would become, and the corrected and edited ones. Raises: see `apply`."""
        now, memories, screened = now or self._now(), list[Memory](), list[Memory]()
        for position, memory in enumerate(self._check(owner, drafts, now)):
            with naming_item(position):
                memories.append(self._admit(memory, now))
        for position, edited in enumerate(edits, len(drafts)):
            with naming_item(position):
                check_own(owner, edited.user)
                screened.append(self.screen(edited, now))
        return memories, [*self._find_corrected(owner, memories), *screened]

    def apply(
        self,
        owner: Owner,
        drafts: Sequence[Draft],
        edits: Sequence[Memory],
        *,
        also: Callable[[Sequence[Memory], Sequence[Edited]], T],
    ) -> T:
        """Store the drafts and write the edited memories in one transaction, all or none.

        Returns the result of `also`, which runs in it with the stored memories, and the corrected and edited ones
        before and after.

        Raises: see `__call__`, with `item` counting the drafts and then the edits; Conflict when an edited memory
        changed since it was read.
        """
        now = self._now()
        memories, changed = self.check(owner, drafts, edits, now=now)
        encoded = self._store.encode_memories(memories)

        def write() -> T:
            edited = self.edit_now(owner, changed, now)
            return also(self.add_now(owner, memories, encoded, now), edited)

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
        new = [memory for memory in self._check(owner, drafts, now) if not self._loop_guard.is_echo(memory)]
        memories = [self.screen(memory, now) for memory in new]
        encoded = self._store.encode_memories(memories)

        def write() -> T:
            added = self.add_now(owner, memories, encoded, now) if memories else []
            also(added)
            for memory in added:
                if self._keeps_gist and (gist := summarise_expired(memory, now, self._lifetimes)) is not None:
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
        if old.held_at is None and trust.judge_memory(old, self._suspicious).flag is None:
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
        now = self._now()

        def approve() -> int:
            count = self._store.approve_notes(owner)
            message = f"{count:,} notes that came with the workspace were approved."
            self._record(owner, "workspace.approve", message, {"notes": count}, now)
            return count

        return self._store.transaction(owner.tenant, approve)

    def forget(self, owner: Owner, id: str) -> None:
        """Delete a memory and its history. Raises: NotFound; Forbidden when it is trusted more than the caller."""
        now, highest = self._now(), current_caller().trust
        if highest is not None or owner.user is not None:
            trust.check_change(self._get_own(owner, id).origin, highest)

        def forget() -> None:
            self._store.delete_memory(owner, id)
            self._record(owner, "memory.delete", f"Memory {id} was deleted.", {"id": id}, now)

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
        approved = [replace(each, held_at=None, flag=None) for each in self._check(owner, drafts, now)]
        memories = [self._check_secrets(each, now) for each in approved]

        def write() -> T:
            edited = self.edit_now(owner, ended, now)
            known = {same.id for each in memories if (same := self._find_same(each, now)) is not None}
            return also(self.add_now(owner, memories, [None] * len(memories), now), edited, known)

        return self._run_transaction(owner, write)

    def revert(self, owner: Owner, restored: Sequence[Memory], *, made: Sequence[str], also: Callable[[], T]) -> T:
        """Undo `carry_out` or `apply`: write the former states of memories and delete those that were `made`.

        Raises: NotFound, Conflict when one of them was edited since.
        """
        now = self._now()

        def write() -> T:
            self.edit_now(owner, restored, now)
            for id in made:
                self._store.delete_memory(owner, id)
            return also()

        return self._run_transaction(owner, write)

    def _get_own(self, owner: Owner, id: str) -> Memory:
        """Return a memory that this view may change. Raises: NotFound, Forbidden."""
        memory = self._store.get_memory(owner, id)
        check_own(owner, memory.user)
        return memory

    def _admit(self, memory: Memory, now: datetime) -> Memory:
        """Refuse an echo and screen the memory. The audit event of a refusal does not contain the text."""
        if self._loop_guard.is_echo(memory) and self._find_same(memory, now) is None:
            self._record_refusal(memory, "it came out of memory", now)
            raise Invalid(ECHO_REFUSED)
        return self.screen(memory, now)

    def screen(self, memory: Memory, now: datetime) -> Memory:
        """Check for secrets, and flag or hold a memory that reads like instructions. Raises: SecretRejected."""
        memory = self._check_secrets(memory, now)
        flagged = memory if self._suspicious == "show" else trust.flag_memory(memory)
        return replace(flagged, held_at=now) if flagged is not memory and self._suspicious == "hold" else flagged

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

    def add_now(
        self, owner: Owner, memories: Sequence[Memory], encoded: Sequence[Encoded], now: datetime
    ) -> Sequence[Memory]:
        """Store checked memories. The caller holds a transaction."""
        same = [self._find_same(memory, now) for memory in memories]
        # A single draft repeats no other one, so nothing has to tell them apart.
        identities = [find_identity(memory, place) for place, memory in enumerate(memories)] if len(same) != 1 else [0]
        # Position of the first draft of each identity; later drafts become the same memory.
        firsts: dict[object, int] = {}
        for position, identity in enumerate(identities):
            if same[position] is None:
                firsts.setdefault(identity, position)
        places = firsts.values()
        new = self._store.add_memories([memories[each] for each in places], [encoded[each] for each in places])
        added = dict(zip(firsts, new, strict=True))
        result = [known or added[identity] for known, identity in zip(same, identities, strict=True)]
        pruned = make_room(self._store, owner, new, self._max_counts)
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

    def _find_same(self, memory: Memory, now: datetime) -> Memory | None:
        if memory.kind not in kinds.UNIQUE or memory.supersedes is not None:
            return None
        same = self._store.find_same_memory(memory.home, memory.kind, memory.text, now=now)
        if same is not None and same.held_at is not None and memory.held_at is None:
            # A trusted memory must not be held because the same text of low trust is.
            return None
        return same

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
                ends_at = each.since
                ended[old.id] = replace(old, valid_to=min(old.valid_to or ends_at, ends_at))
        return list(ended.values())

    def edit_now(self, owner: Owner, edited: Sequence[Memory], now: datetime) -> Sequence[Edited]:
        """Write edited memories; return each before and after. The caller holds a transaction."""
        seqs = [memory_seq(memory.id) or 0 for memory in edited]
        former = self._store.find_memories(owner.whole, seqs) if seqs else {}
        written = [self._store.update_memory(memory, replaced_at=now) for memory in edited]
        return [(former[seq], memory) for seq, memory in zip(seqs, written, strict=True)]

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
