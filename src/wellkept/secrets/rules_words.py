"""Words of many languages around a credential, read from `words.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from wellkept.secrets.rules_text import TextView, fold

MAX_HITS = 4_000
"""Maximum number of such words in a text; the longest memory cannot hold more."""

MIN_SUFFIX_CHARS = 5
"""Minimum length of a word that may end the name of a variable without a separator, as in `PGPASSWORD=`."""

_SOURCE = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
PASSWORDS, TOKENS, PINS, DOORS, LOGINS, NEEDS_SIGN = (
    _SOURCE["phrases"][name] for name in ("passwords", "tokens", "pins", "doors", "logins", "needs_sign")
)
OTHER_KEYS, COMPOUNDED = (tuple(_SOURCE["words"][name].split()) for name in ("other_keys", "compounded"))
WEAK, WEAK_IF_LAST, DESCRIPTIONS = (
    frozenset(_SOURCE["words"][name].split()) for name in ("weak", "weak_if_last", "descriptions")
)
# Folded one by one: "|" itself looks like an l.
IS, MAYBE, FILLER, CHANGED, NEW = (
    "|".join(map(fold, _SOURCE["links"][name].replace("\n", "").split("|")))
    for name in ("is", "maybe", "filler", "changed", "new")
)
WEAK_WORDS = tuple(word for word in sorted(WEAK) if word.isalpha())
PAIR_SIGN = ":"
BETWEEN = r"(?:c'est|it'?s|it is|now|new (?:one )?is|neu(?:es)? ist|ist jetzt|use|try|ficou|es|e')(?:[ \t]now)?"
"""Words that continue a sentence about a password after a comma."""


OTHER_MEANING = re.compile(
    r"[\s_-]*(?:s\s+)?(?:manager|managers|polic|reset|hash|length|field|form\b|rotat|strength|generat|vault|protect|less"
    r"|prompt|hint|expir|rules?\b|requirement|recover|limit|count|budget|usage|price|pricing|bucket|type|ring|ttl"
    r"|lifetime|endpoint|window|name|economic|santa|sauce|store|stores\b|path|ref\b|format|prefix|style|based|auth"
    r"|entropy|audit|check|input|box|screen|page|link|(?:e-?)?mail(?!(?:[ \t][\w'-]{1,20}){0,4}?(?:[ \t](?:"
    rf"{IS})[\s:]|\s?[:=]))|table|column|version|size|cost|per\b|stream|id\b|ids\b"
    r"|scanning|scanner|detection|leak|sharing|service\b|issuer|verif|validat|complexity|spray|stuff|crack|dump|login\b"
    r"|value|pair|space|schema|order|board|stone|point|takeaway|result|idea|insight|player|feature|word|facts?\b"
    r"|ceremony|derivation|exchange|file|fob|chain|card|layout|binding|signature|map|press|stroke|metric|performance"
    r"|fingerprint|identifier|algorithm|rate|throughput|generation|encoding|doc|tutorial|guide|class\b|object|variable"
    r"|env\b|publi|pubbl|regex|pattern)"
)


_PARAMETER = re.compile(r"[?&][A-Za-z_]{1,10}$")


def prepare_words(names: str) -> dict[str, None]:
    """Fold the words, longest first. The keys of a dictionary are in order and quickly looked up."""
    plain = [name.replace("|", " ").rstrip("~") for name in names.split()]
    # A capital letter may look like another one than the small letter does.
    words = {fold(form) for name in plain for form in (name, name.capitalize(), name.upper())}
    return dict.fromkeys(sorted(words, key=len, reverse=True))


PASSWORD_WORDS, TOKEN_WORDS = prepare_words(PASSWORDS), prepare_words(TOKENS)
PIN_WORDS, LOGIN_WORDS = prepare_words(PINS + DOORS), prepare_words(LOGINS)
DESCRIBING_WORDS = (*PASSWORD_WORDS, *TOKEN_WORDS, *WEAK_WORDS, *PIN_WORDS, *LOGIN_WORDS, PAIR_SIGN)


def find_words(view: TextView, words: dict[str, None], keys: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Yield occurrences of whole words, or of words that end a name such as `DB_PASSWORD` or `dbPassword`."""
    lower, text, hits = view.lower, view.text, 0
    if words.keys().isdisjoint(keys):
        return
    for word in words:
        at = lower.find(word) if word in keys else -1
        while at >= 0 and hits < MAX_HITS:
            hits += 1
            before = text[at - 1] if at else " "
            if (
                not before.isalnum()
                or not before.isascii()
                or (before.islower() and text[at].isupper())
                or not word.isascii()
                or (
                    len(word) >= MIN_SUFFIX_CHARS
                    and before.isupper()
                    and text[at + len(word) : at + len(word) + 1] == "="
                )
                or (word in COMPOUNDED and before.isalpha())
                or (text.startswith("=", at + len(word)) and _PARAMETER.search(text, max(0, at - 12), at))
            ):
                yield word, at
            at = lower.find(word, at + len(word))
