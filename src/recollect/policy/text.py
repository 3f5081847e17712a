"""What text may be stored, and how words are compared.

Words are cut, folded and stemmed here, in Python, once for every engine: the two databases only ever see the finished
terms, so the same search finds the same memories on both.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

import Stemmer

from recollect.errors import Invalid

MAX_TERM_CHARS = 64
"""A longer run of letters is data, not a word; its first characters still find it."""

STOPWORDS = frozenset(
    """a an the and or but if then so than that this these those there here i me my mine we us our ours you your
    yours he him his she her hers it its they them their theirs who whom whose which what when where why how is
    am are was were be been being do does did doing have has had having will would shall should can could may
    might must of in on at by for with about from to into as not no nor too very just s t d ll m o re ve""".split()
)
"""Words that are in nearly every sentence and so tell nothing about which one is meant."""

CONTRACTED = frozenset(["s", "t", "d", "ll", "m", "re", "ve"])
"""What may follow an apostrophe without being part of the word."""

# Runs of a script written without spaces are cut into overlapping pairs of characters; all else is cut at word borders.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f"
_PIECE = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:['’][^\W_]+)?")
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSPACED_START = re.compile(rf"[{_UNSPACED}]")


def checked_text(text: str, *, what: str = "text") -> str:
    """`text` if every engine can store it unchanged.

    Raises: Invalid.
    """
    if not isinstance(text, str):
        raise Invalid(f"The {what} must be a string, not {type(text).__name__}.")
    if "\x00" in text:
        raise Invalid(f"The {what} holds a NUL character (U+0000), which cannot be stored; remove it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"The {what} holds half a surrogate pair at position {error.start}; send whole ones.") from None
    return text


def has_half_pair(text: str) -> bool:
    """Return True if `text` holds half a surrogate pair, which no encoding can write."""
    return not text.isascii() and _SURROGATES.search(text) is not None


def without_half_pairs(text: str) -> str:
    """`text` with U+FFFD in the place of each half of a surrogate pair, which is no character and has no encoding."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def fold(text: str) -> str:
    """`text` without differences of case or of composed and decomposed characters.

    >>> fold("STRASSE") == fold("Straße")
    True
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def like_literal(needle: str) -> str:
    """`needle` for a LIKE pattern with ESCAPE '!': wildcards stand for themselves.

    >>> like_literal("100%_sure!")
    '100!%!_sure!!'
    """
    return needle.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def content_hash(text: str) -> str:
    """The same for texts that differ only in case, white space and Unicode form."""
    return hashlib.sha256(" ".join(fold(text).split()).encode()).hexdigest()[:32]


def terms(text: str) -> list[str]:
    """The words of `text` as they are indexed: folded, stemmed, without stopwords, in order, repeats kept.

    >>> terms("She prefers TABS over_spaces, don't you think?")
    ['prefer', 'tab', 'over', 'space', 'think']
    >>> terms("東京都に住む")
    ['東京', '京都', '都に', 'に住', '住む']
    """
    found: list[str] = []
    for piece in _PIECE.findall(fold(text)):
        if _UNSPACED_START.match(piece):
            found += (piece[i : i + 2] for i in range(max(1, len(piece) - 1)))
        else:
            found += _terms_of(piece[:MAX_TERM_CHARS])
    return found


@lru_cache(maxsize=65536)  # a store's vocabulary is small next to its text
def _terms_of(word: str) -> tuple[str, ...]:
    """The terms of one run of letters; none for a stopword. The cache keeps it, so it has to be short."""
    head, mark, tail = word.replace("’", "'").partition("'")
    if mark and tail not in CONTRACTED:  # a name such as O'Neil
        return (_stem(head + tail),)
    if head in STOPWORDS or (tail == "t" and head.endswith("n")):  # "isn't", "don't"
        return ()
    return (_stem(head),)


def _stem(word: str) -> str:
    # A stemmer keeps the word it works on in itself. A new one costs 0.4 µs, and no thread can meet another's word.
    stem: str = Stemmer.Stemmer("english", 0).stemWord(word)
    return stem
