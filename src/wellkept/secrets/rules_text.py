"""Alternative readings of a text that map each part back to its position in the original.

A credential may be disguised so that people still see it but a pattern does not: with invisible characters, letters of
another alphabet, in pieces, or encoded. Every such disguise is undone here once for all rules.
"""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

_TABLES: Mapping[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text("utf-8"))
REMOVED = "\ufffc"
"""Replacement for a removed credential; no pattern reaches across it."""

_PART = re.compile(r"%([A-Z_0-9]+)%")


def fill_in(text: str | Sequence[str], parts: Mapping[str, str]) -> str:
    """Return a pattern of a TOML file, which may be in pieces, with its `%PARTS%`."""
    return _PART.sub(lambda part: parts[part[1]], "".join(text))


class Patterns:
    """The patterns of one table of `patterns.toml`, compiled on first use."""

    def __init__(self, table: str, **words: str) -> None:
        self._table = _TABLES[table]
        self._parts = {name: "".join(part) for name, part in _TABLES["parts"].items()} | words

    def __getattr__(self, name: str) -> re.Pattern[str]:
        if name not in self._table:
            raise AttributeError(name)
        pattern = self.__dict__[name] = re.compile(fill_in(self._table[name], self._parts))
        return pattern


_LOOKALIKES = _TABLES["lookalikes"]
# Stands for "é" and "è" as a word, "is", which without its accent would be "e", "and".
_VERB = "\ue000"
_INVISIBLE = "\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5"
_P = Patterns("text")

CHARS_BEFORE, CHARS_AFTER = 160, 80
"""Context kept around a rewritten part, for the words that describe it."""

MIN_SPELLED_CHARS = 6
"""Minimum length of a spelled-out word; fewer single characters (`a b c`) are a list."""

_SPELLED = re.compile(
    rf"(?<![^\s=(\"'`:\[/])[!-~](?:[ \t\n.\-_*|]{{1,2}}[!-~]){{{MIN_SPELLED_CHARS - 1},2000}}(?![^\s)\"'`.,\]!;])"
)
SPELLED_HINT = rf"(?:^|[\s=(\"'`:\[/])[!-~](?:[ \t\n.\-_*|]{{1,2}}[!-~]){{{MIN_SPELLED_CHARS - 1}}}"
"""Necessary condition of a spelled-out word, for an engine without lookbehind."""

_ESCAPES = (
    r"(?:%[0-9A-Fa-f]{2}[\w.~-]{0,64})+|(?:\\x[0-9A-Fa-f]{2}|\\u00[0-9A-Fa-f]{2})+|(?:&#(?:\d{2,3}|x[0-9A-Fa-f]{2});)+"
)
_PAIRS = r"(?<![0-9A-Za-z])(?:(?:0x)?[0-9A-Fa-f]{2}[ :,-]{1,2}){5,}(?:0x)?[0-9A-Fa-f]{2}(?![0-9A-Fa-f])"
_RUNS = r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{8,}(?:(?<=[A-Za-z0-9+/_-]{40})\r?\n[A-Za-z0-9+/_-]{4,}){0,400}={0,6}"
_ENCODED = {
    (has_escapes, has_pairs): re.compile("|".join([_ESCAPES] * has_escapes + [_PAIRS] * has_pairs + [_RUNS]))
    for has_escapes in (False, True)
    for has_pairs in (False, True)
}
_SOME_PAIRS_SOURCE = r"[0-9A-Fa-f]{2}[ :,-]{1,2}(?:0x)?[0-9A-Fa-f]{2}[ :,-]{1,2}(?:0x)?[0-9A-Fa-f]{2}[ :,-]"
_SOME_PAIRS = re.compile(_SOME_PAIRS_SOURCE)
KEY_HINT = r"[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]|%[0-9A-F]|&#|[0-9]{12}"
_KEY_HINT = re.compile(KEY_HINT)
_EIGHT = [
    rf"[A-Za-z0-9+/_-]{{{before}}}(?:[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z])[A-Za-z0-9+/_-]{{{6 - before}}}"
    for before in range(7)
]
ENCODED_HINT = "|".join([*_EIGHT, "[0-9]{12}", "%[0-9A-Fa-f]{2}", r"\\[xu]", "&#", _SOME_PAIRS_SOURCE])
"""Necessary condition of an encoded run: eight characters of it that are no word, escapes, or pairs of hex digits."""


MAX_KEPT_CHARS = 20_000
"""Maximum number of cached characters; all of Unicode would take 200 MB for the life of the process."""


