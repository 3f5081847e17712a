"""Splits text into the word pieces of BERT's uncased vocabulary, as the tokenizer of all-MiniLM-L6-v2 does."""

import unicodedata
from collections.abc import Mapping, Sequence

MAX_WORD_CHARS = 100
"""A longer word is unknown: it is a hash or an encoded blob."""

MAX_READ_CHARS = 25_000
"""Characters of a text that are read. Its first pieces are in fewer, unless it has no words."""

MAX_CACHED_WORDS = 50_000
MAX_CACHED_CHARS = 20_000

UNKNOWN, FIRST, LAST = "[UNK]", "[CLS]", "[SEP]"

# Scripts written without spaces: each character is a separate word.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Fold(dict[int, str]):
    """Translation table for `str.translate`: lower case, no accents, a space around each punctuation mark.

    Folding one character at a time keeps the cost linear; normalising a whole text is quadratic in a run of accents.
    """

    def __missing__(self, code: int) -> str:
        folded = _fold_char(chr(code))
        if len(self) < MAX_CACHED_CHARS:
            self[code] = folded
        return folded


def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if char in "\t\n\r" or category[0] == "Z":
        return " "
    # A character that Unicode does not know yet ("Cn") makes its word unknown, like that of a script without pieces.
    if category in ("Cc", "Cf", "Co", "Cs") or char == "\N{REPLACEMENT CHARACTER}":
        return ""
    letters = (each for each in unicodedata.normalize("NFD", char) if unicodedata.category(each) != "Mn")
    folded = "".join(f" {each} " if _is_punctuation(each) else each for each in "".join(letters).lower())
    if any(first <= ord(char) <= last for first, last in _IDEOGRAPHS):
        return f" {folded} "
    return folded


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] == "P" or (char.isascii() and not char.isalnum() and char.isprintable())


class WordPieces:
    """Splits a text into numbers of pieces, longest match first. Safe to share between threads."""

    def __init__(self, pieces: Mapping[str, int], *, limit: int) -> None:
        """`pieces` maps each piece to its number; "##" marks one that continues a word. `limit` is per text."""
        self._ids = pieces
        self._limit = limit - 2
        self._longest = max(map(len, pieces), default=0)
        self._fold = _Fold()
        self._words: dict[str, Sequence[int]] = {}

    def __call__(self, text: str) -> list[int]:
        """Return the numbers of the text's first pieces, between those that mark the first and the last."""
        found: list[int] = []
        for word in text[:MAX_READ_CHARS].translate(self._fold).split():
            found += self._words.get(word) or self._split(word)
            if len(found) >= self._limit:
                break
        return [self._ids[FIRST], *found[: self._limit], self._ids[LAST]]

    def _split(self, word: str) -> Sequence[int]:
        pieces = self._match(word) if len(word) <= MAX_WORD_CHARS else []
        found = pieces or [self._ids[UNKNOWN]]
        if len(self._words) >= MAX_CACHED_WORDS:
            # Rare enough that clearing is cheaper than tracking ages on every lookup.
            self._words.clear()
        self._words[word] = found
        return found

    def _match(self, word: str) -> list[int]:
        """Return the pieces of a word; none if a part of it is no piece."""
        found: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    found.append(number)
                    start, prefix = end, "##"
                    break
            else:
                return []
        return found
