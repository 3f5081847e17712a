"""Subjects of erasures, and the search for their mentions.

Mentions are found regardless of case, Unicode composition and white space. A mention may be part of a word, so that no
inflected form is left behind.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict

from recollect.errors import Invalid
from recollect.model import Receipt, Subject, SubjectKind
from recollect.policy.names import memory_seq
from recollect.policy.text import check_text, fold

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
    "Name what to erase: agent:ID, session:ID, memory:AGENT/ID, tenant:ID for everything, or text:WORDS for everything "
    "that mentions them."
)


def parse_subject(subject: str, tenant: str) -> Subject | None:
    """Parse a subject; return None for words without a kind in front, which may be anything.

    >>> parse_subject("memory:atlas/m-7", "acme").id, parse_subject("Mara Lindqvist", "acme")
    ('m-7', None)

    Raises: Invalid.
    """
    check_text(subject, what="subject")
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
    if kind is SubjectKind.SESSION:
        return Subject(kind=kind, id=name)
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


class Needle:
    """A text whose mentions are searched."""

    def __init__(self, text: str) -> None:
        self._folded = " ".join(fold(text).split())
        parts = [re.escape(part) for part in text.split()]
        self._pattern = re.compile(r"\s+".join(parts), re.IGNORECASE)

    @property
    def reach(self) -> int:
        """Number of characters that two pieces of a text must share so that no mention is missed between them."""
        # A mention may be longer than the folded needle: by white space, and by characters that folding shortens.
        return 4 * len(self._folded) + 64

    def is_in(self, text: str) -> bool:
        """Return True if the text mentions the needle.

        >>> Needle("mara  lindqvist").is_in("Call MARA\\nLindqvist back")
        True
        """
        folded = fold(text)
        return self._folded in folded or (" " in self._folded and self._folded in " ".join(folded.split()))

    def is_in_any(self, texts: Iterable[str]) -> bool:
        return any(self.is_in(text) for text in texts)

    def replaced(self, text: str) -> str:
        """Replace each mention by a mark; return only the mark if a mention cannot be separated from its context."""
        cleaned = self._pattern.sub(ERASED, text)
        return ERASED if self.is_in(cleaned) else cleaned

    def excerpt(self, text: str) -> str:
        """Return the surroundings of the first mention on one line."""
        found = self._pattern.search(text)
        start = max(0, found.start() - EXCERPT_CHARS // 3) if found else 0
        return excerpt(text[start:])


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


def receipt_hash(receipt: Receipt) -> str:
    """Return the hash that an unmodified receipt must have."""
    content = {name: value for name, value in asdict(receipt).items() if name not in ("hash", "found")}
    return hashlib.sha256(json.dumps(content, ensure_ascii=False, sort_keys=True, default=str).encode()).hexdigest()
