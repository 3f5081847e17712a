"""Find and redact credentials in text.

Most texts contain none of the several hundred words and prefixes that rules start from. One automaton finds all of them
in a single pass, and a small one the signs of a disguise. A text without any is not looked at again.

Long runs of random characters: hide those that are meant to be seen, find those that may be credentials.

Certificates, public keys, publishable keys, digests, hashes and chess positions are as random as a credential, so every
rule would have to know them. They are replaced before any rule runs.

Find keys with a known prefix that were split by line breaks, spaces, dashes, dots or quotes.

All separators are dropped, known prefixes are searched in the rest, and the pieces after a prefix are judged together.
Prose after a prefix differs from a key because its pieces are words.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from types import MappingProxyType

import re2

from wellkept.secrets import rules_text as views
from wellkept.secrets.rules import (
    MAX_EXAMINED_CHARS,
    MAX_KEY_CHARS,
    RULES,
    SecretRule,
    Split,
    count_class_changes,
    is_placeholder,
)
from wellkept.secrets.rules_context import DESCRIBING_WORDS, find_described
from wellkept.secrets.rules_text import REMOVED, Patterns, Rewriting, TextView

_P = Patterns("scan")
MAX_RUN_CHARS = 1_500
"""Maximum length of a key; a longer run is a file."""

MIN_CHANGE_SHARE = 0.22
"""Minimum share of character class changes. Random keys change class at 45 % of positions, CamelCase below 20 %."""

_FILE = re.compile(
    # Known first bytes of a file, or the zeros that are in every header and hardly ever in a key.
    rb"\x89PNG|\xff\xd8\xff|GIF8|%PDF|RIFF|<svg|<\?xml|BM|OggS|fLaC|ID3|II\*\0|MM\0\*|PK\x03\x04|\x1f\x8b\x08|7z\xbc\xaf"
    rb"|\xfd7zXZ|\x28\xb5\x2f\xfd|BZh|Rar!|\x1a\x45\xdf\xa3|\x7fELF|MZ|wOF[F2]|\0asm|.{4}ftyp|SQLite|(?:[^\0]*\0){3}",
    re.DOTALL,
)
_PATH_ENDS = ("/", "\\", ".", "@", "?", "&", ";base64,")
MAX_ADDRESS_CHARS = 400


def random_runs(view: TextView) -> Iterator[tuple[str, int, int]]:
    """Yield the rule and range of every long run that looks random."""
    for run in _P.run.finditer(view.text):
        if len(run[0]) <= MAX_RUN_CHARS and _is_key(view.text, run):
            yield "random-run", run.start(), run.end()


def _is_key(text: str, run: re.Match[str]) -> bool:
    body = run[0].rstrip("=")
    if not (any(c.islower() for c in body) and any(c.isupper() for c in body) and any(c.isdigit() for c in body)):
        return False
    if (
        count_class_changes(body) < MIN_CHANGE_SHARE * min(len(body), MAX_EXAMINED_CHARS)
        or is_placeholder(body)
        or _P.public.match(body)
        or _FILE.match(base64.b64decode(body[:24], b"-_"))
    ):
        return False
    before = text[max(0, run.start() - 60) : run.start()]
    if body[0] == "/" or before.endswith(_PATH_ENDS) or _P.described.search(before) or _P.published.search(before):
        return False
    near = max(0, run.start() - MAX_ADDRESS_CHARS)
    word_at = max(near, *(text.rfind(blank, near, run.start()) + 1 for blank in " \n\t"))
    if _P.address.search(text, word_at, run.start()):
        return False
    return not views.is_plain_text_encoded(run[0])


MIN_PUBLIC_CHARS = 27
"""Minimum length of a hidden run: a SHA-1 in base64."""

RUN_HINT = f"[A-Za-z0-9+/_-]{{{MIN_PUBLIC_CHARS}}}"


def hide_public(text: str) -> str:
    """Replace every public value by as many marks as it has characters.

    >>> hide_public("x v1 h1:" + "aB3" * 14 + "c=").count(REMOVED)
    44
    """
    if "BEGIN " in text:
        text = _P.block.sub(lambda block: REMOVED * len(block[0]), text)
    if "ENC[" in text or "pk.eyJ" in text:
        text = _P.bracketed.sub(lambda value: REMOVED * len(value[0]), text)
    parts, done = [], 0
    for run in _P.long_run.finditer(text):
        if _is_public(text, run):
            parts += [text[done : run.start()], REMOVED * len(run[0])]
            done = run.end()
    return "".join([*parts, text[done:]]) if parts else text


def _is_public(text: str, run: re.Match[str]) -> bool:
    start = run.start()
    if _P.seen_by_all.match(run[0]):
        return start == 0 or not text[start - 1].isalnum()
    if _P.digest.fullmatch(run[0]) and _P.digest_label.search(text, max(0, start - 16), start):
        return True
    if _P.encrypted.search(text, max(0, start - 60), start):
        return True
    return "$" in text and _P.hashed.search(text, max(0, start - 160), start) is not None


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
_FOUR_EQUAL = re.compile(rb"([\x02-\x0c])\1{3}")
_GAPS = bytes.maketrans(b"\"'+,\x1c\x1d\x1e\x1f", b" " * 8)
_FINE_GAPS = bytes.maketrans(b"\"'+,.|-\x1c\x1d\x1e\x1f", b" " * 11)
_SEPARATORS = " \t\r\n\v\f-.,;|/\\+\"'`*~()[]:><=&^#"
_DROP = _SEPARATORS.encode()
_DROPPED = frozenset(_SEPARATORS)


PREFIXES = tuple(
    (rule, rule.split, prefix)
    for rule in RULES
    if rule.split
    for prefix in rule.split.prefixes
    if len(prefix) >= MIN_PREFIX_CHARS or "_" in prefix or prefix == "sk"
)


def split_keys(view: TextView) -> Iterator[tuple[str, int, int]]:
    """Yield the rule and range, in `view`, of every split key."""
    # Three times as quick as the same on strings; every dropped character is one byte.
    squeezed = view.text.encode(errors="surrogatepass").translate(None, _DROP).decode(errors="surrogatepass")
    if len(squeezed) == len(view.text):
        return
    lower, offsets, walks = squeezed.lower(), list[int](), 0
    found = _PREFIXES.find(squeezed)
    for rule, split, prefix in PREFIXES if found else ():
        if prefix not in found or (prefix == "sk" and not _P.spaced_sk.search(view.text)):
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
    if prefix_length == 2 and not _P.spaced_sk.match(text, start, start + 5):
        return 0
    body = re.match(rf"(?:{split.chars}){{{split.least},{MAX_KEY_CHARS}}}", squeezed[body_at : body_at + MAX_KEY_CHARS])
    if not body:
        return 0
    last = body_at + _body_length(text, offsets, body_at, len(body[0]), split)
    pieces = _P.piece.findall(text[start : offsets[last - 1] + 1])
    word = _P.lower_word if "a-z" not in split.chars and "\\w" not in split.chars else _P.word
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
            piece = _P.piece.match(nearby)
            if (
                piece is None
                or _P.word.fullmatch(piece[0])
                or offsets[body_at + length] - offsets[body_at + length - 1] > 4
            ):
                break
        length += 1
    return length


def _is_piece_end(text: str, offset: int) -> bool:
    return offset + 1 >= len(text) or not (text[offset + 1].isalnum() or text[offset + 1] == "_")


def join_pieces(view: TextView) -> Iterator[TextView]:
    """Yield views in which pieces of equal length, parts around a line break, or `"quoted" + "parts"`, are joined."""
    for tokens, gaps in ((_P.tokens, _GAPS), (_P.fine_tokens, _FINE_GAPS)):
        if not _has_equal_pieces(view.text, gaps):
            continue
        joined = views.rewrite_parts(
            view, _equal_pieces(view.text, [token.span() for token in tokens.finditer(view.text)])
        )
        if joined:
            yield joined
    for parts in (_broken_lines(view.text), _concatenated(view.text)):
        joined = views.rewrite_parts(view, parts)
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
    for gap in _P.line_end.finditer(text) if "\n" in text else ():
        before, after = text[max(0, gap.start() - 12) : gap.start()], text[gap.end() : gap.end() + 12]
        if _P.class_change.search(before) and _P.class_change.search(after):
            yield [(text[gap.start() - 1], gap.start() - 1, gap.start()), (text[gap.end()], gap.end(), gap.end() + 1)]


def _concatenated(text: str) -> Iterator[list[Rewriting]]:
    """Yield the quotes and plus sign between two parts of a key, with the characters around them."""
    for gap in _P.concatenation.finditer(text) if "+" in text else ():
        yield [(text[gap.start() - 1], gap.start() - 1, gap.start()), (text[gap.end()], gap.end(), gap.end() + 1)]


MAX_ROUNDS = 4
"""Number of scans of the redacted text; if secrets remain after that, the whole text counts as one."""

MAX_LEVELS = 2
"""Maximum depth of nested encodings that are decoded."""

MAX_HITS = 4_000
"""Maximum matches of one prefix in a text; the longest memory cannot hold more."""


LONG_HINT = r"[!-~]{15}"
"""Necessary condition of a key that is backwards or rotated: the shortest has a prefix and twelve characters."""

MAX_LOOKBACK = 100
_KEY_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_~-")


@dataclass(frozen=True, slots=True, order=True)
class SecretFinding:
    """A credential: the rule that matched and its position, never its text."""

    rule: str
    start: int
    end: int


Span = tuple[str, int, int]
RUN, SPELLED, KEY, LONG = "RUN", "SPELLED", "KEY", "LONG"
"""Names of the signs that a text may need the more expensive readings. Keys of rules have no capitals."""

_LONGER = {
    ".": r"\.\S{6}\.",
    "/": r"/\S{4}",
    "sk": "(?i)sk[0-9a-f]{4}",
    "ac": "(?i)ac[0-9a-f]{4}",
    "pat": "(?i)pat[a-z0-9]{4}",
    "://": r"://[^\s/]*@",
    ":": r"(?i)[a-z]:\S{5}",
}
"""Keys that many texts contain, with what follows them in every credential."""


class PatternSet:
    """Set of keys, and of patterns by name, that are searched together, whatever their case."""

    def __init__(self, keys: Iterable[str], patterns: Mapping[str, str] = MappingProxyType({})) -> None:
        self._sources = {**{key: _LONGER.get(key) or f"(?i){re2.escape(key)}" for key in keys}, **patterns}
        self._names = list(self._sources)

    @cached_property
    def _set(self) -> re2.Set:
        options = re2.Options()
        options.log_errors = False
        compiled = re2.Set.SearchSet(options)
        for source in self._sources.values():
            compiled.Add(source)
        compiled.Compile()
        return compiled

    def find(self, text: str) -> frozenset[str]:
        """Return the keys that occur in `text`, and the names of the patterns that do.

        >>> sorted(PatternSet(["key", "dash"], {"digit": "[0-9]"}).find("KEY 2026"))
        ['digit', 'key']
        """
        # Half of a surrogate pair cannot be encoded, and is part of no credential.
        found: Sequence[int] | None = self._set.Match(text.encode(errors="replace"))
        return frozenset([self._names[index] for index in found]) if found else _NOTHING


_NOTHING: frozenset[str] = frozenset()
MARK_START = "[secret removed: "
_MARK = re.compile(rf"{re.escape(MARK_START)}([a-z0-9-]{{1,40}})\]")
_OTHER_RULES = ("password", "token", "pin", "login", "random-run", "secrets")
RULE_NAMES = frozenset(rule.name for rule in RULES) | frozenset(_OTHER_RULES)


def find_secrets(text: str) -> list[SecretFinding]:
    """Find all credentials in `text`, in order and without overlaps; redacting them leaves nothing to find.

    >>> find_secrets("my password is hunter2, the token is economics")
    [SecretFinding(rule='password', start=15, end=22)]
    """
    found: list[SecretFinding] = []
    rest = text
    for _ in range(MAX_ROUNDS):
        fresh = _scan(rest)
        if not fresh:
            return found
        found = _merge([*found, *_to_original(fresh, found)])
        rest = redact(text, found)
    return [SecretFinding("secrets", 0, len(text))] if _scan(rest) else found


def redact(text: str, findings: Iterable[SecretFinding]) -> str:
    """Replace every finding by a mark.

    >>> redact("the wifi password is hunter2", [SecretFinding("password", 21, 28)])
    'the wifi password is [secret removed: password]'
    """
    parts, done = [], 0
    for finding in _merge(findings):
        parts += [text[done : finding.start], _mark(finding)]
        done = finding.end
    return "".join([*parts, text[done:]])


def _mark(finding: SecretFinding) -> str:
    return f"[secret removed: {finding.rule}]"


def _merge(findings: Iterable[SecretFinding]) -> list[SecretFinding]:
    """Sort findings and merge overlapping ones; the first one gives the name."""
    merged: list[SecretFinding] = []
    for finding in sorted(findings, key=lambda f: (f.start, -f.end)):
        if merged and finding.start < merged[-1].end:
            last = merged.pop()
            finding = SecretFinding(last.rule, last.start, max(last.end, finding.end))
        merged.append(finding)
    return merged


def _to_original(fresh: Sequence[SecretFinding], found: Sequence[SecretFinding]) -> list[SecretFinding]:
    """Map findings in a text redacted by `found` to positions in the original text."""
    # Start and end of each mark in the redacted text, and how much longer that text is up to there.
    starts, ends, longer = [], [], 0
    for finding in found:
        starts.append(finding.start + longer)
        ends.append(starts[-1] + len(_mark(finding)))
        longer = ends[-1] - finding.end

    def to_original(position: int, *, is_end: bool) -> int:
        # The last mark that starts before the position.
        index = bisect_right(starts, position - is_end) - 1
        if index < 0:
            return position
        if position - is_end < ends[index]:
            return found[index].end if is_end else found[index].start
        return position - ends[index] + found[index].end

    return [
        SecretFinding(one.rule, to_original(one.start, is_end=False), to_original(one.end, is_end=True))
        for one in fresh
    ]


def _scan(text: str) -> list[SecretFinding]:
    """Scan `text` once."""
    masked = text
    if MARK_START in text:
        masked = _MARK.sub(lambda mark: REMOVED * len(mark[0]) if mark[1] in RULE_NAMES else mark[0], text)
    view = views.fold_view(masked)
    if RUN in (hints := _HINTS.find(view.text)):
        view = views.fold_view(hide_public(masked))
    signs = _SIGNS.find(view.text)
    if not signs and SPELLED not in hints:
        return []
    readings = _readings(view, signs, hints)
    return _merge(
        [SecretFinding(rule, *view.span(start, end)) for view, spans in readings for rule, start, end in spans]
    )


def _readings(
    plain: TextView, signs: frozenset[str], hints: frozenset[str]
) -> Iterator[tuple[TextView, Iterator[Span]]]:
    """Yield every reading of a text with the findings in it."""
    yield plain, _scan_all(plain, signs)
    letters = views.join_spelled(plain) if SPELLED in hints else None
    if letters:
        yield letters, _scan_all(letters)
    keyed = views.find_busy(plain) if KEY in signs else None
    if not keyed:
        return
    if RUN in hints:
        yield keyed, random_runs(keyed)
    yield keyed, split_keys(keyed)
    for pieces in join_pieces(keyed):
        yield pieces, _scan_all(pieces)
    view: TextView | None = keyed if _ENCODED.find(keyed.text) else None
    for _ in range(MAX_LEVELS):
        view = views.decode_runs(view) if view else None
        if view:
            yield view, _scan_all(view)
            yield view, split_keys(view)
    for transformed in (views.reverse_view(keyed), views.apply_rot13(keyed)) if LONG in hints else ():
        yield transformed, _scan_shapes(transformed, _DISTINCT_BY_KEY, _DISTINCT_KEYS.find(transformed.text))


def _scan_all(view: TextView, signs: frozenset[str] | None = None) -> Iterator[Span]:
    keys = _SIGNS.find(view.text) if signs is None else signs
    if keys and keys != _ONLY_KEY:
        yield from _scan_shapes(view, _RULES_BY_KEY, keys)
        yield from find_described(view, keys)


_RULES_BY_KEY = {key: [rule for rule in RULES if key in rule.keys] for rule in RULES for key in rule.keys}
_ONLY_KEY = frozenset({KEY})
_ORDER = {key: number for number, key in enumerate(_RULES_BY_KEY)}
_SIGNS = PatternSet([*_RULES_BY_KEY, *DESCRIBING_WORDS], {KEY: views.KEY_HINT})
# On their own, because they multiply the states of the automaton for the keys, which then no longer fit its memory.
_HINTS = PatternSet((), {RUN: RUN_HINT, SPELLED: views.SPELLED_HINT, LONG: LONG_HINT})
_PREFIXES = PatternSet((), {prefix: f"(?i){re2.escape(prefix)}" for _, _, prefix in PREFIXES})
_ENCODED = PatternSet((), {"ENCODED": views.ENCODED_HINT})
_DISTINCT_BY_KEY = {key: rules for key, rules in _RULES_BY_KEY.items() if rules[0].name != "url-password"}
_DISTINCT_KEYS = PatternSet(_DISTINCT_BY_KEY)


def _scan_shapes(view: TextView, rules: Mapping[str, Sequence[SecretRule]], keys: frozenset[str]) -> Iterator[Span]:
    """Yield credentials recognised by their shape, in the order of the rules: the first gives an overlap its name."""
    for key in sorted(keys & rules.keys(), key=_ORDER.__getitem__):
        for rule in rules[key]:
            at, hits = view.lower.find(key), 0
            while at >= 0 and hits < MAX_HITS:
                hits += 1
                match = rule.pattern.match(view.text, at)
                if match and rule.check(match[match.lastindex or 0]):
                    start, end = _credential_range(view.text, match, rule)
                    yield rule.name, start, end
                    at = end - 1
                at = view.lower.find(key, at + 1)


def _credential_range(text: str, match: re.Match[str], rule: SecretRule) -> tuple[int, int]:
    """Return the range of the credential: a shaped rule's last group, else the match with adjacent key characters."""
    if match.lastindex and not rule.split:
        return match.span(match.lastindex)
    start, end = match.span()
    while end < len(text) and match.end() - match.start() >= MAX_KEY_CHARS and text[end] in _KEY_CHARS:
        end += 1
    while start > 0 and match.start() - start < MAX_LOOKBACK and text[start - 1] in _KEY_CHARS:
        start -= 1
    return start, end
