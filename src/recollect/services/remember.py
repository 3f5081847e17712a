"""The one write path for every kind of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from enum import StrEnum
from typing import TypeVar

from recollect.errors import Invalid
from recollect.model import Kind, Memory, Origin, Owner, Role, Scope
from recollect.policy import kinds
from recollect.policy.text import checked_text
from recollect.ports import Clock, Store
from recollect.services.embedding import Embedding

MAX_NAME_CHARS = 200

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A memory as the caller gives it: unchecked, and with gaps the rules of its kind will fill."""

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


class Remember:
    """Checks drafts by the rules of their kind and stores them."""

    def __init__(self, store: Store, embedding: Embedding, now: Clock) -> None:
        self._store = store
        self._embedding = embedding
        self._now = now

    def __call__(self, owner: Owner, drafts: Sequence[Draft]) -> Sequence[Memory]:
        """All of them in one transaction, or none.

        Raises: Invalid.
        """
        now = self._now()
        memories = [checked(draft, owner, now) for draft in drafts]
        vectors = self._embedding.of_texts([memory.text for memory in memories])
        limited = [kind for kind in {memory.kind for memory in memories} if kinds.RULES[kind].max_count]
        if not limited:
            return self._store.add_memories(memories, vectors)

        def add_and_prune() -> Sequence[Memory]:
            added = self._store.add_memories(memories, vectors)
            for kind in limited:
                self._store.prune_memories(owner, kind, keep=kinds.RULES[kind].max_count or 0)
            return added

        return self._store.transaction(owner.tenant, add_and_prune)

    def update(
        self,
        owner: Owner,
        id: str,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
    ) -> Memory:
        """The memory, edited; what it said before is kept as a version.

        Raises: NotFound, Invalid, Conflict.
        """
        old = self._store.get_memory(owner, id)
        new = replace(
            old,
            text=old.text if text is None else kinds.checked_content(text, old.kind),
            tags=old.tags if tags is None else kinds.checked_tags(tags),
            importance=old.importance if importance is None else kinds.checked_importance(importance),
        )
        if new == old:
            return old
        (vector,) = self._embedding.of_texts([new.text])
        return self._store.update_memory(new, vector, replaced_at=self._now())


def checked(draft: Draft, owner: Owner, now: datetime) -> Memory:
    """The memory a draft describes.

    Raises: Invalid.
    """
    kind = kinds.checked_kind(draft.kind)
    created_at = _checked_time(draft.created_at, "created_at") or now
    importance = kinds.RULES[kind].importance if draft.importance is None else draft.importance
    return Memory(
        owner=owner,
        kind=kind,
        text=kinds.checked_content(draft.text, kind),
        tags=kinds.checked_tags(draft.tags),
        scope=_choice(Scope, draft.scope, Scope.WORKSPACE),
        role=_choice(Role, draft.role, Role.USER),
        session_id=_checked_name(draft.session_id, "session_id"),
        importance=kinds.checked_importance(importance),
        category=_checked_name(draft.category, "category"),
        origin=_choice(Origin, draft.origin, Origin.USER),
        created_at=created_at,
        expires_at=_checked_time(draft.expires_at, "expires_at") or kinds.expiry(kind, created_at),
    )


def _choice(choices: type[Choice], value: str | None, default: Choice) -> Choice:
    if value is None:
        return default
    try:
        return choices(value)
    except ValueError:
        word = choices.__name__.lower()
        raise Invalid(f"There is no {word} {str(value)[:40]!r}; choose {', '.join(choices)}.") from None


def _checked_name(value: str | None, what: str) -> str | None:
    if value is None:
        return None
    if not checked_text(value, what=what).strip() or len(value) > MAX_NAME_CHARS or not value.isprintable():
        raise Invalid(f"A {what} is 1 to {MAX_NAME_CHARS} printable characters on one line.")
    return value


def _checked_time(value: datetime | None, what: str) -> datetime | None:
    if value is None:
        return None
    if value.tzinfo is None:
        raise Invalid(f"{what} must say its time zone, for example 2026-01-31T12:00:00Z.")
    if not MINYEAR < value.year < MAXYEAR:  # a year to spare, for time zones and lifetimes
        raise Invalid(f"{what} must lie within the years {MINYEAR + 1} to {MAXYEAR - 1}.")
    return value.astimezone(UTC)
