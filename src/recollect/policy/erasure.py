"""Whom or what an erasure is about, and where it is mentioned.

A mention is found without regard to case, to composed or decomposed characters and to white space. It is a part of a
text, not a word: what is erased must not be left behind an ending.
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
from recollect.policy.text import checked_text, fold

MIN_CHARS, MAX_CHARS = 2, 500
ERASED = "[erased]"
"""Stands where a text was that cannot go without a hole: in a conversation, or in the audit log."""

EXCERPT_CHARS = 80
OWN_EVENTS = frozenset(["turn.add", "turn.secret"])
"""Events of ours whose first word programs may use as well."""

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
"""Words our own events are made of. What else they hold are ids, which may name somebody."""

HOW = (
    "Say what to erase: agent:ID, session:ID, memory:AGENT/ID, tenant:ID for everything, or text:WORDS for all that "
    "mentions them."
)


def parsed_subject(said: str, tenant: str) -> Subject | None:
    """What a caller means; None for words without a kind in front, which may be anything.

    >>> parsed_subject("memory:atlas/m-7", "acme").id, parsed_subject("Mara Lindqvist", "acme")
    ('m-7', None)

    Raises: Invalid.
    """
    checked_text(said, what="subject")
    word, colon, rest = said.partition(":")
    if not said.strip() or (colon and not rest.strip()):
        raise Invalid(f"The subject is empty. {HOW}")
    if not colon or word.strip().lower() not in [*SubjectKind]:
        return None
    kind, named = SubjectKind(word.strip().lower()), rest.strip()
    if kind is SubjectKind.TENANT:
        if named != tenant:
            raise Invalid(f"A tenant erases itself and nobody else: to erase everything here, say tenant:{tenant}.")
        return Subject(kind=kind)
    if kind is SubjectKind.AGENT:
        return Subject(kind=kind, agent=named)
    if kind is SubjectKind.SESSION:
        return Subject(kind=kind, id=named)
    if kind is SubjectKind.MEMORY:
        agent, slash, id = named.rpartition("/")
        if not slash or memory_seq(id) is None:
            raise Invalid("A memory is named by its agent and its id: memory:atlas/m-7.")
        return Subject(kind=kind, agent=agent, id=id)
    return text_subject(named)


def text_subject(text: str) -> Subject:
    """Raises: Invalid when it is too short to mean anything, or too long to be a mention."""
    words = " ".join(fold(text).split())
    if not MIN_CHARS <= len(words) <= MAX_CHARS:
        raise Invalid(f"A text to erase has {MIN_CHARS} to {MAX_CHARS} characters; this one has {len(words):,}.")
    return Subject(kind=SubjectKind.TEXT, text=text)


def subject_hash(tenant: str, subject: Subject) -> str:
    """The same for the same subject of a tenant, however it is written."""
    named = [tenant, subject.kind.value, subject.agent, subject.id, " ".join(fold(subject.text).split())]
    return hashlib.sha256(json.dumps(named, ensure_ascii=False).encode()).hexdigest()


class Needle:
    """Something that may be mentioned."""

    def __init__(self, text: str) -> None:
        self._words = " ".join(fold(text).split())
        parts = [re.escape(part) for part in text.split()]
        self._written = re.compile(r"\s+".join(parts), re.IGNORECASE)

    @property
    def reach(self) -> int:
        """How many characters two pieces of a text must share, so that nothing falls between them."""
        return 4 * len(self._words) + 64

    def is_in(self, text: str) -> bool:
        """
        >>> Needle("mara  lindqvist").is_in("Call MARA\\nLindqvist back")
        True
        """
        folded = fold(text)
        return self._words in folded or (" " in self._words and self._words in " ".join(folded.split()))

    def is_in_any(self, texts: Iterable[str]) -> bool:
        return any(self.is_in(text) for text in texts)

    def replaced(self, text: str) -> str:
        """`text` with a mark for each mention; nothing but the mark when one cannot be told from what surrounds it."""
        cleaned = self._written.sub(ERASED, text)
        return ERASED if self.is_in(cleaned) else cleaned

    def excerpt(self, text: str) -> str:
        """The surroundings of the first mention, in one line."""
        found = self._written.search(text)
        start = max(0, found.start() - EXCERPT_CHARS // 3) if found else 0
        return excerpt(text[start:])


def ids_in(texts: Iterable[str]) -> str:
    """What our own events say besides our own words.

    >>> ids_in(["Session mara-1 was begun."])
    'mara-1'
    """
    words = " ".join(texts).replace('"', " ").split()
    return " ".join(word for word in words if fold(word).strip(".,:;()[]{}") not in OWN_WORDS)


def excerpt(text: str) -> str:
    """The beginning of a text, in one line."""
    line = " ".join(text[: 4 * EXCERPT_CHARS].split())
    return line if len(line) <= EXCERPT_CHARS else f"{line[: EXCERPT_CHARS - 1]}…"


def names_in(texts: Iterable[str], names: Collection[str]) -> bool:
    """Whether one of these names stands in a line of its own, as names in stored JSON do; a passage is named by its
    document and its place, and a document's name is found in it.

    >>> names_in(["m-7\\nplan#3"], ["plan"]), names_in(["m-71"], ["m-7"])
    (True, False)
    """
    lines = {line for text in texts for line in text.split("\n")}
    return not (lines | {line.partition("#")[0] for line in lines}).isdisjoint(names)


def added(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """
    >>> added({"memories": 1}, {"memories": 2, "details": 0})
    {'memories': 3}
    """
    both = {name: first.get(name, 0) + second.get(name, 0) for name in (*first, *second)}
    return {name: count for name, count in sorted(both.items()) if count}


def receipt_hash(receipt: Receipt) -> str:
    """What a receipt must have as its hash, if nobody has changed it."""
    told = {name: value for name, value in asdict(receipt).items() if name not in ("hash", "found")}
    return hashlib.sha256(json.dumps(told, ensure_ascii=False, sort_keys=True, default=str).encode()).hexdigest()
