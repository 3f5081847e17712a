"""Other readings of a text, each of which can say where in the original a part of it came from.

A credential may be written so that people still see it and a pattern does not: with characters of no width inside,
in letters of another alphabet, in pieces, or encoded. Every such trick is undone once, here, for all rules.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate

from recollect.policy.secrets.shapes import REMOVED

_LOOKALIKES = {
    "A": "АΑᴀꓮᎪ𐊠", "B": "ВΒʙꓐᏴ", "C": "СϹᴄꓚᏟ", "D": "ᴅꓓᎠ", "E": "ЕΕᴇꓰᎬ", "F": "Ϝꓝ", "G": "ɢԌꓖᏀ", "H": "НΗʜꓧᎻ",
    "I": "ІΙӀꓲ", "J": "ЈͿᴊꓙᎫ", "K": "КΚᴋꓗᏦ", "L": "ʟꓡᏞ", "M": "МΜᴍꓟᎷ", "N": "Νɴꓠ", "O": "ОΟՕᴏꓳ", "P": "РΡᴘꓑᏢ",
    "Q": "Ԛ", "R": "ʀꓣᏒ", "S": "ЅՏꜱꓢᏚ", "T": "ТΤᴛꓔᎢ", "U": "ՍᴜꓴႮ", "V": "ѴᴠꓦᏙ", "W": "ԜᴡꓪᎳ", "X": "ХΧꓫ",
    "Y": "ҮΥʏꓬУ", "Z": "ΖᴢꓜᏃ", "a": "аɑα", "b": "ЬƄ", "c": "сϲ", "d": "ԁ", "e": "еҽ", "f": "ẝք", "g": "ɡց", "h": "һհ",
    "i": "іıɩι", "j": "јϳ", "k": "кκ", "l": "ӏ|ǀ", "m": "м", "n": "ոп", "o": "оοσօ", "p": "рρ", "q": "ԛզ", "r": "гᴦ",
    "s": "ѕ", "t": "тτ", "u": "υս", "v": "νѵ", "w": "ԝωա", "x": "хχ", "y": "уγү", "z": "ᴢ", "3": "ЗƷ", "4": "Ꮞ",
    "-": "‐‑‒–—―−﹘⁃➖ー一", "_": "＿‗", "'": "‘’‚‛′ʼ", '"': "“”„‟″«»", ":": "：ː∶։", "=": "＝꞊", ".": "。․", "/": "⁄∕",
    "->": "→➜➔⟶⇒", "\n": "\u2028\u2029\u0085",
}  # fmt: skip
_INVISIBLE = "\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5"

CHARS_BEFORE, CHARS_BEHIND = 160, 80
"""What is kept around a part that reads differently: enough for what is said about it."""

MIN_SPELLED_CHARS = 6
"""Fewer single characters in a row (`a b c`) are a list, not a word spelled out."""

_SPELLED = re.compile(
    rf"(?<![^\s=(\"'`:\[/])[!-~](?:[ \t\n.\-_*|]{{1,2}}[!-~]){{{MIN_SPELLED_CHARS - 1},2000}}(?![^\s)\"'`.,\]!;])"
)
_SPELLED_GAP = re.compile(r"([!-~])[ \t\n.\-_*|]{1,2}(?=[!-~])")
_WORD = re.compile(r"[a-z0-9]{1,24}")  # a longer run is data: cut up, its many alike pieces become few
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
_SOME_PAIRS = re.compile(r"[0-9A-Fa-f]{2}[ :,-]{1,2}(?:0x)?[0-9A-Fa-f]{2}[ :,-]{1,2}(?:0x)?[0-9A-Fa-f]{2}[ :,-]")
_VALUE_MARK = re.compile(r"[0-9\"'`@#$%^&*=~+!-]|[a-z][A-Z]")
_TURN = re.compile(r"[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]|%[0-9A-F]|&#|[0-9]{12}")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})|\\x([0-9A-Fa-f]{2})|\\u00([0-9A-Fa-f]{2})|&#(\d{2,3});|&#x([0-9A-Fa-f]{2});")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]{2}){6,}|(?:0x)?(?:[0-9A-F]{2}){6,}")
_NOT_PLAIN = re.compile(r"[^\t\n\r -~]")


MAX_KEPT_CHARS = 20_000
"""One text may hold every character of Unicode; kept, they would take 200 MB for as long as the process runs."""


class _Fold(dict[int, str]):
    """What each character looks like, worked out when it is first met. A table for `str.translate`."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code))
        kept = "".join(" " if unicodedata.category(c) == "Zs" else c for c in plain if not _is_invisible(c))
        folded = "".join(self.get(ord(c), c) for c in kept)
        if len(self) < MAX_KEPT_CHARS:
            self[code] = folded
        return folded


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Me", "Cf") or character in _INVISIBLE


