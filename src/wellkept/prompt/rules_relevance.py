"""Select notes for the prompt and render them.

Notes are scored by the words they share with the last user message, plus a small bonus for recent ones. The text of a
note is data: it can neither start a line of the block nor close the brackets before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from wellkept.errors import Invalid
from wellkept.language.names import memory_seq
from wellkept.language.text import fold
from wellkept.memory.rules_trust import Judge, is_suspicious, provenance
from wellkept.model import Memory, State
from wellkept.prompt.rules_escaping import escape_line
from wellkept.text_cache import cache_text

MAX_INJECT_CHARS = 2000
"""Maximum characters of notes in a prompt."""

MAX_INJECT_COUNT = 10
FALLBACK_COUNT = 5
"""Number of newest notes shown when no note shares a word with the message."""

MIN_WORD_CHARS = 3
RECENCY_SCALE = 0.1
"""Recency bonus of a note that is one hour old; a shared word counts 1."""

MIN_AGE_HOURS = 0.1
MAX_RECENCY_BONUS = 1.0

STOPWORDS = frozenset(
    """
    the and for are but not you all can has her was one our out its use how may who did get had him his let say she too
    own way about could from have into just like make many some than that them then this very when what with will would
    been each more most much must only also back being come every first here know made need over such take where which
    while work project please help want using thing file should
    """.split()
)
"""Words too common to distinguish notes."""

HEADING = "[Memories]"

_WORD = re.compile(r"[^\W_]+")
_TAG_PUNCTUATION = frozenset("-_./:#&@'+")


class InjectMode(StrEnum):
    """Ways to choose notes for a prompt."""

    RELEVANT = "relevant"
    RECENT_ONLY = "recent_only"
    OFF = "off"
    HYBRID = "hybrid"


def parse_mode(mode: str) -> InjectMode:
    """Parse an injection mode.

    Raises: Invalid.
    """
    try:
        return InjectMode(mode)
    except ValueError:
        raise Invalid(f"There is no injection mode {str(mode)[:40]!r}; choose {', '.join(InjectMode)}.") from None


# Cached because every message is compared with the same notes.
@cache_text(8192)
def keywords(text: str) -> frozenset[str]:
    """Return the words of a text that count when a note is compared with a message.

    >>> sorted(keywords("The project uses PostgreSQL 16, on port 5432"))
    ['5432', 'port', 'postgresql', 'uses']
    """
    words = _WORD.findall(fold(text))
    return frozenset(word for word in words if len(word) >= MIN_WORD_CHARS and word not in STOPWORDS)


def recency_bonus(age_hours: float) -> float:
    """Compute the bonus of a recent note, inversely proportional to its age and at most 1.

    >>> recency_bonus(0), recency_bonus(1), recency_bonus(10)
    (1.0, 0.1, 0.01)
    """
    return min(MAX_RECENCY_BONUS, RECENCY_SCALE / max(age_hours, MIN_AGE_HOURS))


def select_notes(
    notes: Sequence[Memory],
    message: str,
    *,
    mode: str,
    now: datetime,
    max_chars: int = MAX_INJECT_CHARS,
    max_count: int = MAX_INJECT_COUNT,
    judge: Judge = lambda memory: memory,
) -> list[Memory]:
    """Select the notes for a prompt, best first; with `recent_only`, or if no note matches, newest first.

    `relevant` takes notes that share a word with the message, by the number of shared words and a recency bonus.
    A note that exceeds the rest of `max_chars` is skipped; a shorter one after it may still fit.
    Notes that `judge` flags as suspicious come last, in the room that the others leave. Expired and archived notes are
    never chosen.

    Raises: Invalid.
    """
    parsed_mode = parse_mode(mode)
    if parsed_mode is InjectMode.OFF:
        return []
    live = (note for note in notes if note.state(now) is State.LIVE)
    newest = sorted(live, key=lambda note: (note.created_at, memory_seq(note.id) or 0), reverse=True)
    if parsed_mode is InjectMode.RECENT_ONLY:
        return _take_fitting(map(judge, newest), max_chars=max_chars, max_count=max_count)
    scores = _word_scores(newest, message, now)
    if not scores:
        first = sorted(map(judge, newest), key=is_suspicious)[:FALLBACK_COUNT]
        return _take_fitting(first, max_chars=max_chars, max_count=max_count)
    # The sort is stable, so the newer of two equal notes stays first.
    best = sorted(scores, key=lambda position: -scores[position])
    return _take_fitting((judge(newest[position]) for position in best), max_chars=max_chars, max_count=max_count)


def choose_notes(
    notes: Sequence[Memory],
    rank: Callable[[], Sequence[str]],
    *,
    now: datetime,
    max_chars: int,
    max_count: int,
    judge: Judge = lambda memory: memory,
) -> list[Memory]:
    """Select the notes for a prompt in the mode `hybrid`.

    If all notes fit into `max_chars`, they are all chosen, oldest first: an order that a new note only adds to, so that
    prompt caches stay warm. If not, `rank` is called for their ids, best first; the best `max_count` that fit are
    chosen, and the newest fill what is left. Notes that `judge` flags as suspicious come last.
    """
    live = [judge(note) for note in notes if note.state(now) is State.LIVE]
    live.sort(key=lambda note: (is_suspicious(note), note.created_at, memory_seq(note.id) or 0))
    if not max_count:
        return []
    if sum(len(note.text) for note in live) <= max_chars:
        return live
    by_id = {note.id: note for note in live}
    best = _take_fitting((by_id[id] for id in rank() if id in by_id), max_chars=max_chars, max_count=max_count)
    chosen = {note.id for note in best}
    left = max_chars - sum(len(note.text) for note in best)
    others = [note for note in reversed(live) if note.id not in chosen]
    return sorted([*best, *_take_fitting(others, max_chars=left, max_count=len(others))], key=is_suspicious)


def render_notes(notes: Sequence[Memory]) -> str | None:
    """Render notes one per line, each after its id and first tag; return None without notes."""
    if not notes:
        return None
    return "\n".join([HEADING, *(_line(note) for note in notes)])


def _line(note: Memory) -> str:
    label = ", ".join(filter(None, [_label(note.id), _label(note.tags[0]) if note.tags else ""]))
    return f"- ({label}) {provenance(note)}{escape_line(note.text)}"


def _label(text: str) -> str:
    """Strip an id or tag of characters that could end it early: brackets, commas, quotes.

    >>> _label("infra) fake (m-9, x")
    'infra fake m-9 x'
    """
    line = escape_line(text)
    separators = {each for each in line if unicodedata.category(each)[0] == "P"} - _TAG_PUNCTUATION
    return " ".join("".join(" " if each in separators else each for each in line).split())


def _word_scores(notes: Sequence[Memory], message: str, now: datetime) -> dict[int, float]:
    """Score the notes by the words each shares with the message, by position; notes that share none are omitted."""
    words, scores = keywords(message), dict[int, float]()
    for position, note in enumerate(notes):
        if shared := len(keywords(note.text) & words):
            scores[position] = shared + recency_bonus((now - note.created_at) / timedelta(hours=1))
    return scores


def _take_fitting(notes: Iterable[Memory], *, max_chars: int, max_count: int) -> list[Memory]:
    """Return the notes that fit, suspicious ones last."""
    taken, left = list[Memory](), max_chars
    for note in sorted(notes, key=is_suspicious):
        if len(taken) < max_count and len(note.text) <= left:
            taken.append(note)
            left -= len(note.text)
    return taken