class _Fold(dict[int, str]):
    """Cached table for `str.translate` from each character to what it looks like."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code))
        kept = "".join(" " if unicodedata.category(c) == "Zs" else c for c in plain if not _is_invisible(c))
        look = "".join(self.get(ord(c), c) for c in kept)
        if len(self) < MAX_KEPT_CHARS:
            self[code] = look
        return look


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Me", "Cf") or character in _INVISIBLE


def _fold_table() -> _Fold:
    table = _Fold({code: chr(code) for code in range(128)})
    for plain, lookalikes in _LOOKALIKES.items():
        table.update({ord(c): plain for c in lookalikes if ord(c) > 127})
    # Letters in circles and squares, and the regional indicators that form flags.
    for start in (0x1F150, 0x1F170, 0x1F1E6):
        table.update({start + i: chr(65 + i) for i in range(26)})
    table[ord(_VERB)] = "e'"
    # Tag characters: invisible copies of ASCII.
    table.update({0xE0000 + code: chr(code) for code in range(0x20, 0x7F)})
    return table


_FOLD = _fold_table()


class TextView:
    """One reading of a text. `span` maps a range of it to the original."""

    def __init__(self, text: str, span: Callable[[int, int], tuple[int, int]]) -> None:
        self.text = text
        lower = text.lower()
        # Both texts must have the same length so that positions are interchangeable.
        self.lower = lower if len(lower) == len(text) else text
        self.span = span

    @cached_property
    def marks(self) -> list[int]:
        """Positions of characters that occur in values but not in words, in order."""
        return [mark.start() for mark in _P.value_mark.finditer(self.text)]

    def has_marks(self, start: int, end: int) -> bool:
        """Return True if there is a mark between the two positions."""
        index = bisect_left(self.marks, start)
        return index < len(self.marks) and self.marks[index] < end


class Pieces:
    """Builder of a text from ranges of another one, either copied or replaced as a whole."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._starts: list[int] = []
        self._from: list[tuple[int, int, bool]] = []
        self._length = 0

    def add(self, text: str, start: int, end: int, *, copied: bool) -> None:
        if text:
            self._text.append(text)
            self._starts.append(self._length)
            self._from.append((start, end, copied))
            self._length += len(text)

    def view(self, parent: TextView) -> TextView:
        return TextView(
            "".join(self._text),
            lambda start, end: parent.span(self._original_range(start)[0], self._original_range(end - 1)[1]),
        )

    def _original_range(self, position: int) -> tuple[int, int]:
        index = bisect_right(self._starts, position) - 1
        start, end, copied = self._from[index]
        if not copied:
            return start, end
        offset = start + position - self._starts[index]
        return offset, offset + 1


def fold_view(text: str) -> TextView:
    """Return `text` as it looks: lookalikes in plain letters, without accents and invisible marks."""
    if text.isascii():
        return TextView(text, lambda start, end: (start, end))
    text = text.replace(" é ", f" {_VERB} ").replace(" è ", f" {_VERB} ")
    # Computed on first use, only if something is found.
    ends: list[int] = []

    def span(start: int, end: int) -> tuple[int, int]:
        if not ends:
            ends.extend(accumulate(len(_FOLD[ord(c)]) for c in text))
        return bisect_right(ends, start), bisect_right(ends, end - 1) + 1

    return TextView(text.translate(_FOLD), span)


def fold(text: str) -> str:
    """Return `text` as the patterns see it."""
    return text.translate(_FOLD).lower()


def look_up_shape(character: str) -> str:
    """Return the plain characters that one looks like; nothing if it is invisible."""
    return _FOLD[ord(character)]


Rewriting = tuple[str, int, int]
"""A text and the range of another text that it replaces."""


def rewrite_parts(parent: TextView, parts: Iterable[Sequence[Rewriting]]) -> TextView | None:
    """Return the surroundings of `parts` with each part in its new wording; None without parts."""
    text, pieces, copied_to = parent.text, Pieces(), -1
    for part in parts:
        start, end = part[0][1], part[-1][2]
        if copied_to >= 0 and start - copied_to <= CHARS_BEFORE + CHARS_AFTER:
            pieces.add(text[copied_to:start], copied_to, start, copied=True)
        else:
            _add_end(pieces, text, copied_to)
            begin = max(0, copied_to, start - CHARS_BEFORE)
            pieces.add(text[begin:start], begin, start, copied=True)
        for wording, from_start, from_end in part:
            pieces.add(wording, from_start, from_end, copied=len(wording) == from_end - from_start)
        copied_to = end
    if copied_to < 0:
        return None
    _add_end(pieces, text, copied_to)
    return pieces.view(parent)


