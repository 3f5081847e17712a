"""Find keys with a known prefix that were split by line breaks, spaces, dashes, dots or quotes.

All separators are dropped, known prefixes are searched in the rest, and the pieces after a prefix are judged together.
Prose after a prefix differs from a key because its pieces are words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from itertools import groupby

from wellkept.secrets.rules import RULES
from wellkept.secrets.rules_shapes import MAX_KEY_CHARS, SecretRule, Split
from wellkept.secrets.rules_text import Rewriting, TextView, rewrite_parts

MAX_WALKS = 4_000
"""Maximum number of prefixes examined; the longest memory cannot hold more."""

MIN_PREFIX_CHARS = 4
"""Minimum length of a prefix without dashes; shorter ones are part of too many words."""

MAX_WORD_SHARE = 0.5
"""Maximum share of a key's characters in pieces that look like words."""

MAX_GAP = 5
"""Maximum number of characters between two pieces of one key."""

MAX_HEAD = 60
"""Maximum length of a word such as `TOKEN=ab12` that ends with the first piece."""

MIN_EQUAL_PIECES = 4
"""Minimum number of pieces; fewer words of the same length in a row are coincidence."""

_SIZES = range(2, 13)
_TOKENS = re.compile(r"[^\s\"'+,]+")
_FINE_TOKENS = re.compile(r"[^\s\"'+,.|-]+")
_FOUR_EQUAL = re.compile(rb"([\x02-\x0c])\1{3}")
_GAPS = bytes.maketrans(b"\"'+,\x1c\x1d\x1e\x1f", b" " * 8)
_FINE_GAPS = bytes.maketrans(b"\"'+,.|-\x1c\x1d\x1e\x1f", b" " * 11)
_LINE_END = re.compile(r"(?<=[\w/+=.:@%&-]{3})-?\r?\n(?=[\w/+=.-]{3})")
_CONCATENATION = re.compile(r"(?<=\w)([\"'])\s?\+\s?\1(?=\w)")
_CLASS_CHANGE = re.compile(r"[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]")
_SEPARATORS = " \t\r\n\v\f-.,;|/\\+\"'`*~()[]:><=&^#"
_DROP = _SEPARATORS.encode()
_DROPPED = frozenset(_SEPARATORS)
_SPACED_SK = re.compile(r"(?i)s ?k ?-")
_PIECE = re.compile(r"[A-Za-z0-9_]+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]{2,}|[A-Za-z]")
_LOWER_WORD = re.compile(r"[A-Z]?[a-z]+")


PREFIXES = tuple(
    (rule, rule.split, prefix)
    for rule in RULES
    if rule.split
    for prefix in rule.split.prefixes
    if len(prefix) >= MIN_PREFIX_CHARS or "_" in prefix or prefix == "sk"
)


def split_keys(view: TextView, find_prefixes: Callable[[str], Collection[str]]) -> Iterator[tuple[str, int, int]]:
    """Yield the rule and range, in `view`, of every split key. `find_prefixes` returns those that occur in a text."""
    # Three times as quick as the same on strings; every dropped character is one byte.
    squeezed = view.text.encode(errors="surrogatepass").translate(None, _DROP).decode(errors="surrogatepass")
    if len(squeezed) == len(view.text):
        return
    lower, offsets, walks = squeezed.lower(), list[int](), 0
    found = find_prefixes(squeezed)
    for rule, split, prefix in PREFIXES if found else ():
        if prefix not in found or (prefix == "sk" and not _SPACED_SK.search(view.text)):
            continue
        at = lower.find(prefix)
        while at >= 0 and walks < MAX_WALKS:
            walks += 1
            if not offsets:
                offsets = [i for i, c in enumerate(view.text) if c not in _DROPPED]
            end = _key_end(view.text, squeezed, offsets, at, len(prefix), rule, split)
            if end:
                yield rule.name, offsets[at], end
            at = lower.find(prefix, at + len(prefix))


def _key_end(
    text: str, squeezed: str, offsets: list[int], at: int, prefix_length: int, rule: SecretRule, split: Split
) -> int:
    """Return the end of the key whose prefix is at `at`, or 0 if no key follows."""
    start, body_at = offsets[at], at + prefix_length
    if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return 0
    if prefix_length == 2 and not _SPACED_SK.match(text, start, start + 5):
        return 0
    body = re.match(rf"(?:{split.chars}){{{split.least},{MAX_KEY_CHARS}}}", squeezed[body_at : body_at + MAX_KEY_CHARS])
    if not body:
        return 0
    last = body_at + _body_length(text, offsets, body_at, len(body[0]), split)
    pieces = _PIECE.findall(text[start : offsets[last - 1] + 1])
    word = _LOWER_WORD if "a-z" not in split.chars and "\\w" not in split.chars else _WORD
    in_words = sum(len(piece) for piece in pieces[1:] if word.fullmatch(piece))
    found = squeezed[body_at:last]
    if in_words > MAX_WORD_SHARE * len(found) or not rule.check(found):
        return 0
    return offsets[last - 1] + 1


