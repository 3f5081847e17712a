"""Finding credentials in prose, before it is stored.

The text is read in several ways (as it looks, spelled out, decoded, in pieces; `secret_text`) and every reading is held
against the same rules: the shapes providers give their keys (`secret_rules`), what is said about a value
(`secret_context`), and last a long random run that nothing explains (`secret_entropy`). Work grows with the length of
the text and with nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from recollect.policy.secret_context import said_secrets
from recollect.policy.secret_entropy import random_runs
from recollect.policy.secret_rules import RULES
from recollect.policy.secret_shapes import MAX_KEY_CHARS, REMOVED, Rule
from recollect.policy.secret_split import glued, split_keys
from recollect.policy.secret_text import View, backwards, busy, decoded, folded, rotated, spelled

MAX_ROUNDS = 4
"""What is left after redaction is looked at again, this often; then the whole text counts as one credential."""

MAX_LEVELS = 2
"""Encodings inside encodings that are undone."""

MAX_HITS = 4_000
"""Of one prefix in one text; more than the longest memory can hold."""


MAX_LOOKED_BACK = 100
_KEY_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_~-")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A credential: which rule saw it, and where it stands. Never the credential itself."""

    rule: str
    start: int
    end: int


Span = tuple[str, int, int]
_MARK = re.compile(r"\[secret removed: ([a-z0-9-]{1,40})\]")
_SAID = ("password", "token", "pin", "login", "random-run", "secrets")
RULE_NAMES = frozenset(rule.name for rule in RULES) | frozenset(_SAID)


def find_secrets(text: str) -> list[Finding]:
    """Every credential in `text`, in order and without overlaps. Redacting them all leaves nothing to find.

    >>> find_secrets("my password is hunter2, the token is economics")
    [Finding(rule='password', start=15, end=22)]
    """
    found: list[Finding] = []
    rest = text
    for _ in range(MAX_ROUNDS):
        fresh = _scan(rest)
        if not fresh:
            return found
        found = _merged([*found, *_in_original(fresh, found)])
        rest = redact(text, found)
    return [Finding("secrets", 0, len(text))] if _scan(rest) else found


def redact(text: str, findings: Iterable[Finding]) -> str:
    """`text` with a mark in the place of every finding.

    >>> redact("the wifi password is hunter2", [Finding("password", 21, 28)])
    'the wifi password is [secret removed: password]'
    """
    parts, done = [], 0
    for finding in _merged(findings):
        parts += [text[done : finding.start], _mark(finding)]
        done = finding.end
    return "".join([*parts, text[done:]])


def _mark(finding: Finding) -> str:
    return f"[secret removed: {finding.rule}]"


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """In order; of findings that overlap, the first gives the name."""
    merged: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (f.start, -f.end)):
        if merged and finding.start < merged[-1].end:
            last = merged.pop()
            finding = Finding(last.rule, last.start, max(last.end, finding.end))
        merged.append(finding)
    return merged


def _in_original(fresh: Sequence[Finding], found: Sequence[Finding]) -> list[Finding]:
    """Findings in a text redacted by `found`, moved to where they stand in the text before."""
    starts, ends, longer = [], [], 0  # of the marks
    for finding in found:
        starts.append(finding.start + longer)
        ends.append(starts[-1] + len(_mark(finding)))
        longer = ends[-1] - finding.end

    def moved(position: int, *, is_end: bool) -> int:
        index = bisect_right(starts, position - is_end) - 1  # the last mark that starts before
        if index < 0:
            return position
        if position - is_end < ends[index]:
            return found[index].end if is_end else found[index].start
        return position - ends[index] + found[index].end

    return [Finding(one.rule, moved(one.start, is_end=False), moved(one.end, is_end=True)) for one in fresh]


def _scan(text: str) -> list[Finding]:
    """What one look at `text` finds."""
    masked = _MARK.sub(lambda mark: REMOVED * len(mark[0]) if mark[1] in RULE_NAMES else mark[0], text)
    found: list[Finding] = []
    for view, spans in _readings(folded(masked)):
        for rule, start, end in spans:
            found.append(Finding(rule, *view.span(start, end)))
    return _merged(found)


def _readings(plain: View) -> Iterator[tuple[View, Iterator[Span]]]:
    """Every way to read a text, with what is found in it."""
    yield plain, _everything(plain)
    letters = spelled(plain)
    if letters:
        yield letters, _everything(letters)
    keyed = busy(plain)
    if not keyed:
        return
    yield keyed, random_runs(keyed)
    yield keyed, split_keys(keyed)
    for pieces in glued(keyed):
        yield pieces, _everything(pieces)
    view: View | None = keyed
    for _ in range(MAX_LEVELS):
        view = decoded(view) if view else None
        if view:
            yield view, _everything(view)
            yield view, split_keys(view)
    for turned in (backwards(keyed), rotated(keyed)):
        yield turned, _shapes(turned, _DISTINCT)


def _everything(view: View) -> Iterator[Span]:
    yield from _shapes(view, RULES)
    yield from said_secrets(view)


_DISTINCT = tuple(rule for rule in RULES if rule.name != "url-password")


def _shapes(view: View, rules: Sequence[Rule]) -> Iterator[Span]:
    """Credentials by their shape."""
    for rule in rules:
        for key, word in rule.keys:
            if word not in view.words:
                continue
            at, hits = view.lower.find(key), 0
            while at >= 0 and hits < MAX_HITS:
                hits += 1
                match = rule.pattern.match(view.text, at)
                if match and rule.check(match[match.lastindex or 0]):
                    start, end = _whole(view.text, match, rule)
                    yield rule.name, start, end
                    at = end - 1
                at = view.lower.find(key, at + 1)


def _whole(text: str, match: re.Match[str], rule: Rule) -> tuple[int, int]:
    """The span of the credential: its group if only that is one, else with what the pattern merely looked back at."""
    if match.lastindex and not rule.split:
        return match.span(1)
    start, end = match.span()
    while end < len(text) and match.end() - match.start() >= MAX_KEY_CHARS and text[end] in _KEY_CHARS:
        end += 1
    while start > 0 and match.start() - start < MAX_LOOKED_BACK and text[start - 1] in _KEY_CHARS:
        start -= 1
    return start, end
