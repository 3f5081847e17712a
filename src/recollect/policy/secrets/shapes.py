"""What a rule is, and how a made-up run of characters differs from words, names and placeholders.

Keys are drawn at random, so their characters change class all the time: upper case after lower case, digits next to
letters. Words, CamelCase names, slugs and paths hardly ever do. Counting these changes is cheap and needs no tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MAX_JUDGED_CHARS = 256
"""A run is judged by its first characters; a longer look would tell nothing new."""

MAX_KEY_CHARS = 256
"""No pattern reads further from one start, so that many starts in one long run stay cheap."""

MIN_DISTINCT_CHARS = 5
"""`xxxxxxxx`, `00000000` and `abababab` are masks, not keys."""

REMOVED = "\ufffc"
"""Stands where a credential was taken out; no pattern reaches across it."""

_OPEN_END = re.compile(r"(\{\d+),\}")
_TURN = re.compile(r"(?<=[a-z])[A-Z]|(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]")
_PLACEHOLDER = re.compile(
    r"x{4,}|\*{3,}|\.{3,}$|…|your|example|placeholder|redacted|dummy|changeme|change[-_]me|insert|sample|foobar"
    r"|replace[-_]?me|[-_]here|0{8,}|1{8,}|deadbeef|not[-_]?a[-_]?real"
    r"|(?:^|[-_.])(?:fake|todo|tbd|some|token|key|secret|password|demo)(?:$|[-_.])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How a key goes on after its prefix, for finding one that was cut into pieces."""

    prefixes: tuple[str, ...]  # lower case, without the dashes
    chars: re.Pattern[str]  # one character of the body
    least: int
    size: int | None  # None: the length is not fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One shape of credential. The first group of `pattern`, or all of it, is the credential.

    In `hits` and `misses`, which the tests run, `{36}` stands for 36 random letters and digits and `{hex:32}` for
    32 hexadecimal ones: no file of this project holds anything that another scanner would take for a key.
    """

    name: str
    keys: tuple[tuple[str, str], ...]  # lower case; the pattern is tried where one of them stands; see `probe`
    pattern: re.Pattern[str]
    check: Callable[[str], bool]
    split: Split | None
    hits: tuple[str, ...]
    misses: tuple[str, ...]


def probe(key: str, *, is_start: bool) -> str:
    """What must be among a text's words, each between blanks, if `key` is in the text. `is_start`: only at the start
    of a word. Most keys are in no text, and words are looked up faster than texts are searched.

    >>> probe("ghp_", is_start=True), probe("akia", is_start=True), probe("hooks.slack.com", is_start=False)
    (' ghp ', ' akia', 'hooks')
    """
    first = re.match("[a-z0-9]*", key)
    piece = first[0] if first else ""
    if not piece or not is_start:
        return piece
    return f" {piece} " if piece != key else f" {piece}"


def turns(run: str) -> int:
    """How often the class of characters changes.

    >>> turns("AbstractProxyFactory"), turns("a7Xk2mPq9Lw4")
    (2, 8)
    """
    return len(_TURN.findall(run[:MAX_JUDGED_CHARS]))


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret instead of being one.

    >>> is_placeholder("your-api-key-here"), is_placeholder("xxxxxxxx"), is_placeholder("a7Xk2mPq9Lw4")
    (True, True, False)
    """
    head = value[:MAX_JUDGED_CHARS].lower()
    return len(set(head)) < MIN_DISTINCT_CHARS or _PLACEHOLDER.search(head) is not None


def is_random(body: str) -> bool:
    """Whether what stands behind a known prefix looks drawn at random."""
    head = body[:MAX_JUDGED_CHARS]
    return turns(head) >= max(3, 0.11 * len(head)) and not is_placeholder(head)


def is_real(body: str) -> bool:
    """Whether a value of fixed shape is at least no placeholder."""
    return not is_placeholder(body)


def always(body: str) -> bool:
    """The shape says it all."""
    return True


def prefixed(
    name: str,
    prefixes: str,
    *,
    hits: tuple[str, ...],
    misses: tuple[str, ...],
    chars: str = "A-Za-z0-9",
    least: int = 16,
    size: int | None = None,
    check: Callable[[str], bool] = is_random,
) -> Rule:
    """A key that opens with one of `prefixes` (in any case), then `least` or more of `chars`, usually `size`."""
    keys = tuple(prefixes.lower().split())
    starts = "|".join(re.escape(key) for key in sorted(keys, key=len, reverse=True))
    return Rule(
        name=name,
        keys=tuple((key, probe(key, is_start=True)) for key in keys),
        pattern=re.compile(rf"(?<![A-Za-z0-9])(?i:{starts})([{chars}]{{{least},{MAX_KEY_CHARS}}})"),
        check=check,
        split=Split(
            prefixes=tuple(key.replace("-", "").replace(".", "") for key in keys),
            chars=re.compile(rf"[{chars}]".replace(".", "").replace("-]", "]")),
            least=max(least, 16),
            size=size,
        ),
        hits=hits,
        misses=misses,
    )


def shaped(
    name: str,
    keys: str,
    pattern: str,
    *,
    hits: tuple[str, ...],
    misses: tuple[str, ...],
    check: Callable[[str], bool] = is_real,
) -> Rule:
    """A credential recognised by `pattern`, which starts where one of `keys` stands.

    `[^\\n]` in it also stops at what was removed before.
    """
    return Rule(
        name=name,
        keys=tuple((key, probe(key, is_start=False)) for key in keys.lower().split("|")),
        pattern=re.compile(
            re.sub(r"(\{\d+),\}", rf"\1,{MAX_KEY_CHARS}}}", pattern.replace(r"[^\n]", rf"[^\n{REMOVED}]"))
        ),
        check=check,
        split=None,
        hits=hits,
        misses=misses,
    )
