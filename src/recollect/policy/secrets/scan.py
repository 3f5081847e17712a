"""Find and redact credentials in text.

Most texts contain none of the several hundred words and prefixes that rules start from. One automaton finds all of
them in the time that Python needs to search for a few, so only suspects reach the rules.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import re2

from recollect.policy.secrets.context import DESCRIBING_WORDS, find_described
from recollect.policy.secrets.public import RUN_HINT, hide_public
from recollect.policy.secrets.rules import RULES
from recollect.policy.secrets.runs import random_runs
from recollect.policy.secrets.shapes import MAX_KEY_CHARS, REMOVED, SecretRule
from recollect.policy.secrets.split import join_pieces, split_keys
from recollect.policy.secrets.text import (
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

MAX_ROUNDS = 4
"""Number of scans of the redacted text; if secrets remain after that, the whole text counts as one."""

MAX_LEVELS = 2
"""Maximum depth of nested encodings that are decoded."""

MAX_HITS = 4_000
"""Maximum matches of one prefix in a text; the longest memory cannot hold more."""


MAX_LOOKBACK = 100
_KEY_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_~-")


@dataclass(frozen=True, slots=True, order=True)
class SecretFinding:
    """A credential: the rule that matched and its position, never its text."""

    rule: str
    start: int
    end: int


class PatternSet:
    """Set of regular expressions that are searched together. Each has a name; several may share one."""

    def __init__(self, patterns: Iterable[tuple[str, str]]) -> None:
        options = re2.Options()
        options.log_errors = False
        self._set = re2.Set.SearchSet(options)
        self._names: list[str] = []
        for name, pattern in patterns:
            self._set.Add(pattern)
            self._names.append(name)
        self._set.Compile()

    @classmethod
    def of_literals(cls, texts: Iterable[str]) -> PatternSet:
        """Build a set that finds each of `texts` literally, by its own name."""
        return cls((text, re2.escape(text)) for text in dict.fromkeys(texts))

    def find(self, text: str) -> frozenset[str]:
        """Return the names of the patterns that occur in `text`.

        >>> sorted(PatternSet([("digit", "[0-9]"), ("dash", "-"), ("dot", "[.]")]).find("2026-11-17"))
        ['dash', 'digit']
        """
        # Half of a surrogate pair cannot be encoded, and is part of no credential.
        found: Sequence[int] | None = self._set.Match(text.encode(errors="replace"))
        return frozenset(self._names[index] for index in found or ())


Span = tuple[str, int, int]
_HINTS = PatternSet([("run", RUN_HINT), ("spelled", SPELLED_HINT), ("key", KEY_HINT)])
"""Cheap signs that a text may need the more expensive readings."""

_MARK = re.compile(r"\[secret removed: ([a-z0-9-]{1,40})\]")
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
    masked = _MARK.sub(lambda mark: REMOVED * len(mark[0]) if mark[1] in RULE_NAMES else mark[0], text)
    if "run" in _HINTS.find(masked):
        masked = hide_public(masked)
    found: list[SecretFinding] = []
    for view, spans in _readings(fold_view(masked)):
        for rule, start, end in spans:
            found.append(SecretFinding(rule, *view.span(start, end)))
    return _merge(found)


def _readings(plain: TextView) -> Iterator[tuple[TextView, Iterator[Span]]]:
    """Yield every reading of a text with the findings in it."""
    yield plain, _scan_all(plain)
    hints = _HINTS.find(plain.text)
    letters = join_spelled(plain) if "spelled" in hints else None
    if letters:
        yield letters, _scan_all(letters)
    keyed = find_busy(plain) if "key" in hints else None
    if not keyed:
        return
    yield keyed, random_runs(keyed)
    yield keyed, split_keys(keyed)
    for pieces in join_pieces(keyed):
        yield pieces, _scan_all(pieces)
    view: TextView | None = keyed
    for _ in range(MAX_LEVELS):
        view = decode_runs(view) if view else None
        if view:
            yield view, _scan_all(view)
            yield view, split_keys(view)
    for transformed in (reverse_view(keyed), apply_rot13(keyed)):
        yield transformed, _scan_shapes(transformed, _DISTINCT_BY_KEY, _DISTINCT_KEYS.find(transformed.lower))


def _scan_all(view: TextView) -> Iterator[Span]:
    keys = _KEYS.find(view.lower)
    if keys:
        yield from _scan_shapes(view, _RULES_BY_KEY, keys)
        yield from find_described(view, keys)


_RULES_BY_KEY = {key: [rule for rule in RULES if key in rule.keys] for rule in RULES for key in rule.keys}
_ORDER = {key: number for number, key in enumerate(_RULES_BY_KEY)}
_KEYS = PatternSet.of_literals([*_RULES_BY_KEY, *DESCRIBING_WORDS])
_DISTINCT_BY_KEY = {key: rules for key, rules in _RULES_BY_KEY.items() if rules[0].name != "url-password"}
_DISTINCT_KEYS = PatternSet.of_literals(_DISTINCT_BY_KEY)


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
