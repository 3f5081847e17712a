"""Drafts of memories, their validation by the rules of their kind, and room for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from wellkept.caller import current_caller
from wellkept.errors import Forbidden, Invalid, WellkeptError
from wellkept.language.names import check_user, memory_seq
from wellkept.language.text import check_text, content_hash, is_question
from wellkept.memory import rules_importance as importance
from wellkept.memory import rules_kinds as kinds
from wellkept.memory import rules_trust as trust
from wellkept.memory.rules_lifetime import LIFETIMES, Lifetimes, find_category, find_lifetime
from wellkept.model import NO_USER, Kind, Memory, Origin, Owner, Role, Scope

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_NAME_CHARS = 200
MAX_NAMED_CHARS = 16

OTHER_USER = "This view belongs to another user; name the same user, or none."

SHARED = "This belongs to no user, so a user's view reads it but does not change it; change it through the agent."

NO_ROOM = (
    "Memory is full of notes that are trusted more than this one and are not deleted to make room for it; forget some, "
    "or raise max_total."
)

LOOK_BACK = 20
"""Number of earlier drafts of one call that are searched for the message before a draft."""

Choice = TypeVar("Choice", bound=StrEnum)


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
    role = check_choice(Role, draft.role, Role.USER)
    origin = trust.lower_origin(check_choice(Origin, draft.origin, Origin.USER), current_caller().trust)
    # Before the category, for which the message before this one in the session may be looked up.
    session_id = check_name(draft.session_id, "session_id")
    category, weight, expires_at = (
        _classify_episode(draft, text, role, created_at, lifetimes, is_answer)
        if kind is Kind.EPISODE
        else _classify(draft, kind, created_at)
    )
    held = trust.find_hold_reason(kind, origin)
    return Memory(
        owner=owner.whole,
        kind=kind,
        text=text,
        tags=kinds.check_tags(draft.tags),
        scope=check_choice(Scope, draft.scope, Scope.WORKSPACE),
        role=role,
        session_id=session_id,
        importance=weight,
        category=category,
        origin=origin,
        created_at=created_at,
        expires_at=expires_at,
        supersedes=_check_id(draft.supersedes),
        valid_from=_check_time(draft.valid_from, "valid_from"),
        held_at=now if held else None,
        flag=held,
        user=find_user(owner, draft.user),
        metadata=kinds.check_metadata(draft.metadata),
    )


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


def make_room(store: SqlStore, owner: Owner, new: Sequence[Memory], max_counts: Mapping[Kind, int]) -> Sequence[str]:
    """Delete the oldest memories beyond each kind's limit, of each user or of none, and return their ids.

    Memories of low trust (tool, import, model) replace only memories of low trust.

    Raises: Forbidden when there are too few of those.
    """
    pruned: list[str] = []
    for kind, user in {(memory.kind, memory.user) for memory in new if memory.kind in max_counts}:
        added = [memory for memory in new if (memory.kind, memory.user) == (kind, user)]
        keep = max_counts[kind]
        trusted = sum(not trust.is_low(memory.origin) for memory in added)
        if trusted < len(added):
            # As if only those of low trust had been added; the others make room for themselves below.
            pruned += store.prune_memories(owner.of(user), kind, keep=keep + trusted, is_low_trust=True)
            if len(added) <= keep and not {memory.id for memory in added}.isdisjoint(pruned):
                raise Forbidden(NO_ROOM)
        if trusted:
            pruned += store.prune_memories(owner.of(user), kind, keep=keep)
    return pruned


def check_own(owner: Owner, user: str | None) -> None:
    """Check that a view may change the record of `user`, which it reads. Raises: Forbidden."""
    if owner.user is not None and owner.user != (user or NO_USER):
        raise Forbidden(SHARED)


def find_identity(memory: Memory, position: int) -> object:
    """Return a key that is equal for drafts that become one memory."""
    if memory.kind not in kinds.UNIQUE or memory.supersedes is not None:
        return position
    return memory.kind, memory.user, memory.held_at is None, content_hash(memory.text)


class _ItemNaming:
    """Context manager that names the item of an error. A generator would take as long as the checks inside it."""

    __slots__ = ("_position",)

    def __init__(self, position: int) -> None:
        self._position = position

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, WellkeptError):
            error.item = self._position


def naming_item(position: int) -> AbstractContextManager[None]:
    """Set `item` of an error to the position of the draft that causes it."""
    return _ItemNaming(position)


class DraftChecker:
    """Validation of drafts that belong to conversations: an answer to a question is never routine."""

    def __init__(self, store: SqlStore, lifetimes: Lifetimes = LIFETIMES) -> None:
        self._store = store
        self._lifetimes = lifetimes

    def __call__(self, owner: Owner, drafts: Sequence[Draft], now: datetime) -> Sequence[Memory]:
        """Validate drafts, which are in the order in which they were said.

        Raises: Invalid.
        """
        checked: list[Memory] = []
        users: dict[str, str | None] = {}
        for place, draft in enumerate(drafts):
            if draft.user is None and (session_id := draft.session_id) is not None:
                if session_id not in users:
                    users[session_id] = find_session_user(self._store, owner, session_id)
                draft = replace(draft, user=users[session_id])
            is_answer = partial(self._is_answer, owner, draft, drafts, place)
            with naming_item(place):
                checked.append(check_draft(draft, owner, now, lifetimes=self._lifetimes, is_answer=is_answer))
        return checked

    def _is_answer(self, owner: Owner, draft: Draft, drafts: Sequence[Draft], place: int) -> bool:
        """Return True if the message before a draft is a question of another speaker."""
        role = draft.role or Role.USER
        for other in reversed(drafts[max(0, place - LOOK_BACK) : place]):
            if other.session_id == draft.session_id:
                return (other.role or Role.USER) != role and is_question(other.text)
        if draft.session_id is None:
            return False
        previous = self._store.find_last_episode(owner, draft.session_id)
        return previous is not None and previous.role != role and is_question(previous.text)


def _classify(draft: Draft, kind: Kind, created_at: datetime) -> tuple[str | None, float, datetime | None]:
    """Return category, importance and expiry: as given, or by the rules of the kind."""
    weight = kinds.RULES[kind].importance if draft.importance is None else kinds.check_importance(draft.importance)
    expires_at = _check_time(draft.expires_at, "expires_at") or kinds.expires_at(kind, created_at)
    return check_name(draft.category, "category"), weight, expires_at


def _classify_episode(
    draft: Draft,
    text: str,
    role: Role,
    created_at: datetime,
    lifetimes: Lifetimes,
    is_answer: Callable[[], bool],
) -> tuple[str, float, datetime | None]:
    """Return category, importance and expiry of an episode: as given, or by its text."""
    category = check_name(draft.category, "category")
    weight = None if draft.importance is None else kinds.check_importance(draft.importance)
    expires_at = _check_time(draft.expires_at, "expires_at")
    if category is None:
        judgement = importance.judge(text, role, is_answer=is_answer)
        category, weight = judgement.category.value, judgement.importance if weight is None else weight
    elif weight is None:
        weight = importance.rate_importance(text, role, find_category(category))
    lifetime = find_lifetime(category, lifetimes)
    return category, weight, expires_at or (None if lifetime is None else created_at + lifetime)


def check_choice(choices: type[Choice], value: str | None, default: Choice) -> Choice:
    """Return the enum member named `value`, or the default. Raises: Invalid."""
    if value is None:
        return default
    try:
        return choices(value)
    except ValueError:
        # Do not quote a long value: it is no typo, may be anything, and error messages end up in logs.
        word, text = choices.__name__.lower(), str(value)
        named = f"{word} {text!r}" if len(text) <= MAX_NAMED_CHARS else f"such {word}"
        raise Invalid(f"There is no {named}; choose {', '.join(choices)}.") from None


def check_name(value: str | None, what: str) -> str | None:
    """Return a short name, or None. Raises: Invalid."""
    if value is None:
        return None
    if not check_text(value, what=what).strip() or len(value) > MAX_NAME_CHARS or not value.isprintable():
        raise Invalid(f"A {what} is 1 to {MAX_NAME_CHARS} printable characters on one line.")
    return value


def _check_id(value: str | None) -> str | None:
    if value is not None and memory_seq(value) is None:
        raise Invalid("`supersedes` is the id of a memory, such as m-7.")
    return value


def _check_time(value: datetime | None, what: str) -> datetime | None:
    return None if value is None else check_moment(value, what)


def check_moment(value: object, what: str) -> datetime:
    """Check a time and return it in UTC. Raises: Invalid."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise Invalid(f"{what} must be a time with a zone, for example 2026-01-31T12:00:00Z.")
    # Keep a year to spare at both ends, for time zones and lifetimes.
    if not MINYEAR < value.year < MAXYEAR:
        raise Invalid(f"{what} must lie within the years {MINYEAR + 1} to {MAXYEAR - 1}.")
    return value.astimezone(UTC)
