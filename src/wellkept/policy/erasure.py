"""Subjects of erasures, and the search for their mentions.

Mentions are found regardless of case, accents, white space, invisible and look-alike characters. A mention may be part
of a word, so that no inflected form is left behind.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from wellkept.errors import Invalid
from wellkept.model import Receipt, Subject, SubjectKind
from wellkept.policy.audit import canonical_json
from wellkept.policy.names import check_user, memory_seq
from wellkept.policy.secrets.text import look_up_shape
from wellkept.policy.text import content_hash, fold

MIN_CHARS, MAX_CHARS = 2, 500
ERASED = "[erased]"
"""Replacement for an erased text that must leave a mark: in a conversation or in the audit log."""

EXCERPT_CHARS = 80
OWN_EVENTS = frozenset(["turn.add", "turn.secret"])
"""Our own events whose first word programs may use as well."""

OWN_WORDS = frozenset(
    """a added admin agent allowed and api_response applied approved archived are as asked assistant be begun by came
    cannot characters command_output completed consolidate conversation core corrected could covers deleted detail
    digest document edited episode episodes file_content flagged fold folded for forgotten from hold id ids import
    into it its journal key kind like looked made maintenance meant memories memory message messages model no not
    note of old oldest or out passage passages piece pieces positions proposal proposals pruned pruned_ids read recorded
    refused rejected removed review room rules scope secret seems session session_id stands stay stays step steps
    stored summary system text that the their they to tokens tool_result truncated turns undone used user version
    was were without words workflow working workspace write""".split()
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
        # A mention may be longer than the folded needle: by white space, and by characters that folding shortens.
        return 4 * max(len(each.text) for each in self._forms if each is not None) + 64

    def is_in(self, text: str) -> bool:
        """Return True if the text mentions the needle.

        >>> Needle("mara  lindqvist").is_in("Call MARA\\nLindqvist back"), Needle("Mara Lee").is_in("for mara-lee-2")
        (True, True)
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

    def has_own_words_only(self) -> bool:
        """Return True if every word is one that our own events use."""
        return any(form is not None and OWN_WORDS.issuperset(form.text.split()) for form in self._forms)

    def _pairs(self, text: str) -> Iterator[tuple[_Form, str]]:
        """Yield the distinct readings of the needle, each with that of a text."""
        for form, reading in dict.fromkeys(zip(self._forms, read_shapes(text), strict=True)):
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

    def is_in(self, reading: str) -> bool:
        if self.text in reading or (self._run and self._run in reading):
            return True
        return bool(self._joined) and self._joined in _JOINTS.sub(" ", reading)

    def is_word_in(self, reading: str) -> bool:
        words = _JOINTS.sub(" ", reading)
        return self._word.search(words) is not None or (bool(self._run) and self._run in words.split())


def foreign_words(texts: Iterable[str]) -> str:
    """Return the words of our own events that are not our own words.

    >>> foreign_words(["Session mara-1 was begun."])
    'mara-1'
    """
    words = " ".join(texts).replace('"', " ").split()
    return " ".join(word for word in words if fold(word).strip(".,:;()[]{}") not in OWN_WORDS)


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[: 4 * EXCERPT_CHARS].split())
    return line if len(line) <= EXCERPT_CHARS else f"{line[: EXCERPT_CHARS - 1]}…"


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

MARKED: Mapping[str, tuple[str, str]] = {
    "memories": ("text", "created_at"),
    "memory_versions": ("text", "replaced_at"),
    "proposals": ("text", "created_at"),
    "details": ("key", "created_at"),
    "chat_sessions": ("id", "created_at"),
    "chat_messages": ("content", "created_at"),
    "kb_documents": ("id", "content_hash"),
    "kb_chunks": ("text", "document_id"),
    "workflows": ("id", "created_at"),
    "workflow_steps": ("output", "completed_at"),
    "audit_log": ("message", "at"),
}
"""Columns by which an erased row is recognised: its first text or id, and what tells it from rows with the same."""

_BY_ROW = frozenset(["details", "chat_sessions", "kb_documents", "workflows", "audit_log"])


def mark_row(table: str, text: str, made: str) -> str:
    """Return what recognises a row, or another with its text, after it was erased.

    >>> mark_row("memories", "Mara likes green tea", "2026") == mark_row("chat_messages", "mara likes GREEN tea", "")
    True
    """
    digest = content_hash(text)
    if table in _BY_ROW:
        return f"{table} {made} {digest}"
    is_telling = len(text.split()) >= MIN_TEXT_WORDS or len(text) >= MIN_TEXT_CHARS
    return f"text {digest}" if is_telling else f"short {made} {digest}"


def hash_mark(salt: str, mark: str) -> str:
    """Return the hash under which a mark is stored; it begins with the salt."""
    return salt + hmac.new(salt.encode(), mark.encode(), hashlib.sha256).hexdigest()[:32]