def _fold_table() -> _Fold:
    table = _Fold({code: chr(code) for code in range(128)})
    for plain, alike in _LOOKALIKES.items():
        table.update({ord(c): plain for c in alike if ord(c) > 127})
    for start in (0x1F150, 0x1F170, 0x1F1E6):  # letters in circles and squares, and those flags are made of
        table.update({start + i: chr(65 + i) for i in range(26)})
    table.update({0xE0000 + code: chr(code) for code in range(0x20, 0x7F)})  # tags: ASCII that is not shown
    return table


_FOLD = _fold_table()


class View:
    """One reading of a text. `span` says where a part of it stands in the original."""

    def __init__(self, text: str, span: Callable[[int, int], tuple[int, int]]) -> None:
        self.text = text
        lower = text.lower()
        self.lower = lower if len(lower) == len(text) else text  # so that places in one are places in the other
        self.span = span

    @cached_property
    def words(self) -> str:
        """Every word once, in lower case, each between blanks."""
        return f" {' '.join(set(_WORD.findall(self.lower)))} "

    @cached_property
    def marks(self) -> list[int]:
        """Where characters stand that a value has and words have not, in order."""
        return [mark.start() for mark in _VALUE_MARK.finditer(self.text)]

    def has_marks(self, start: int, end: int) -> bool:
        """Whether one of them stands between the two places."""
        index = bisect_left(self.marks, start)
        return index < len(self.marks) and self.marks[index] < end


class Pieces:
    """A text put together from pieces of another: copied ones, and ones that stand for a whole stretch of it."""

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

    def view(self, parent: View) -> View:
        return View("".join(self._text), lambda start, end: parent.span(self._at(start)[0], self._at(end - 1)[1]))

    def _at(self, position: int) -> tuple[int, int]:
        index = bisect_right(self._starts, position) - 1
        start, end, copied = self._from[index]
        if not copied:
            return start, end
        offset = start + position - self._starts[index]
        return offset, offset + 1


def folded(text: str) -> View:
    """`text` as it looks: compatibility forms and lookalikes in plain letters, accents and invisible marks gone."""
    if text.isascii():
        return View(text, lambda start, end: (start, end))
    ends: list[int] = []  # worked out when something is found

    def span(start: int, end: int) -> tuple[int, int]:
        if not ends:
            ends.extend(accumulate(len(_FOLD[ord(c)]) for c in text))
        return bisect_right(ends, start), bisect_right(ends, end - 1) + 1

    return View(text.translate(_FOLD), span)


def fold(text: str) -> str:
    """`text` as the patterns see it."""
    return text.translate(_FOLD).lower()


def look_of(character: str) -> str:
    """Return the plain characters that one looks like; nothing if it is invisible."""
    return _FOLD[ord(character)]


Part = tuple[str, int, int]
"""A text and the stretch of another text that it stands for."""


def rewritten(parent: View, parts: Iterable[Sequence[Part]]) -> View | None:
    """Only the neighbourhoods of `parts`, each of them in its new wording; None: there are none."""
    text, pieces, done = parent.text, Pieces(), -1
    for part in parts:
        start, end = part[0][1], part[-1][2]
        if done >= 0 and start - done <= CHARS_BEFORE + CHARS_BEHIND:
            pieces.add(text[done:start], done, start, copied=True)
        else:
            _add_end(pieces, text, done)
            begin = max(0, done, start - CHARS_BEFORE)
            pieces.add(text[begin:start], begin, start, copied=True)
        for wording, from_start, from_end in part:
            pieces.add(wording, from_start, from_end, copied=len(wording) == from_end - from_start)
        done = end
    if done < 0:
        return None
    _add_end(pieces, text, done)
    return pieces.view(parent)


