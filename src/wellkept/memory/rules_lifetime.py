"""Lifetime of memories: categories of episodes, decay, and the gist that stays of a long text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from math import log
from types import MappingProxyType

from wellkept.model import Kind, Memory, Role


class Category(StrEnum):
    """Category of an episode, which determines its lifetime."""

    ROUTINE = "routine"
    ERROR = "error"
    TASK_COMPLETION = "task_completion"
    DECISION = "decision"
    FACT = "fact"
    EXPLICIT = "explicit"


CATEGORY_ALIASES = {"approval": Category.DECISION, "failure": Category.ERROR}
"""Aliases that callers use for categories."""

_BY_NAME = {each.value: each for each in Category} | CATEGORY_ALIASES

Lifetimes = Mapping[Category, timedelta | None]
"""Lifetime of each category; None: unlimited."""


DAYS = {
    Category.ROUTINE: 7,
    Category.ERROR: 14,
    Category.TASK_COMPLETION: 30,
    Category.DECISION: 90,
    Category.FACT: 0,
    Category.EXPLICIT: 0,
}


def make_lifetimes(**days: int) -> Lifetimes:
    """Return lifetimes of so many days by category; 0 days mean unlimited, as "remember this" always is.

    >>> make_lifetimes(fact=365)[Category.FACT].days, make_lifetimes()[Category.EXPLICIT]
    (365, None)
    """
    chosen = {category: days.get(category.value, usual) for category, usual in DAYS.items()}
    return MappingProxyType({category: timedelta(days=count) if count else None for category, count in chosen.items()})


LIFETIMES = make_lifetimes()
"""Default lifetimes."""


def find_category(name: str | None) -> Category | None:
    """Return the category that a caller's name refers to; None for custom names.

    >>> find_category("error"), find_category("approval"), find_category("gossip")
    (<Category.ERROR: 'error'>, <Category.DECISION: 'decision'>, None)
    """
    return None if name is None else _BY_NAME.get(name)


MAX_GIST_CHARS = 300
MIN_SENTENCE_CHARS = 30
"""Length below which the sentence after the first belongs to a gist, too."""

LONG_WORDS = 120
"""Number of words above which an answer is long."""

PERSONAL_SHARE = 1 / 40
"""Share of first-person words from which a long text is a person's account, not an answer."""

CUT = "…"

ANSWERING = frozenset({Role.ASSISTANT, Role.TOOL_RESULT})
"""Roles whose long texts are never facts."""

_STRUCTURE = re.compile(r"^\s{0,6}(?:#{1,6} |```|~~~|[-*•+] |\d{1,3}[.)] |\|.+\|)", re.MULTILINE)
_ITEM = re.compile(r"\s*(?:#{1,6}|[-*•+]|\d{1,3}[.)])\s+(.+)")
_FENCE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_HEAD_END = re.compile(r"(?<=[^\s]):(?=\s|$)|\s[–—-]\s|(?<=[.!?])\s")
_EMPHASIS = re.compile(r"\*\*|__|`")
_FIRST_PERSON = re.compile(r"\b(?:I|my|our)\b")


def is_long_answer(text: str) -> bool:
    """Return True if an answer has a list, a heading or code, or over `LONG_WORDS` words and no "I", "my" or "our".

    >>> is_long_answer("You could try:\\n- tea\\n- coffee"), is_long_answer("Tea.")
    (True, False)
    """
    if _STRUCTURE.search(text):
        return True
    if text.count(" ") < LONG_WORDS or (words := len(text.split())) <= LONG_WORDS:
        return False
    return len(_FIRST_PERSON.findall(text)) < words * PERSONAL_SHARE


def make_gist(text: str, *, max_chars: int = MAX_GIST_CHARS) -> str:
    """Return the gist of a text: all of a short one, else the first sentence and the heads of its list items.

    >>> make_gist("Three ideas for you. Take your time.\\n1. **Tea**: calms\\n2. **Coffee**: wakes", max_chars=51)
    'Three ideas for you. Take your time. Tea; Coffee …'
    """
    whole = " ".join(text.split())
    if len(whole) <= max_chars:
        return whole
    lines = [_EMPHASIS.sub("", line).strip() for line in _FENCE.sub("", text).splitlines()]
    items = [match[1] for line in lines if (match := _ITEM.match(line))]
    prose = " ".join(line for line in lines if line and not _ITEM.match(line)) or whole
    room = max_chars - len(CUT) - 1
    sentences = _SENTENCE.split(prose)
    # "Sure!" alone says nothing.
    count = 2 if len(sentences[0]) < MIN_SENTENCE_CHARS else 1
    gist = _shorten(" ".join(sentences[:count]), room)
    heads = [_HEAD_END.split(item, 1)[0].rstrip(" :") for item in items]
    # Without a list, as many whole sentences as fit.
    parts, separator = (heads, "; ") if heads else (sentences[count:], " ")
    for number, part in enumerate(parts):
        joined = f"{gist}{separator if number else ' '}{part}"
        if len(joined) > room:
            break
        gist = joined
    return f"{gist} {CUT}"