def _body_length(text: str, offsets: list[int], body_at: int, available: int, split: Split) -> int:
    """Return how many of the `available` characters belong to the key: the usual number, or up to the first word."""
    usual = split.size or 0
    if usual and usual <= available and _is_piece_end(text, offsets[body_at + usual - 1]):
        return usual
    length = split.least
    while length < available:
        if _is_piece_end(text, offsets[body_at + length - 1]):
            nearby = text[offsets[body_at + length] : offsets[body_at + length] + 40]
            piece = _PIECE.match(nearby)
            if (
                piece is None
                or _WORD.fullmatch(piece[0])
                or offsets[body_at + length] - offsets[body_at + length - 1] > 4
            ):
                break
        length += 1
    return length


def _is_piece_end(text: str, offset: int) -> bool:
    return offset + 1 >= len(text) or not (text[offset + 1].isalnum() or text[offset + 1] == "_")


def join_pieces(view: TextView) -> Iterator[TextView]:
    """Yield views in which pieces of equal length, parts around a line break, or `"quoted" + "parts"`, are joined."""
    for tokens, gaps in ((_TOKENS, _GAPS), (_FINE_TOKENS, _FINE_GAPS)):
        if not _has_equal_pieces(view.text, gaps):
            continue
        joined = rewrite_parts(view, _equal_pieces(view.text, [token.span() for token in tokens.finditer(view.text)]))
        if joined:
            yield joined
    for parts in (_broken_lines(view.text), _concatenated(view.text)):
        joined = rewrite_parts(view, parts)
        if joined:
            yield joined


def _has_equal_pieces(text: str, gaps: bytes) -> bool:
    """Return False if no four tokens in a row have the same length."""
    try:
        return _FOUR_EQUAL.search(bytes(map(len, text.encode("ascii", "replace").translate(gaps).split()))) is not None
    except ValueError:
        # A token is longer than a byte can tell.
        return True


def _equal_pieces(text: str, spans: list[tuple[int, int]]) -> Iterator[list[Rewriting]]:
    """Yield runs of four or more pieces of the same length, including a shorter last one."""
    done = at = 0
    for size, group in groupby(end - start for start, end in spans):
        first, at = at, at + sum(1 for _ in group)
        if at - first < MIN_EQUAL_PIECES or size not in _SIZES:
            continue
        last = at
        if (
            last < len(spans)
            and spans[last][1] - spans[last][0] < size
            and spans[last][0] - spans[last - 1][1] <= MAX_GAP
        ):
            last += 1
        if (
            first
            and spans[first][0] - spans[first - 1][1] <= MAX_GAP
            and _has_piece_at_end(text, spans[first - 1], size)
        ):
            first -= 1
        is_close = spans[last - 1][1] - spans[first][0] <= (size + MAX_GAP) * (last - first) + MAX_HEAD
        if is_close and spans[first][0] >= done:
            yield [(text[start:end], start, end) for start, end in spans[first:last]]
            done = spans[last - 1][1]


def _has_piece_at_end(text: str, span: tuple[int, int], size: int) -> bool:
    """Return True if the word before the pieces ends with the first of them, as in `TOKEN=ab12`."""
    head = text[span[0] : span[1]]
    return size < len(head) <= MAX_HEAD and not head[-size - 1].isalnum()


def _broken_lines(text: str) -> Iterator[list[Rewriting]]:
    """Yield pairs of lines between which a key is broken."""
    for gap in _LINE_END.finditer(text) if "\n" in text else ():
        before, after = text[max(0, gap.start() - 12) : gap.start()], text[gap.end() : gap.end() + 12]
        if _CLASS_CHANGE.search(before) and _CLASS_CHANGE.search(after):
            yield [(text[gap.start() - 1], gap.start() - 1, gap.start()), (text[gap.end()], gap.end(), gap.end() + 1)]


def _concatenated(text: str) -> Iterator[list[Rewriting]]:
    """Yield the quotes and plus sign between two parts of a key, with the characters around them."""
    for gap in _CONCATENATION.finditer(text) if "+" in text else ():
        yield [(text[gap.start() - 1], gap.start() - 1, gap.start()), (text[gap.end()], gap.end(), gap.end() + 1)]
