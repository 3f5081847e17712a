"""Gist of a long text without a model: its first sentence and the heads of its list items."""

from __future__ import annotations

import re

from wellkept.model import Role

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
