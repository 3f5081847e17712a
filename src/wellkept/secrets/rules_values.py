"""Decide if a word that prose calls a password or key is a value.

The more clearly the wording announces a value, the less evidence the value itself has to show.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path

from wellkept.secrets.rules_shapes import count_class_changes, is_placeholder, is_stated_password
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


class Certainty(Enum):
    """Certainty with which the wording announces a value, from `DB_PASSWORD=` down to a key mentioned in passing."""

    ASSIGNED = auto()
    PASSWORD = auto()
    TOKEN = auto()
    LOOSE = auto()
    LOOSEST = auto()


MIN_PASSWORD_CHARS = 4
MIN_TOKEN_CHARS = 6
MIN_LOOSE_CHARS = 6
MIN_LOOSEST_CHARS = 16

_TECH = re.compile(
    r"""(?ix)(?:oauth|sha|md|utf|base|argon|aes|rsa|ed|curve|hs|rs|es|ps|x|pbkdf|s?crypt|bcrypt|tls|ssl|http|h|s|ec|k|v|ver|ipv|web
    |win|windows|ios|macos|ubuntu|debian|python|py|php|java|node|gpt|claude|llama|gemini|erc|bep|brc|mp|usb|rfc|iso|cve|pci
    |soc|q|fy|step|level|day|week|phase|sprint|ticket|issue|version|line|page|section|figure|fig|chapter|item|option|type|build
    |release|blake|ripemd|hmac-?sha|sha-?|level|tier|room|floor|fido|saml|wpa|wep|grade|top|bip|eip|slip|nist|log4j|covid|area
    |web|gen|part|act|vol|no|nr|pr|mr|bug|story|epic|env|slot|column|row)[-_.]?\d+(?:[-_.]\d+){0,3}[a-z]{0,3}"""
)
_ODD_WORDS = re.compile(
    r"(?i)1password\d?|lastpass\d?|2fa|mfa|7-?zip|3d|4chan|365|o365|k8s|i18n|l10n|a11y|e2ee?|b2[bc]|p2p|s3|ec2|web3|web2|h2o|mp3"
    r"|base64url|argon2id?|oauth2?(?:\.\d)?|pkcs\d+|x\.?509|keepass(?:xc)?2?|sha-?\d+-?\w*|log4j|c3po|r2d2|u2f|fido2|n26"
    r"|ssh-\w+|route53|neo4j|auth0|d3js|ngrok|v\d{1,3}(?:[._-][\w.-]*|(?:alpha|beta|rc)\w*)?"
)
_UNIT = re.compile(
    r"(?i)~?[<>≥≤]?\d+(?:[.,:]\d+)*\+?[- ]?"
    r"(?:st|nd|rd|th|x|%|k|m|b|ms|s|sec|min|mins|h|hrs?|am|pm|d|days?|wks?|weeks?|mo"
    r"|months?|y|yrs?|years?|chars?|characters?|digits?|letters?|words?|bits?|bytes?|kb|mb|gb|tb|px|pt|em|rem|usd|eur|gbp|€|\$|£|times|-?fold|er|ers|uhr"
    r"|zeichen|stellig|tage|minutes?|hours?|seconds?|way|factor|step|part|tokens?|k/s|/s|/min|/h)(?:-[a-z-]+)?"
)
_STRUCTURED = re.compile(
    r"""(?x)[a-z][a-z0-9+.-]*://.*                                # an address on the web
    |[\w.+-]+@[\w-]+(?:\.[\w-]+)+                               # an address for mail
    |~?\.{0,2}/[\w./@~-]*|[A-Za-z]:\\.*|[\w.-]+(?:/[\w.-]+)+/?  # a path
    |\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:T[\d:.Z+-]*)?            # a date
    |\d{1,2}:\d{2}(?::\d{2})?(?:[ap]m)?                         # a time
    |v?\d+(?:\.\d+){1,4}(?:[-+]?[a-z]+\.?\d*)?                  # a version, a number, an IP address
    |[A-Z][A-Z0-9]{1,9}-\d{1,6}|\#\d+|@[\w.-]+                  # a ticket, a person
    |\$\{.*|\$[A-Za-z_]\w*(?:/.*)?|\$\(.*|%[A-Z_]+%|<.*|\[.*|\{.*|\(.*|process\.env\S*|os\.\S*|env[.:(\[]\S*|op://.*
    |[a-z_][\w-]*(?:\.[a-z_][\w-]*)+(?:\(.*)?|[A-Za-z_][\w.]*\(.*  # a file, a host, a call
    |[\w.-]+\.(?:pdf|docx?|xlsx?|csv|txt|md|zip|kdbx|gpg|json|ya?ml|png|jpe?g)  # a file
    |--[\w-]+                                                    # an option, a property of CSS
    |vault:v\d+:?                                                # a value that Vault encrypted
    |(?:arn:)?aws:[\w:/.*-]*                                    # a resource of a cloud
    |[\w-]+=[$<{%].*|[a-z_]+=[A-Za-z_.]*                        # a setting that is filled in elsewhere, an argument
    |(?:[0-9a-fA-F]{2}[:-]){5,}[0-9a-fA-F]{2}                   # a MAC address, a fingerprint
    |![a-z]+|!(?i:ref|sub|getatt|reference|include)  # a tag of YAML
    |[A-Za-z_]\w*\[.*                                           # a type, an element
    |\#[0-9a-fA-F]{3,8}|\*+|\.+|-+|_+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+  # a colour, a mask, the name of a variable
    """
)
_REGEX = re.compile(
    r"\(\?[=!:<P]|\[[^\]]{0,20}[a-zA-Z0-9]-[a-zA-Z0-9]|\\[dwDSW][+*{\])]|[^0-9]\{\d+,\d*\}?|[+*]\$[/'\"]?$"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_FINGERPRINT = re.compile(r"[0-9A-F]{40}")
_PRODUCT_KEY = re.compile(r"(?:[A-Z0-9]{5}-?){4,5}")
_GENERIC = re.compile(r"(?i)\bkms\b|gvlk|generic|evaluation|trial|setup key")
_INNER_SYMBOL = re.compile(
    r"(?<=[\w@#$%^&*+=~])[@#$%^&*!+=~?](?=[\w@#$%^&*!+=~?])|^[@#$%^&*!~](?=\w)|\w[#$%^&*=~]$|[!?#$]{2,}$"
)
_NAME = re.compile(
    r"(?i)(?<![a-z])(?:prod|db|web|srv|server|host|node|app|api|dev|staging|test|auth|users?|team|polic[a-z]+|[a-z]*server|factor|svc|vm"
    r"|ns|mail|vpn|nas|env|key|token|secret|v|eu|us|cluster|role|id|page|line|step|version|gpt|sha|release|branch|bug"
    r"|issue|ticket|room|level|rule|chapter|section|item|option|day|week|phase|sprint|model|base|build)(?![a-z])"
)
_CHARSET = re.compile(r"[a-z]{1,7}[-_]\d")
_HYPHENATED = re.compile(r"[a-z]+(?:[-'][a-z]+)*", re.IGNORECASE)
_PASSPHRASE = re.compile(r"[A-Za-z]{3,}(?:[-_. ][A-Za-z]{3,}){3,}\d*")
_HOST = re.compile(r"[A-Za-z][a-z]*(?:-[a-z]+){0,2}-?\d{1,3}")
_MESSAGE = re.compile(
    r"(?i)\b(?:your|must|enter|invalid|forgot|incorrect|please|required|cannot|error|failed|characters|digits)\b"
)
_QUOTED_PROSE = re.compile(
    r"(?i)\b(?:your|must|enter|invalid|forgot|incorrect|please|too|required|cannot|the|is|not|reset|field|does|has|was|error|failed)\b"
)
_OTHER_SCRIPT = re.compile(r"[\u0530-\u1fff\u2e80-\ufffb]")
_LATIN = str.maketrans("øæœßłđıØÆŁĐ", "oaesldiOALD")
_TRAILING = ".,;:)]}>\"'`*|"
_QUOTES = "\"'`*_"


def trim_value(text: str, start: int, end: int) -> tuple[int, int]:
    """Strip quotes around a range and punctuation after it."""
    # A parameter of a URL ends at the next ampersand.
    if "&" in text[start:end] and "=" in text[max(0, start - 1) : start]:
        end = start + text[start:end].index("&")
    while start < end and text[start] in "\"'`*(":
        start += 1
    # In a text of another script, the sentence may go on without a space.
    if start < end and text[start].isascii() and (foreign := _OTHER_SCRIPT.search(text, start, end)):
        end = foreign.start()
    while end > start and text[end - 1] in _TRAILING:
        end -= 1
    return start, end


def is_uuid(value: str) -> bool:
    """Return True for a UUID, which only wording tells from an id."""
    return _UUID.fullmatch(value) is not None


def is_value(text: str, start: int, end: int, trust: Certainty, *, is_many: bool) -> bool:
    """Return True if the range is a credential, given how it was announced.

    `is_many` says that several values or none in particular were announced; a bare number is then rather a count.
    """
    value = text[start:end].rstrip("!?")
    lower = value.lower()
    is_quoted = start > 0 and end < len(text) and text[start - 1] == text[end] and text[end] in "\"'`"
    # The most frequent case by far: an ordinary word.
    if (
        value.isalpha()
        and value[1:].islower()
        and lower not in WEAK
        and not is_quoted
        and trust is not Certainty.ASSIGNED
    ):
        return False
    is_mask = len(set(value)) < 3 if value.isdigit() else is_placeholder(value.ljust(5, "\0"))
    if not value or not value.translate(_LATIN).isascii() or lower in DESCRIPTIONS or is_mask:
        return False
    is_random_path = (
        "/" in value
        and not value.startswith(("arn:", "aws:"))
        and len(value) >= 20
        and count_class_changes(value) >= 0.2 * len(value)
    )
    if _REGEX.search(value) or (_STRUCTURED.fullmatch(value) and not _UUID.fullmatch(value) and not is_random_path):
        return False
    if _TECH.fullmatch(value) or _ODD_WORDS.fullmatch(value) or _UNIT.fullmatch(value):
        return False
    if _PRODUCT_KEY.fullmatch(value) and _GENERIC.search(text, max(0, start - 80), end + 60):
        return False
    is_last = (
        end >= len(text) or not text[end : end + 6].lstrip(_QUOTES + ").!,; \t")[:1].isalnum() or text[end] in ".,;\n"
    )
    if lower in WEAK and (is_last or lower not in WEAK_IF_LAST):
        return (trust is not Certainty.LOOSEST and trust is not Certainty.TOKEN) or any(c.isdigit() for c in value)
    # An exclamation mark after letters and digits is part of the password.
    if end - start > len(value) and trust is Certainty.LOOSE and any(c.isdigit() for c in value):
        value = text[start:end]
    return _looks_secret(value, trust, is_quoted=is_quoted, is_many=is_many)


def _looks_secret(value: str, trust: Certainty, *, is_quoted: bool, is_many: bool) -> bool:
    """Return True if the characters of `value` look like a credential."""
    has_digit, has_letter = any(c.isdigit() for c in value), any(c.isalpha() for c in value)
    if trust is Certainty.ASSIGNED:
        return len(value) >= MIN_PASSWORD_CHARS and (has_digit or has_letter) and is_stated_password(value)
    if trust is Certainty.PASSWORD:
        return _is_password(value, has_digit, has_letter, is_quoted=is_quoted, is_many=is_many)
    if trust is Certainty.TOKEN:
        return (
            len(value) >= MIN_TOKEN_CHARS
            and " " not in value
            and (_is_mixed(value, has_digit, has_letter) or bool(_UUID.fullmatch(value)))
        )
    if trust is Certainty.LOOSE:
        is_symbolic = bool(_INNER_SYMBOL.search(value)) and (has_digit or any(c.isupper() for c in value[1:]))
        is_mixed = (
            has_digit
            and has_letter
            and not _HOST.fullmatch(value)
            and "/" not in value
            and _is_mixed(value, True, True)
        )
        return len(value) >= MIN_LOOSE_CHARS and (is_symbolic or is_mixed)
    return (
        len(value) >= MIN_LOOSEST_CHARS
        and not _UUID.fullmatch(value)
        and not _FINGERPRINT.fullmatch(value)
        and has_digit
        and has_letter
        and count_class_changes(value) >= max(4, 0.15 * len(value))
    )


def _is_password(value: str, has_digit: bool, has_letter: bool, *, is_quoted: bool, is_many: bool) -> bool:
    if len(value) < MIN_PASSWORD_CHARS:
        return False
    if is_quoted and " " in value:
        return (
            not (_MESSAGE if has_digit else _QUOTED_PROSE).search(value)
            and is_stated_password(value)
            and len(value) >= 8
        )
    if is_quoted and has_letter and not _QUOTED_PROSE.search(value):
        return True
    if has_digit and not has_letter:
        return not is_many and value.isdigit() and len(value) <= 16
    if has_digit:
        return not _is_dashed_words(value) or not is_name(value)
    return bool(_INNER_SYMBOL.search(value) or _PASSPHRASE.fullmatch(value)) or _is_jumble(value)


def _is_dashed_words(value: str) -> bool:
    """Return True for names of words and numbers such as `two-factor-auth-v2` or `prod-db-01`."""
    pieces = re.split(r"[-_.]", value)
    return len(pieces) > 1 and all(
        re.fullmatch(r"[A-Z]?[a-z]+|[A-Z]+|\d{1,4}|v\d+|[a-z]+\d", piece) for piece in pieces
    )


def is_name(value: str) -> bool:
    """Return True if dashed words name a thing, as in `prod-db-01`, and not a password such as `blue-kettle-9`."""
    return (
        _NAME.search(value) is not None
        or not re.search(r"[A-Za-z][a-z]{3}", value)
        or _CHARSET.fullmatch(value) is not None
    )


def _is_jumble(value: str) -> bool:
    """Return True for random letters such as `xKqWzRbT`, but not for names such as `LastPass` or `PostgreSQL`."""
    return len(value) >= 8 and value.isalpha() and count_class_changes(value) >= max(3, 0.2 * len(value))


def _is_mixed(value: str, has_digit: bool, has_letter: bool) -> bool:
    """Return True if letters and digits alternate, or if the letters form no words."""
    if has_digit and has_letter and not _is_dashed_words(value):
        return (
            count_class_changes(value) >= 2
            or len(re.findall(r"\d", value)) >= 3
            or (count_class_changes(value) >= 1 and len(value) >= 8)
        )
    return _is_jumble(value)
