"""Validate text for storage, and split it into search terms.

Words are split, folded and stemmed here once for every engine. The databases only see finished terms, so the same
search finds the same memories on both.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import Stemmer

from recollect.errors import Invalid

MAX_TERM_CHARS = 64
"""Maximum length of a term; longer runs of letters are data and are found by their first characters."""

STOPWORDS = frozenset(
    """a an the and or but if then so than that this these those there here i me my mine we us our ours you your
    yours he him his she her hers it its they them their theirs who whom whose which what when where why how is
    am are was were be been being do does did doing have has had having will would shall should can could may
    might must of in on at by for with about from to into as not no nor too very just s t d ll m o re ve""".split()
)
"""Words that occur in nearly every sentence and do not help a search."""

CONTRACTIONS = frozenset(["s", "t", "d", "ll", "m", "re", "ve"])
"""Contractions that may follow an apostrophe and are not part of the word."""

# Scripts written without spaces are split into overlapping pairs of characters, all others at word boundaries.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f"
_PIECE = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:['’][^\W_]+)?")
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSPACED_START = re.compile(rf"[{_UNSPACED}]")


def check_text(text: str, *, what: str = "text") -> str:
    """Return `text` if every engine can store it unchanged. Raises: Invalid."""
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


def replace_half_pairs(text: str) -> str:
    """Replace each half of a surrogate pair, which has no encoding, by U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def fold(text: str) -> str:
    """Remove differences of case and of composed and decomposed characters.

    >>> fold("STRASSE") == fold("Straße")
    True
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def like_literal(needle: str) -> str:
    """Escape `needle` for a LIKE pattern with ESCAPE '!', so that wildcards are literal.

    >>> like_literal("100%_sure!")
    '100!%!_sure!!'
    """
    return needle.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def is_question(text: str) -> bool:
    """Return True if `text` ends with a question mark, whatever closes it.

    >>> is_question("What colour? "), is_question('He asked "why?"'), is_question("Purple.")
    (True, True, False)
    """
    return text.rstrip(" \t\n)]\"'”’»").endswith(("?", "？", "؟"))


def content_hash(text: str) -> str:
    """Return a hash that ignores differences in case, white space and Unicode form."""
    return hashlib.sha256(" ".join(fold(text).split()).encode()).hexdigest()[:32]


def terms(text: str) -> list[str]:
    """Return the search terms of `text`: folded, stemmed, without stopwords, in order and with repeats.

    >>> terms("She prefers TABS over_spaces, don't you think?")
    ['prefer', 'tab', 'over', 'space', 'think']
    >>> terms("東京都に住む")
    ['東京', '京都', '都に', 'に住', '住む']
    """
    return join_terms(split_words(text))


def split_words(text: str) -> list[str]:
    """Return the folded words of `text`, and each run of characters written without spaces as one."""
    return _PIECE.findall(fold(text))


def join_terms(words: Iterable[str]) -> list[str]:
    """Return the search terms of words that `split_words` returned."""
    found: list[str] = []
    for piece in words:
        if _UNSPACED_START.match(piece):
            found += (piece[i : i + 2] for i in range(max(1, len(piece) - 1)))
        else:
            found += _split_terms(piece[:MAX_TERM_CHARS])
    return found


# Cached because a store's vocabulary is small compared with its text. Words must be short: the cache keeps them.
@lru_cache(maxsize=65536)
def _split_terms(word: str) -> tuple[str, ...]:
    """Return the terms of one run of letters; empty for a stopword."""
    head, mark, tail = word.replace("’", "'").partition("'")
    # A name such as O'Neil.
    if mark and tail not in CONTRACTIONS:
        return (_stem(head + tail),)
    # The second condition matches "isn't" and "don't".
    if head in STOPWORDS or (tail == "t" and head.endswith("n")):
        return ()
    return (_stem(head),)


def _stem(word: str) -> str:
    # A stemmer holds the word it works on, so it is not thread-safe. A new one costs only 0.4 µs.
    stem: str = Stemmer.Stemmer("english", 0).stemWord(word)
    return stem
