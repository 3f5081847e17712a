"""Digest of a conversation without a model: its most informative sentences in their original order.

References, decisions, numbers and names count most because they are hard to reconstruct; small talk is dropped first.
A digest can be extended by later turns the same way, so it never exceeds its limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from wellkept.details.rules_keys import REFERENCE, safe_cut

MAX_CHARS = 4_000
MAX_SENTENCE_CHARS = 300
CUT = "…"

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\s*\n+\s*")
_DECISION = re.compile(
    r"\b(?:decid|agree|approv|reject|refus|choos|chose|promis|prefer|remember|deadline|must|never|always|will|need|want|"
    r"because|fail|error|fix|deploy|deliver|pay|paid|cost|budget|sign|cancel|plan|name|call|live|birthday|allerg)\w*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_NAME = re.compile(r"(?<=[^\s.!?…:])\s+[A-ZÀ-ÖØ-Þ][\w'’-]+")
_LINE = re.compile(r"- (\w+): ")

REFERENCE_WEIGHT, DECISION_WEIGHT, NUMBER_WEIGHT, NAME_WEIGHT, FIRST_WEIGHT, USER_WEIGHT = 10.0, 2.0, 1.5, 1.0, 0.5, 0.5
"""Weights of a sentence that holds a reference, a word of decision, a number or a name, starts a turn, or is a user's.

A reference outweighs all others together, because nothing else leads to what is stored behind it.
"""


def digest(turns: Iterable[tuple[str, str]], *, before: str = "", max_chars: int = MAX_CHARS) -> str:
    """Pick the most informative sentences of `turns` (role and content), after those of the digest `before` them.

    >>> print(digest([("user", "Hi! We ship on May 3rd."), ("assistant", "Noted.")], max_chars=30))
    - user: We ship on May 3rd.
    """
    lines = [(_weight(line), line) for line in before.splitlines() if line.strip()]
    for role, content in turns:
        lines += _weigh_sentences(role, content)
    chosen = _choose_lines(lines, max_chars)
    return "\n".join(line for place, (_, line) in enumerate(lines) if place in chosen)


def clip_middle(text: str, max_chars: int) -> str:
    """Cut out the middle of a long text; its beginning and end are the most informative.

    >>> clip_middle("The build failed after a long while: disk full", 24)
    'The build fail … sk full'
    """
    if len(text) <= max_chars:
        return text
    mark = f" {CUT} "
    room = max(max_chars - len(mark), 0)
    # The beginning gets two thirds, the end one.
    tail = room // 3
    head, rest = safe_cut(text, room - tail), safe_cut(text, len(text) - tail, is_end=False)
    return text[:head] + mark + text[rest:]


def cut_at_sentence(text: str, max_chars: int) -> str:
    """Cut a long text after the last sentence that fits, or inside the first one if that alone is too long.

    >>> cut_at_sentence("It rained. We stayed at home. Nobody called.", 30)
    'It rained. We stayed at home.'
    """
    if len(text) <= max_chars:
        return text
    ends = [found.start() for found in _SENTENCE_END.finditer(text, 0, max_chars + 1)]
    whole = [end for end in ends if 0 < safe_cut(text, end) == end <= max_chars]
    if whole:
        return text[: whole[-1]]
    return text[: safe_cut(text, max(0, max_chars - len(CUT)))].rstrip() + CUT


def _weigh_sentences(role: str, content: str) -> list[tuple[float, str]]:
    sentences = [part.strip() for part in _SENTENCE_END.split(content) if part.strip()]
    found = []
    for place, sentence in enumerate(sentences):
        line = f"- {role}: {_shorten(sentence)}"
        found.append((_weight(line) + (FIRST_WEIGHT if place == 0 else 0.0), line))
    return found


def _shorten(sentence: str) -> str:
    """Shorten a sentence to `MAX_SENTENCE_CHARS` without cutting a reference in half."""
    one_line = " ".join(sentence.split())
    if len(one_line) <= MAX_SENTENCE_CHARS:
        return one_line
    return one_line[: safe_cut(one_line, MAX_SENTENCE_CHARS)].rstrip() + CUT


def _weight(line: str) -> float:
    sentence = _LINE.sub("", line, count=1)
    return (
        REFERENCE_WEIGHT * bool(REFERENCE.search(sentence))
        + DECISION_WEIGHT * bool(_DECISION.search(sentence))
        + NUMBER_WEIGHT * bool(_NUMBER.search(sentence))
        + NAME_WEIGHT * bool(_NAME.search(sentence))
        + USER_WEIGHT * line.startswith("- user: ")
    )


def _choose_lines(lines: Sequence[tuple[float, str]], max_chars: int) -> set[int]:
    """Return the positions of the lines that fit, highest weight first; ties go to the newer line."""
    chosen: set[int] = set()
    room = max_chars
    for place in sorted(range(len(lines)), key=lambda place: (-lines[place][0], -place)):
        length = len(lines[place][1]) + 1
        if length <= room:
            chosen.add(place)
            room -= length
    return chosen