def _add_end(pieces: Pieces, text: str, done: int) -> None:
    if done >= 0:
        end = min(len(text), done + CHARS_BEHIND)
        pieces.add(text[done:end], done, end, copied=True)
        pieces.add("\n\n", end, end, copied=False)


def spelled(parent: View) -> View | None:
    """With words that were spelled out letter by letter put together again; None: there are none."""
    return rewritten(
        parent, ([(_SPELLED_GAP.sub(r"\1", run[0]), *run.span())] for run in _SPELLED.finditer(parent.text))
    )


def decoded(parent: View) -> View | None:
    """With every run that decodes to plain text in its place; None: there are none."""
    text = parent.text
    has_escapes = "%" in text or "\\" in text or "&#" in text
    encoded = _ENCODED[has_escapes, bool(_SOME_PAIRS.search(text))]
    return rewritten(parent, ([(plain, *run.span())] for run in encoded.finditer(text) if (plain := _plain(run[0]))))


def _plain(run: str) -> str | None:
    plain = _decode(run) if _TURN.search(run) else None
    return plain if plain != run else None


BLOCK_CHARS = 512


def busy(parent: View) -> View | None:
    """The stretches with anything in them that could be part of a key; None: there are none.

    In prose, letters and digits do not meet and capitals stand at the start of words, so most of a long text drops out.
    """
    text, pieces, done, is_empty = parent.text, Pieces(), 0, True
    if len(text) <= 4 * BLOCK_CHARS:
        return parent if _TURN.search(text) else None
    for start in range(0, len(text), BLOCK_CHARS):
        if _TURN.search(text, start, start + BLOCK_CHARS + 1):
            begin, end = max(done, start - BLOCK_CHARS), min(len(text), start + 2 * BLOCK_CHARS)
            if begin > done:
                pieces.add("\n\n", begin, begin, copied=False)
            pieces.add(text[begin:end], begin, end, copied=True)
            done, is_empty = end, False
    return None if is_empty else pieces.view(parent)


def backwards(parent: View) -> View:
    """Read from the end."""
    length = len(parent.text)
    return View(parent.text[::-1], lambda start, end: parent.span(length - end, length - start))


_ROT13 = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm"
)


def rotated(parent: View) -> View:
    """With every letter moved by thirteen."""
    return View(parent.text.translate(_ROT13), parent.span)


def is_plain_text_encoded(run: str) -> bool:
    """Whether `run` is base64 or hex of something readable."""
    return _decode(run) is not None


def _decode(run: str) -> str | None:
    """`run` in plain text, whichever way it was encoded; None: it is not."""
    if run[0] in "%\\&":
        return _ESCAPE.sub(lambda m: _character(m.groups()), run)
    if run[2:3] in (" ", ":", ",", "-") or run[4:5] in (" ", ",", ":"):
        digits = re.sub(r"0x|[ :,-]", "", run)
        return _readable(bytes.fromhex(digits)) if len(digits) % 2 == 0 and _HEX.fullmatch(digits) else None
    compact = "".join(run.split()).rstrip("=")
    if _HEX.fullmatch(compact):
        plain = _readable(bytes.fromhex(compact.removeprefix("0x")))
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
        return _readable(binascii.a2b_base64(compact.translate(_URLSAFE) + "=" * (-len(compact) % 4)))
    except binascii.Error:
        return None


_URLSAFE = str.maketrans("-_", "+/")
_BASE32 = re.compile(r"[A-Z2-7]{16,}")


def _from_base32(compact: str) -> str | None:
    if not _BASE32.fullmatch(compact) or len(compact) % 8 in (1, 3, 6):
        return None
    try:
        return _readable(base64.b32decode(compact + "=" * (-len(compact) % 8)))
    except binascii.Error:
        return None


def _readable(raw: bytes) -> str | None:
    """`raw` as text if it is text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    if not text.isascii():
        text = text.translate(_FOLD)
    return None if _NOT_PLAIN.search(text) or REMOVED in text else text