def _shorten(sentence: str, room: int) -> str:
    """Shorten a sentence at a word."""
    return sentence if len(sentence) <= room else sentence[:room].rsplit(" ", 1)[0]


JOURNAL_WINDOW = timedelta(days=7)
"""Time after which a journal entry leaves the prompt; its row stays and is shown as expired."""

DECAY_PER_WEEK = 0.95
"""Share of its importance that a memory keeps per week without retrieval."""

ARCHIVE_BELOW = 0.1
"""Decayed importance below which an episode is archived."""

FADES_AFTER = timedelta(weeks=1)
"""Time without retrieval before which no episode is archived for its decayed importance."""

EARLY_BELOW = 0.2
"""Initial importance below which episodes are evicted first."""

EPISODE_QUOTA = 10_000
"""Maximum number of live episodes per agent."""

SPARED = frozenset({Category.FACT, Category.EXPLICIT})
"""Categories that do not decay."""

SUMMARISED = frozenset({Category.DECISION, Category.TASK_COMPLETION, Category.ERROR})
"""Categories of which the gist stays as a fact."""

DAY = timedelta(days=1)


class Fate(StrEnum):
    """Result of maintenance for an episode."""

    KEPT = "kept"
    EXPIRED = "expired"
    FADED = "faded"


def find_lifetime(category: str | None, lifetimes: Lifetimes) -> timedelta | None:
    """Return the lifetime of a category; a caller's own category lives as long as routine does."""
    return lifetimes[find_category(category) or Category.ROUTINE]


def decay_importance(importance: float, *, retrieved_at: datetime, now: datetime) -> float:
    """Compute the importance left without retrieval since `retrieved_at` (exponential decay).

    >>> round(decay_importance(0.8, retrieved_at=datetime(2026, 1, 1), now=datetime(2026, 1, 15)), 3)
    0.722
    """
    weeks = max(now - retrieved_at, timedelta()) / timedelta(weeks=1)
    return importance * float(DECAY_PER_WEEK**weeks)


def decide_fate(
    importance: float,
    created_at: datetime,
    last_retrieved_at: datetime | None,
    expires_at: datetime | None,
    *,
    now: datetime,
    category: str | None = None,
) -> Fate:
    """Decide what maintenance does with an episode at `now`.

    >>> decide_fate(0.5, datetime(2025, 1, 1), None, None, now=datetime(2025, 2, 1))
    <Fate.KEPT: 'kept'>
    >>> decide_fate(0.5, datetime(2025, 1, 1), None, None, now=datetime(2026, 1, 1))
    <Fate.FADED: 'faded'>
    >>> decide_fate(0.5, datetime(2025, 1, 1), None, None, now=datetime(2026, 1, 1), category="fact")
    <Fate.KEPT: 'kept'>
    """
    if expires_at is not None and expires_at <= now:
        return Fate.EXPIRED
    if find_category(category) in SPARED:
        return Fate.KEPT
    used_at = last_retrieved_at or created_at
    # Otherwise small talk, whose importance is 0.1, would be archived by the next hourly run.
    if now - used_at < FADES_AFTER:
        return Fate.KEPT
    left = decay_importance(importance, retrieved_at=used_at, now=now)
    return Fate.FADED if left < ARCHIVE_BELOW else Fate.KEPT


def find_fading(importance: float, used_at: datetime, *, category: str | None = None) -> datetime | None:
    """Return when maintenance archives an episode that is not retrieved after `used_at`; None: it does not fade.

    >>> f"{find_fading(0.5, datetime(2026, 1, 1)):%Y-%m-%d}", find_fading(0.5, datetime(2026, 1, 1), category="fact")
    ('2026-08-08', None)
    """
    if find_category(category) in SPARED:
        return None
    # importance * DECAY_PER_WEEK ** weeks = ARCHIVE_BELOW
    weeks = log(ARCHIVE_BELOW / importance, DECAY_PER_WEEK) if importance > ARCHIVE_BELOW else 0.0
    return used_at + max(FADES_AFTER, timedelta(weeks=weeks))


