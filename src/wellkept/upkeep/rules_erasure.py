"""Subjects and receipts of erasures, and the marks by which an import recognises what was erased.

Search for mentions of a text in other texts.

Mentions are found regardless of case, accents, white space, invisible and look-alike characters. A mention may be part
of a word, so that no inflected form is left behind. The words of a name are also found in another order ("Lindqvist,
Mara"), with punctuation, markup or an initial between them, in escaped text and broken at the end of a line.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from typing import Any

from wellkept.errors import Invalid
from wellkept.history.rules_history import canonical_json
from wellkept.language.names import check_user, memory_seq
from wellkept.language.text import STOPWORDS, content_hash, fold
from wellkept.model import Json, Receipt, Subject, SubjectKind
from wellkept.secrets.rules_text import look_up_shape
from wellkept.transfer.rules import read_facts

ERASED = "[erased]"
"""Replacement for an erased text that must leave a mark: in a conversation or in the audit log."""

ERASED_ACTION = "event.erased"
"""Replacement for the action of an event that mentions what was erased."""

EXCERPT_CHARS = 80


class _Shapes(dict[int, str]):
    """Cached table for `str.translate` from each character to the letters it looks like; invisible ones vanish."""

    def __init__(self, *, is_cased: bool) -> None:
        self._is_cased = is_cased

    def __missing__(self, code: int) -> str:
        character = chr(code)
        looks = [character] if self._is_cased else [character.upper(), character.lower()]
        found = [look_up_shape(each) if len(each) == 1 else each for each in looks]
        is_mark = unicodedata.category(character) in ("Mn", "Me")
        # Letters of other scripts keep their marks, which make other letters of them there.
        plain = next((each for each in found if each.isascii() and (each.isalnum() or not each) and not is_mark), None)
        if plain is None:
            plain = "" if _MARKS.match(character) else unicodedata.normalize("NFKC", character).casefold()
        if len(self) < MAX_SHAPES:
            self[code] = plain.lower()
        return plain.lower()


MAX_SHAPES = 20_000
# Variation selectors, and the accents and overlays that any letter can get.
_MARKS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]")
# A capital may look like another letter than its small form (Ν, ν), so one table reads both as the capital.
_TABLES = (_Shapes(is_cased=True), _Shapes(is_cased=False))
# What stands between the words of a name in ids and addresses.
_JOINTS = re.compile(r"(?:[\s\-_.+:@/]|%20)+")

MIN_JOINED_WORD, MIN_JOINED = 3, 6
"""Minimum characters of each word, and of all, of a name that is also found without anything between its words."""


def read_shapes(text: str) -> tuple[str, ...]:
    """Return the readings of a text in which mentions are searched: folded, and as it looks.

    >>> read_shapes("M\u0430r\u200ba")[1], read_shapes("Zo\u00eb"), read_shapes("Ann")
    ('mara', ('zoë', 'zoe', 'zoe'), ('ann', 'ann', 'ann'))
    """
    if text.isascii():
        return (text.lower(),) * 3
    composed = unicodedata.normalize("NFC", text)
    return (fold(text), *(composed.translate(table) for table in _TABLES))


class Needle:
    """A text whose mentions are searched.

    A mention may be written with look-alike or invisible characters. Of several words, it may also be an id or an
    address: mara-lindqvist, mara.lindqvist@example.org, maralindqvist.
    """

    def __init__(self, text: str) -> None:
        # A reading without anything visible in it would be everywhere.
        texts = [" ".join(each.split()) for each in read_shapes(text)]
        known = {each: _Form(each) for each in texts if each}
        self._forms = [known.get(each) for each in texts]
        parts = [re.escape(part) for part in text.split()]
        self._pattern = re.compile(r"\s+".join(parts), re.IGNORECASE)

    @property
    def reach(self) -> int:
        """Number of visible characters that two pieces of a text share, so that no mention between them is missed."""
        # A mention may be longer than the folded needle: by white space and escapes, and by what folding shortens.
        return 8 * max(len(each.text) for each in self._forms if each is not None) + 64

    def is_in(self, text: str) -> bool:
        """Return True if the text mentions the needle.

        >>> Needle("mara  lindqvist").is_in("Call MARA\\nLindqvist back"), Needle("Mara Lee").is_in("for mara-lee-2")
        (True, True)
        >>> [Needle("Mara Lee").is_in(each) for each in ("Lee, Mara", "**Mara** J. Lee", "Mara&nbsp;Lee", "Marlee, Ma")]
        [True, True, True, False]
        """
        return any(form.is_in(reading) for form, reading in self._pairs(text))

    def is_in_any(self, texts: Iterable[str]) -> bool:
        return any(self.is_in(text) for text in texts)

    def is_word_in(self, text: str) -> bool:
        """Return True if whole words of a text or id are the needle.

        >>> Needle("Ann").is_word_in("ann-bot"), Needle("Ann").is_word_in("annual-report")
        (True, False)
        """
        return any(form.is_word_in(reading) for form, reading in self._pairs(text))

    def has_own_words_only(self, words: frozenset[str]) -> bool:
        """Return True if every word is one of these, which our own events use."""
        return any(form is not None and words.issuperset(form.text.split()) for form in self._forms)

    def _pairs(self, text: str) -> Iterator[tuple[_Form, str]]:
        """Yield the distinct readings of the needle, each with that of a text."""
        plain = unescape(text)
        texts = (text,) if plain == text else (text, plain)
        readings = (
            (form, reading) for each in texts for form, reading in zip(self._forms, read_shapes(each), strict=True)
        )
        for form, reading in dict.fromkeys(readings):
            if form is not None:
                yield form, reading

    def replaced(self, text: str) -> str:
        """Replace each mention by a mark; return only the mark if a mention cannot be separated from its context."""
        cleaned = self._pattern.sub(ERASED, text)
        return ERASED if self.is_in(cleaned) else cleaned

    def excerpt(self, text: str) -> str:
        """Return the surroundings of the first mention on one line."""
        found = self._pattern.search(text)
        start = max(0, found.start() - EXCERPT_CHARS // 3) if found else 0
        return excerpt(text[start:])


class _Form:
    """One reading of a needle."""

    def __init__(self, text: str) -> None:
        words = text.split()
        self.text = text
        self._joined = _JOINTS.sub(" ", text).strip() if len(words) > 1 else ""
        is_long = min(map(len, words)) >= MIN_JOINED_WORD and len(text) - len(words) + 1 >= MIN_JOINED
        self._run = "".join(words) if self._joined and is_long else ""
        self._word = re.compile(rf"(?<!\w){re.escape(_JOINTS.sub(' ', text).strip() or text)}(?!\w)")
        letter = _letter()
        self._parts = re.findall(f"{letter}+", text) if self._joined else []
        self._apart = [re.compile(each) for each in _write_patterns(self._parts, letter)]

    def is_in(self, reading: str) -> bool:
        if self.text in reading or (self._run and self._run in reading):
            return True
        # Few texts hold all the words, and looking for a word is quick.
        if not self._joined or not all(part in reading for part in self._parts):
            return False
        return self._joined in _JOINTS.sub(" ", reading) or any(each.search(reading) for each in self._apart)

    def is_word_in(self, reading: str) -> bool:
        words = _JOINTS.sub(" ", reading)
        if self._word.search(words) is not None or (bool(self._run) and self._run in words.split()):
            return True
        return any(each.search(reading) for each in self._apart[1:])


MAX_NAME_WORDS = 4
"""Maximum words of a name that are also found with the last of them in front."""

_TAG = "<[^<>]{1,300}>"


@cache
def _letter() -> str:
    """Return the pattern of a letter, a digit or a mark that belongs to the letter before it."""
    codes = (code for code in range(0x300, 0x1F000) if unicodedata.category(chr(code)).startswith("M"))
    runs = ([code for _, code in run] for _, run in groupby(enumerate(codes), lambda pair: pair[1] - pair[0]))
    marks = "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)
    return rf"(?:[^\W_]|[{marks}])"


def _write_patterns(parts: list[str], letter: str) -> Iterator[str]:
    """Yield patterns of a name whose words stand apart: in order first, then with the last of them in front.

    Between two words may be punctuation, markup and initials. What ends a sentence separates the last word from the
    first, and neither ordinary words nor numbers change places: they are no names.
    """
    if len(parts) < 2:
        return
    # Possessive, so that a text full of brackets takes no longer than others.
    gap = rf"(?:{_TAG}|(?!{letter})[\W_])++"
    # Without a dot, a vowel is a word in many languages.
    initial = rf"(?:[^\W\d_]\.|[^\W\d_aeiouy](?!{letter}))"
    between = rf"{gap}(?:{initial}(?:{gap})?){{0,3}}"
    start = r"(?<![^\W_])"
    escaped = [re.escape(part) for part in parts]
    yield start + between.join(escaped)
    is_name = len(parts) <= MAX_NAME_WORDS and not any(
        part in STOPWORDS or part.isdigit() or (part.isascii() and len(part) == 1) for part in parts
    )
    turn = rf"(?!(?:(?!{letter})[\W_])*?(?:[.!?\u2026\u3002]\s|\n\s*\n)){between}"
    for place in range(1, len(parts)) if is_name else ():
        yield f"{start}{between.join(escaped[place:])}{turn}{between.join(escaped[:place])}(?!{letter})"


_ESCAPE = re.compile(r"\\(?:u\{?([0-9a-fA-F]{4,6})\}?|x([0-9a-fA-F]{2})|([nrt]))")
# As in URLs, and in mail.
_QUOTED = re.compile("(?:[%=][0-9a-fA-F]{2})+")
# A word that goes on in the next line, which may be quoted or a comment.
_BROKEN = re.compile("(?<=\\w)[-\u2010\u00ad=][ \\t\\r]*\n[\\s>|*#/]*(?=\\w)")


def unescape(text: str) -> str:
    """Return a text without the escapes of HTML, JSON, URLs and mail, and without hyphens at the ends of lines.

    >>> unescape("Zo&euml; K\\\\u00f6nig%20Ann"), unescape("Lind-\\n> qvist")
    ('Zoë König Ann', 'Lindqvist')
    """
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text:
        text = _ESCAPE.sub(_read_escape, text)
    if "%" in text or "=" in text:
        text = _QUOTED.sub(_read_bytes, text)
    return _BROKEN.sub("", text) if "\n" in text else text


def _read_bytes(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("%", "").replace("=", "")).decode(errors="replace")


def _read_escape(match: re.Match[str]) -> str:
    code = int(match[1] or match[2] or "20", 16)
    # A surrogate is half a character.
    return " " if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[: 4 * EXCERPT_CHARS].split())
    return line if len(line) <= EXCERPT_CHARS else f"{line[: EXCERPT_CHARS - 1]}…"


MIN_CHARS, MAX_CHARS = 2, 500
OWN_EVENTS = frozenset(["turn.add", "turn.secret"])
"""Our own events whose first word programs may use as well."""

OWN_WORDS = frozenset(
    """a added admin agent allowed and api_response applied approved archived are as asked assistant be begun by
    came cannot cause change characters command_output completed consolidate consolidation contradict
    conversation core corrected could covers deleted detail digest document edited episode episodes file_content
    flagged fold folded for forgotten from hold id ids import into it its journal key kind like looked made
    maintenance meant memories memory message messages model no not note of old oldest or out passage passages
    piece pieces positions proposal proposals proposed pruned pruned_ids read recorded refused rejected removed
    repeat review room rules scope secret seems session session_id stands stay stays step steps stored summary
    system text that the their they to tokens tool_result truncated turns undone used user version was were
    without words workflow working workspace write""".split()
)
"""Words that our own events consist of. Anything else in them is an id, which may name a person."""

SUBJECT_HELP = (
    "Name what to erase: user:ID, agent:ID, session:ID, memory:AGENT/ID, tenant:ID for everything, or text:WORDS for "
    "everything that mentions them."
)


def parse_subject(subject: str, tenant: str) -> Subject | None:
    """Parse a subject; return None for words without a kind in front, which may be anything.

    >>> parse_subject("memory:atlas/m-7", "acme").id, parse_subject("Mara Lindqvist", "acme")
    ('m-7', None)

    Raises: Invalid.
    """
    word, colon, rest = subject.partition(":")
    if not subject.strip() or (colon and not rest.strip()):
        raise Invalid(f"The subject is empty. {SUBJECT_HELP}")
    if not colon or word.strip().lower() not in [*SubjectKind]:
        return None
    kind, name = SubjectKind(word.strip().lower()), rest.strip()
    if kind is SubjectKind.TENANT:
        if name != tenant:
            raise Invalid(f"A tenant can only erase itself. To erase everything here, use tenant:{tenant}.")
        return Subject(kind=kind)
    if kind is SubjectKind.AGENT:
        return Subject(kind=kind, agent=name)
    if kind in (SubjectKind.SESSION, SubjectKind.USER):
        return Subject(kind=kind, id=check_user(name) if kind is SubjectKind.USER else name)
    if kind is SubjectKind.MEMORY:
        agent, slash, id = name.rpartition("/")
        if not slash or memory_seq(id) is None:
            raise Invalid("Name a memory by its agent and its id: memory:atlas/m-7.")
        return Subject(kind=kind, agent=agent, id=id)
    return text_subject(name)


def text_subject(text: str) -> Subject:
    """Build a subject for all mentions of a text.

    Raises: Invalid when it is too short to be specific, or too long to be a mention.
    """
    words = " ".join(fold(text).split())
    if not MIN_CHARS <= len(words) <= MAX_CHARS:
        raise Invalid(f"A text to erase must have {MIN_CHARS} to {MAX_CHARS} characters; this one has {len(words):,}.")
    return Subject(kind=SubjectKind.TEXT, text=text)


def subject_hash(tenant: str, subject: Subject) -> str:
    """Return a hash of a tenant's subject that does not depend on how it is written."""
    identity = [tenant, subject.kind.value, subject.agent, subject.id, " ".join(fold(subject.text).split())]
    return hashlib.sha256(json.dumps(identity, ensure_ascii=False).encode()).hexdigest()


