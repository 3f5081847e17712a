"""The one write path for every kind of memory.

A draft is checked by the rules of its kind, held against what memory itself has said (echoes), searched for secrets
and given a vector; all of that before the transaction. Inside it: a note or core memory that says the same as another
is that other one, a correction ends what it corrects, the oldest make room, and the audit log tells what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from recollect.errors import Conflict
from recollect.model import AuditEvent, Kind, Memory, Owner
from recollect.policy import kinds
from recollect.ports import Clock, Store, Vector
from recollect.services.drafts import Draft, checked
from recollect.services.echoes import Echoes
from recollect.services.embedding import Embedding
from recollect.services.secrets import SecretGuard

T = TypeVar("T")

UNIQUE = (Kind.NOTE, Kind.CORE)
"""Kinds in which the same thing said twice is one memory; a journal or an episode may well repeat itself."""


class Remember:
    """Everything that changes an agent's memories."""

    def __init__(
        self,
        store: Store,
        embedding: Embedding,
        guard: SecretGuard,
        echoes: Echoes,
        now: Clock,
        *,
        max_counts: Mapping[Kind, int],
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._guard = guard
        self._echoes = echoes
        self._now = now
        self._max_counts = max_counts

    def __call__(self, owner: Owner, drafts: Sequence[Draft]) -> Sequence[Memory]:
        """All of them in one transaction, or none.

        Raises: Invalid, SecretRejected, NotFound when a draft supersedes what is not there.
        """
        now = self._now()
        memories = [self._admitted(checked(draft, owner, now)) for draft in drafts]
        ended = [self._ended(memory) for memory in memories if memory.supersedes is not None]
        vectors = self._embedding.of_texts([memory.text for memory in (*memories, *ended)])

        def write() -> Sequence[Memory]:
            for old, vector in zip(ended, vectors[len(memories) :], strict=True):
                self._store.update_memory(old, vector, replaced_at=now)
            return self._add(owner, memories, vectors[: len(memories)], now)

        return self._written(owner, write, vectors)

    def update(
        self,
        owner: Owner,
        id: str,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        version: int | None = None,
    ) -> Memory:
        """The memory, edited; what it said before is kept as a version.

        Raises: NotFound, Invalid, SecretRejected; Conflict when it is no longer the `version` the caller has seen.
        """
        old = self._store.get_memory(owner, id)
        if version is not None and version != old.version:
            raise Conflict(f"This memory is at version {old.version} by now, not {version}; read it again.")
        new = self._guard.checked(
            replace(
                old,
                text=old.text if text is None else kinds.checked_content(text, old.kind),
                tags=old.tags if tags is None else kinds.checked_tags(tags),
                importance=old.importance if importance is None else kinds.checked_importance(importance),
            )
        )
        return old if new == old else self._rewrite(new, "memory.update", "edited")

    def approve(self, owner: Owner, id: str) -> Memory:
        """Let a memory that was held for review into use, and take its flag away.

        Raises: NotFound.
        """
        old = self._store.get_memory(owner, id)
        if old.held_at is None and old.flag is None:
            return old
        return self._rewrite(replace(old, held_at=None, flag=None), "memory.approve", "approved")

    def forget(self, owner: Owner, id: str) -> None:
        """Delete a memory and its history.

        Raises: NotFound.
        """
        now = self._now()

        def forget() -> None:
            self._store.delete_memory(owner, id)
            self._record(owner, "memory.delete", f"Memory {id} was deleted.", {"id": id}, now)

        self._store.transaction(owner.tenant, forget)

    def _admitted(self, memory: Memory) -> Memory:
        self._echoes.check(memory)
        return self._guard.checked(memory)

    def _add(
        self, owner: Owner, memories: Sequence[Memory], vectors: Sequence[Vector | None], now: datetime
    ) -> Sequence[Memory]:
        same = [self._same(memory, now) for memory in memories]
        fresh = [(m, v) for m, v, known in zip(memories, vectors, same, strict=True) if known is None]
        added = iter(self._store.add_memories([m for m, _ in fresh], [v for _, v in fresh]))
        result = [next(added) if known is None else known for known in same]
        new = [memory for memory, known in zip(result, same, strict=True) if known is None]
        for kind in {memory.kind for memory in new} & set(self._max_counts):
            self._store.prune_memories(owner, kind, keep=self._max_counts[kind])
        if new:
            self._record(owner, "memory.add", _added_message(new), {"ids": [new[0].id, new[-1].id]}, now)
        return result

    def _same(self, memory: Memory, now: datetime) -> Memory | None:
        if memory.kind not in UNIQUE or memory.supersedes is not None:
            return None
        return self._store.find_same_memory(memory.owner, memory.kind, memory.text, now=now)

    def _ended(self, correction: Memory) -> Memory:
        """What is corrected, no longer true since the correction is; the past can still be read."""
        old = self._store.get_memory(correction.owner, correction.supersedes or "")
        return replace(old, valid_to=correction.valid_from or correction.created_at)

    def _rewrite(self, memory: Memory, action: str, done: str) -> Memory:
        vectors = self._embedding.of_texts([memory.text])
        owner, now = memory.owner, self._now()

        def rewrite() -> Memory:
            written = self._store.update_memory(memory, vectors[0], replaced_at=now)
            self._record(owner, action, f"Memory {memory.id} was {done}.", {"id": memory.id}, now)
            return written

        return self._written(owner, rewrite, vectors)

    def _written(self, owner: Owner, work: Callable[[], T], vectors: Sequence[Vector | None]) -> T:
        """Run `work` in one transaction; what has no vector is embedded once it is committed, and so can be found."""
        result = self._store.transaction(owner.tenant, work)
        if any(vector is None for vector in vectors):
            self._embedding.wake()
        return result

    def _record(self, owner: Owner, action: str, message: str, meta: Mapping[str, Any], now: datetime) -> None:
        event = AuditEvent(tenant=owner.tenant, at=now, action=action, agent_id=owner.agent, message=message, meta=meta)
        self._store.add_event(event)


def _added_message(memories: Sequence[Memory]) -> str:
    """What was stored, without a word of its text."""
    first, last = memories[0], memories[-1]
    if len(memories) == 1:
        return f"{first.kind.value.capitalize()} {first.id} was stored{' for review' if first.held_at else ''}."
    return f"{len(memories):,} memories, {first.id} to {last.id}, were stored."