def quota_rank(
    importance: float,
    created_at: datetime,
    last_retrieved_at: datetime | None,
    *,
    now: datetime,
    category: str | None = None,
) -> tuple[int, float] | None:
    """Return a sort key for eviction: unimportant episodes first, facts last, and of each the most decayed first.

    None for what someone asked to remember, which is never evicted.
    """
    known = find_category(category)
    if known is Category.EXPLICIT:
        return None
    left = decay_importance(importance, retrieved_at=last_retrieved_at or created_at, now=now)
    return (2 if known is Category.FACT else int(importance >= EARLY_BELOW), left)


def prolong(
    category: str | None,
    created_at: datetime,
    last_retrieved_at: datetime | None,
    expires_at: datetime,
    *,
    recalled_at: datetime,
    lifetimes: Lifetimes = LIFETIMES,
) -> datetime | None:
    """Return the new end of an episode that is recalled: its lifetime after that, in whole days since it was stored.

    None if the end does not move. An end that the caller has set never does.

    >>> stored = datetime(2026, 1, 1)
    >>> prolong("error", stored, None, stored + 14 * DAY, recalled_at=stored + 3 * DAY)
    datetime.datetime(2026, 1, 18, 0, 0)
    >>> prolong("error", stored, None, stored + 10 * DAY, recalled_at=stored + 3 * DAY) is None
    True
    """
    lifetime = find_lifetime(category, lifetimes)
    if lifetime is None or expires_at <= recalled_at:
        return None
    if not is_set_by_rule(category, created_at, last_retrieved_at, expires_at, lifetimes):
        return None
    end = _end_after(created_at, recalled_at, lifetime)
    return end if end > expires_at else None


def _end_after(created_at: datetime, recalled_at: datetime, lifetime: timedelta) -> datetime:
    # Rounded up to whole days, so that an end moves at most once a day.
    days = -((created_at - recalled_at - lifetime) // DAY)
    return created_at + days * DAY


def renew(
    kind: Kind, category: str | None, created_at: datetime, *, now: datetime, lifetimes: Lifetimes = LIFETIMES
) -> datetime | None:
    """Return the end of a memory that is restored at `now`, as if an episode were recalled then; None: never.

    >>> renew(Kind.EPISODE, "error", datetime(2026, 1, 1), now=datetime(2026, 3, 1))
    datetime.datetime(2026, 3, 15, 0, 0)
    """
    if kind is Kind.JOURNAL:
        return now + JOURNAL_WINDOW
    lifetime = find_lifetime(category, lifetimes) if kind is Kind.EPISODE else None
    return None if lifetime is None else _end_after(created_at, now, lifetime)


def is_set_by_rule(
    category: str | None,
    created_at: datetime,
    last_retrieved_at: datetime | None,
    expires_at: datetime,
    lifetimes: Lifetimes,
) -> bool:
    """Return True if an end comes from the lifetime of the category or from `prolong`, and not from the caller."""
    span, lifetime = expires_at - created_at, find_lifetime(category, lifetimes)
    if span in (lifetime, find_lifetime(category, LIFETIMES)):
        return True
    if last_retrieved_at is None or lifetime is None or span % DAY or span <= lifetime:
        return False
    return expires_at <= _end_after(created_at, last_retrieved_at, lifetime)


def summarise_expired(memory: Memory, now: datetime, lifetimes: Lifetimes = LIFETIMES) -> Memory | None:
    """Return what replaces an expired episode: a fact that holds its gist. None if nothing does.

    Decisions, finished tasks, errors and long answers are replaced, unless they were corrected or the caller set
    their end.
    """
    ends_at = memory.expires_at
    if ends_at is None or ends_at > now or memory.is_corrected(now):
        return None
    is_long = memory.role in ANSWERING and is_long_answer(memory.text)
    if not is_long and find_category(memory.category) not in SUMMARISED:
        return None
    if not is_set_by_rule(memory.category, memory.created_at, memory.last_retrieved_at, ends_at, lifetimes):
        return None
    lifetime = lifetimes[Category.FACT]
    return replace(
        memory,
        text=make_gist(memory.text),
        category=Category.FACT.value,
        expires_at=None if lifetime is None else now + lifetime,
    )
