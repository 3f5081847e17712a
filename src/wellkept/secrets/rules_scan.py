"""Find and redact credentials in text.

Most texts contain none of the several hundred words and prefixes that rules start from. One automaton finds all of
them in a single pass, and a small one the signs of a disguise. A text without any is not looked at again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import re2

from wellkept.secrets.rules import RULES
from wellkept.secrets.rules_runs import RUN_HINT, hide_public, random_runs
from wellkept.secrets.rules_shapes import MAX_KEY_CHARS, REMOVED, SecretRule
from wellkept.secrets.rules_split import PREFIXES, join_pieces, split_keys
from wellkept.secrets.rules_text import (
    ENCODED_HINT,
    KEY_HINT,
    SPELLED_HINT,
    TextView,
    apply_rot13,
    decode_runs,
    find_busy,
    fold_view,
    join_spelled,
    reverse_view,
)
from wellkept.secrets.rules_words import DESCRIBING_WORDS

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
    view = fold_view(masked)
    if RUN in (hints := _HINTS.find(view.text)):
        view = fold_view(hide_public(masked))
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
    letters = join_spelled(plain) if SPELLED in hints else None
    if letters:
        yield letters, _scan_all(letters)
    keyed = find_busy(plain) if KEY in signs else None
    if not keyed:
        return
    if RUN in hints:
        yield keyed, random_runs(keyed)
    yield keyed, split_keys(keyed, _PREFIXES.find)
    for pieces in join_pieces(keyed):
        yield pieces, _scan_all(pieces)
    view: TextView | None = keyed if _ENCODED.find(keyed.text) else None
    for _ in range(MAX_LEVELS):
        view = decode_runs(view) if view else None
        if view:
            yield view, _scan_all(view)
            yield view, split_keys(view, _PREFIXES.find)
    for transformed in (reverse_view(keyed), apply_rot13(keyed)) if LONG in hints else ():
        yield transformed, _scan_shapes(transformed, _DISTINCT_BY_KEY, _DISTINCT_KEYS.find(transformed.text))


def _scan_all(view: TextView, signs: frozenset[str] | None = None) -> Iterator[Span]:
    keys = _SIGNS.find(view.text) if signs is None else signs
    if keys and keys != _ONLY_KEY:
        # Few texts get here, and loading it takes longer than all else that a command does to store one.
        from wellkept.secrets.rules_context import find_described

        yield from _scan_shapes(view, _RULES_BY_KEY, keys)
        yield from find_described(view, keys)


_RULES_BY_KEY = {key: [rule for rule in RULES if key in rule.keys] for rule in RULES for key in rule.keys}
_ONLY_KEY = frozenset({KEY})
_ORDER = {key: number for number, key in enumerate(_RULES_BY_KEY)}
_SIGNS = PatternSet([*_RULES_BY_KEY, *DESCRIBING_WORDS], {KEY: KEY_HINT})
# On their own, because they multiply the states of the automaton for the keys, which then no longer fit its memory.
_HINTS = PatternSet((), {RUN: RUN_HINT, SPELLED: SPELLED_HINT, LONG: LONG_HINT})
_PREFIXES = PatternSet((), {prefix: f"(?i){re2.escape(prefix)}" for _, _, prefix in PREFIXES})
_ENCODED = PatternSet((), {"ENCODED": ENCODED_HINT})
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
