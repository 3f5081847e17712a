"""Which notes enter the prompt, and how they are written there.

Notes are scored against the last user message by the words they share with it; a little is added for being new. What
a note says is data: however it is worded, it can neither begin a line of the block nor close the brackets before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from recollect.errors import Invalid
from recollect.model import Memory, State
from recollect.policy.memories.trust import Judge, is_suspicious, provenance
from recollect.policy.names import memory_seq
from recollect.policy.prompt.escaping import as_line
from recollect.policy.recall import ranking
from recollect.policy.text import fold

MAX_INJECT_CHARS = 2000
"""How much text of notes enters a prompt."""

MAX_INJECT_COUNT = 10
FALLBACK_COUNT = 5
"""How many of the newest notes are shown when none has a word in common with the message."""

MIN_WORD_CHARS = 3
RECENCY_SCALE = 0.1
MIN_AGE_HOURS = 0.1
MAX_RECENCY_BONUS = 1.0

WORDS_SHARE = 0.5
"""Of a hybrid score, how much the words decide; the rest is meaning."""

RECENCY_SHARE = 0.1
"""What a note written this moment gains in a hybrid score."""

MEANING_FLOOR = 0.3
"""A cosine below this says nothing: unrelated sentences reach it too."""

STOPWORDS = frozenset(
    """
    the and for are but not you all can has her was one our out its use how may who did get had him his let say she too
    own way about could from have into just like make many some than that them then this very when what with will would
    been each more most much must only also back being come every first here know made need over such take where which
    while work project please help want using thing file should
    """.split()
)
"""Words too common to say which note is meant."""

HEADING = "[Memories]"

_WORD = re.compile(r"[^\W_]+")
_TAG_PUNCTUATION = frozenset("-_./:#&@'+")


class Mode(StrEnum):
    """How notes are chosen for a prompt."""

    RELEVANT = "relevant"
    RECENT_ONLY = "recent_only"
    OFF = "off"
    HYBRID = "hybrid"


def checked_mode(mode: str) -> Mode:
    """Raises: Invalid."""
    try:
        return Mode(mode)
    except ValueError:
        raise Invalid(f"There is no injection mode {str(mode)[:40]!r}; choose {', '.join(Mode)}.") from None


@lru_cache(maxsize=8192)  # the same notes are held against every message
def keywords(text: str) -> frozenset[str]:
    """The words that count when a note is held against a message.

    >>> sorted(keywords("The project uses PostgreSQL 16, on port 5432"))
    ['5432', 'port', 'postgresql', 'uses']
    """
    words = _WORD.findall(fold(text))
    return frozenset(word for word in words if len(word) >= MIN_WORD_CHARS and word not in STOPWORDS)


def recency_bonus(age_hours: float) -> float:
    """
    >>> recency_bonus(0), recency_bonus(1), recency_bonus(10)
    (1.0, 0.1, 0.01)
    """
    return min(MAX_RECENCY_BONUS, RECENCY_SCALE / max(age_hours, MIN_AGE_HOURS))


def select(
    notes: Sequence[Memory],
    message: str,
    *,
    mode: str,
    now: datetime,
    max_chars: int = MAX_INJECT_CHARS,
    max_count: int = MAX_INJECT_COUNT,
    meaning: Mapping[str, float] | None = None,
    judge: Judge = lambda memory: memory,
) -> list[Memory]:
    """The notes for a prompt, best first; with `recent_only`, or when none matches, newest first.

    `relevant` takes the notes that share a word with the message, by the number of words and a bonus for being new.
    `hybrid` also takes those whose cosine (`meaning`, by note id) is at least `MEANING_FLOOR`; its score is half the
    shared words and half the cosine, each measured against the best, plus `RECENCY_SHARE` of the bonus; without
    `meaning` it is `relevant`. A note that
    does not fit into what is left of `max_chars` is passed over, and a shorter one after it may still fit. What `judge`
    flags as suspicious comes last, in the room that the others leave. Expired and archived notes are never chosen.

    Raises: Invalid.
    """
    chosen = checked_mode(mode)
    if chosen is Mode.OFF:
        return []
    newest = sorted((note for note in notes if note.state(now) is State.LIVE), key=_age_order, reverse=True)
    if chosen is Mode.RECENT_ONLY:
        return _fitting(map(judge, newest), max_chars=max_chars, max_count=max_count)
    if chosen is Mode.HYBRID and meaning:
        scores = _hybrid_scores(newest, message, now, meaning)
    else:
        scores = _word_scores(newest, message, now)
    if not scores:
        return _fitting(_first(map(judge, newest), FALLBACK_COUNT), max_chars=max_chars, max_count=max_count)
    best = sorted(scores, key=lambda position: -scores[position])  # stable: the newer of two equals stays first
    return _fitting((judge(newest[position]) for position in best), max_chars=max_chars, max_count=max_count)


def render_notes(notes: Sequence[Memory]) -> str | None:
    """Return the block with one line per note, its id and first tag in front; None when there are no notes."""
    if not notes:
        return None
    return "\n".join([HEADING, *(_line(note) for note in notes)])


def _line(note: Memory) -> str:
    label = ", ".join(filter(None, [_label(note.id), _label(note.tags[0]) if note.tags else ""]))
    return f"- ({label}) {provenance(note)}{as_line(note.text)}"


def _label(text: str) -> str:
    """An id or a tag without what could end it early: brackets, commas, quotes.

    >>> _label("infra) fake (m-9, x")
    'infra fake m-9 x'
    """
    plain = (" " if _is_separator(character) else character for character in as_line(text))
    return " ".join("".join(plain).split())


def _is_separator(character: str) -> bool:
    return unicodedata.category(character).startswith("P") and character not in _TAG_PUNCTUATION


def _age_order(note: Memory) -> tuple[datetime, int]:
    return note.created_at, memory_seq(note.id) or 0


def _bonus(note: Memory, now: datetime) -> float:
    return recency_bonus((now - note.created_at) / timedelta(hours=1))


def _shared_words(notes: Sequence[Memory], message: str) -> dict[int, int]:
    """How many words each note shares with the message, by position; only those that share one."""
    wanted = keywords(message)
    if not wanted:
        return {}
    counts = {position: len(keywords(note.text) & wanted) for position, note in enumerate(notes)}
    return {position: count for position, count in counts.items() if count}


def _word_scores(notes: Sequence[Memory], message: str, now: datetime) -> dict[int, float]:
    shared = _shared_words(notes, message)
    return {position: count + _bonus(notes[position], now) for position, count in shared.items()}


def _hybrid_scores(
    notes: Sequence[Memory], message: str, now: datetime, meaning: Mapping[str, float]
) -> dict[int, float]:
    words = {position: float(count) for position, count in _shared_words(notes, message).items()}
    cosines = {position: meaning.get(note.id, 0.0) for position, note in enumerate(notes)}
    near = {position: cosine for position, cosine in cosines.items() if position in words or cosine >= MEANING_FLOOR}
    similarity = ranking.hybrid(words, near, words_share=WORDS_SHARE)
    return {position: score + RECENCY_SHARE * _bonus(notes[position], now) for position, score in similarity.items()}


def _first(notes: Iterable[Memory], count: int) -> list[Memory]:
    clear: list[Memory] = []
    doubtful: list[Memory] = []
    for note in notes:
        if len(clear) == count:
            break
        (doubtful if is_suspicious(note) else clear).append(note)
    return [*clear, *doubtful][:count]


def _fitting(notes: Iterable[Memory], *, max_chars: int, max_count: int) -> list[Memory]:
    taken: list[Memory] = []
    doubtful: list[Memory] = []
    left = max_chars

    def take(note: Memory) -> None:
        nonlocal left
        if len(taken) < max_count and len(note.text) <= left:
            taken.append(note)
            left -= len(note.text)

    for note in notes:
        if len(taken) >= max_count:
            break
        if is_suspicious(note):
            doubtful.append(note)
        else:
            take(note)
    for note in doubtful:
        take(note)
    return taken