def foreign_words(texts: Iterable[str]) -> str:
    """Return the words of our own events that are not our own words.

    >>> foreign_words(["Session mara-1 was begun."])
    'mara-1'
    """
    words = " ".join(texts).replace('"', " ").split()
    return " ".join(word for word in words if fold(word).strip(".,:;()[]{}") not in OWN_WORDS)


def has_name_line(texts: Iterable[str], names: Collection[str]) -> bool:
    """Return True if one of these names is a whole line, as names in stored JSON are.

    A passage is named by its document and position, so a document's name matches its passages as well.

    >>> has_name_line(["m-7\\nplan#3"], ["plan"]), has_name_line(["m-71"], ["m-7"])
    (True, False)
    """
    lines = {line for text in texts for line in text.split("\n")}
    return not (lines | {line.partition("#")[0] for line in lines}).isdisjoint(names)


def add_counts(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Add two sets of counts and drop zeros.

    >>> add_counts({"memories": 1}, {"memories": 2, "details": 0})
    {'memories': 3}
    """
    both = {name: first.get(name, 0) + second.get(name, 0) for name in (*first, *second)}
    return {name: count for name, count in sorted(both.items()) if count}


def receipt_hash(receipt: Receipt | Mapping[str, Any]) -> str:
    """Return the hash that an unmodified receipt must have: of its canonical JSON without `hash` and `found`.

    A receipt that was delivered as JSON has the same hash.
    """
    fields = asdict(receipt) if isinstance(receipt, Receipt) else receipt
    content = {name: _to_json(value) for name, value in fields.items() if name not in ("hash", "found")}
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def is_as_issued(receipt: Receipt | Mapping[str, Any]) -> bool:
    """Return True if a receipt, also as its JSON was delivered, has the hash that it must have."""
    fields = asdict(receipt) if isinstance(receipt, Receipt) else receipt
    try:
        return bool(fields.get("hash") == receipt_hash(fields))
    except (TypeError, ValueError, RecursionError):
        # No receipt that was issued holds what JSON in UTF-8 cannot.
        return False


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return list(value) if isinstance(value, tuple) else value


SALT_CHARS = 16
MIN_TEXT_WORDS, MIN_TEXT_CHARS = 4, 24
"""A text with this many words or characters is recognised wherever it stands; a shorter one only in its own row."""

MARKED: Mapping[str, tuple[str, str]] = read_facts("mark")
UNMARKED, BY_ID = frozenset(read_facts("unmarked")), frozenset(read_facts("by_id"))

_NAMING = {"agent_id": SubjectKind.AGENT, "session_id": SubjectKind.SESSION, "user_id": SubjectKind.USER}
"""Columns that name an agent, a conversation or a user, whose rows are all recognised."""

_NAMED_APART = frozenset(["audit_log", "chat_messages"])
"""Tables with rows that lose their text and stay, whatever they name."""


def mark_row(table: str, text: str, made: str) -> str:
    """Return what recognises a row, or another with its text, after it was erased.

    >>> mark_row("memories", "Mara likes green tea", "2026") == mark_row("chat_messages", "mara likes GREEN tea", "")
    True
    """
    digest = content_hash(text)
    if table in BY_ID or table == "audit_log":
        return f"{table} {made} {digest}"
    is_telling = len(text.split()) >= MIN_TEXT_WORDS or len(text) >= MIN_TEXT_CHARS
    return f"text {digest}" if is_telling else f"short {made} {digest}"


def mark_cleared(mark: str) -> str:
    """Return what recognises a row that stayed and lost its texts, by the mark of the row."""
    return f"cleared {mark}"


def mark_subject(kind: SubjectKind, id: str) -> str:
    """Return what recognises the rows of an erased agent, conversation or user: those made until then."""
    return f"subject {kind.value} {content_hash(id)}"


def list_subject_marks(table: str, row: Json) -> list[str]:
    """Return the marks of all that a row of an export belongs to."""
    if table in _NAMED_APART:
        return []
    return [mark_subject(kind, row[column]) for column, kind in _NAMING.items() if row.get(column)]


def blank_row(table: str, row: Json) -> Json:
    """Return a row of an export without the texts that were erased, of a table whose rows keep their place."""
    if table == "chat_messages":
        return row | {"content": ERASED}
    if table == "chat_sessions":
        return row | {"summary": "", "summarized_count": 0, "metadata": {}}
    # A limit to certain categories stays a limit, to none.
    limits = [ERASED] if row["knowledge_categories"] else []
    texts = dict.fromkeys(("model", "colour", "icon"), "") | dict.fromkeys(("name", "system_prompt"), ERASED)
    return row | texts | {"tools": [], "knowledge_categories": limits}


def hash_mark(salt: str, mark: str) -> str:
    """Return the hash under which a mark is stored; it begins with the salt."""
    return salt + hmac.new(salt.encode(), mark.encode(), hashlib.sha256).hexdigest()[:32]