def _add_end(pieces: Pieces, text: str, done: int) -> None:
    if done >= 0:
        end = min(len(text), done + CHARS_AFTER)
        pieces.add(text[done:end], done, end, copied=True)
        pieces.add("\n\n", end, end, copied=False)


def join_spelled(parent: TextView) -> TextView | None:
    """Join words that are spelled letter by letter; return None without any."""
    return rewrite_parts(
        parent, ([(_P.spelled_gap.sub(r"\1", run[0]), *run.span())] for run in _SPELLED.finditer(parent.text))
    )


def decode_runs(parent: TextView) -> TextView | None:
    """Replace every run that decodes to plain text; return None without any."""
    text = parent.text
    has_escapes = "%" in text or "\\" in text or "&#" in text
    encoded = _ENCODED[has_escapes, bool(_SOME_PAIRS.search(text))]
    return rewrite_parts(
        parent, ([(plain, *run.span())] for run in encoded.finditer(text) if (plain := _decode_if_encoded(run[0])))
    )


def _decode_if_encoded(run: str) -> str | None:
    plain = _decode(run) if _KEY_HINT.search(run) else None
    return plain if plain != run else None


BLOCK_CHARS = 512


def find_busy(parent: TextView) -> TextView | None:
    """Return the ranges of a text with a `KEY_HINT` that could contain part of a key.

    In prose, letters and digits are not adjacent and capitals only start words, so most of a long text is dropped.
    """
    text, pieces, done, is_empty = parent.text, Pieces(), 0, True
    if len(text) <= 4 * BLOCK_CHARS:
        return parent
    for start in range(0, len(text), BLOCK_CHARS):
        if _KEY_HINT.search(text, start, start + BLOCK_CHARS + 1):
            begin, end = max(done, start - BLOCK_CHARS), min(len(text), start + 2 * BLOCK_CHARS)
            if begin > done:
                pieces.add("\n\n", begin, begin, copied=False)
            pieces.add(text[begin:end], begin, end, copied=True)
            done, is_empty = end, False
    return None if is_empty else pieces.view(parent)


def reverse_view(parent: TextView) -> TextView:
    """Reverse the text."""
    length = len(parent.text)
    return TextView(parent.text[::-1], lambda start, end: parent.span(length - end, length - start))


_ROT13 = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm"
)


def apply_rot13(parent: TextView) -> TextView:
    """Apply ROT13 to the text."""
    return TextView(parent.text.translate(_ROT13), parent.span)


def is_plain_text_encoded(run: str) -> bool:
    """Return True if `run` is base64 or hex of readable text."""
    return _decode(run) is not None


def _decode(run: str) -> str | None:
    """Decode `run` to plain text by any known encoding; return None if it is not encoded."""
    if run[0] in "%\\&":
        return _P.escape.sub(lambda m: _character(m.groups()), run)
    if run[2:3] in (" ", ":", ",", "-") or run[4:5] in (" ", ",", ":"):
        digits = re.sub(r"0x|[ :,-]", "", run)
        return _decode_readable(bytes.fromhex(digits)) if len(digits) % 2 == 0 and _P.hex.fullmatch(digits) else None
    compact = "".join(run.split()).rstrip("=")
    if _P.hex.fullmatch(compact):
        plain = _decode_readable(bytes.fromhex(compact.removeprefix("0x")))
        if plain is not None:
            return plain
    return _from_base64(compact) or _from_base32(compact)


def _character(codes: Sequence[str | None]) -> str:
    percent, x, u, decimal, entity = codes
    if decimal:
        return chr(int(decimal))
    return chr(int(percent or x or u or entity or "20", 16))


def _from_base64(compact: str) -> str | None:
    if len(compact) % 4 == 1:
        return None
    try:
        return _decode_readable(binascii.a2b_base64(compact.translate(_URLSAFE) + "=" * (-len(compact) % 4)))
    except binascii.Error:
        return None


_URLSAFE = str.maketrans("-_", "+/")


def _from_base32(compact: str) -> str | None:
    if not _P.base32.fullmatch(compact) or len(compact) % 8 in (1, 3, 6):
        return None
    try:
        return _decode_readable(base64.b32decode(compact + "=" * (-len(compact) % 8)))
    except binascii.Error:
        return None


def _decode_readable(raw: bytes) -> str | None:
    """Decode bytes if they are readable text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    if not text.isascii():
        text = text.translate(_FOLD)
    return None if _P.not_plain.search(text) or REMOVED in text else text
