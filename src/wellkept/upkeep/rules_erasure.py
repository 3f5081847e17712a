"""Subjects and receipts of erasures, and the marks by which an import recognises what was erased."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from wellkept.errors import Invalid
from wellkept.history.rules_audit import canonical_json
from wellkept.language.names import check_user, memory_seq
from wellkept.language.text import content_hash, fold
from wellkept.model import Json, Receipt, Subject, SubjectKind
from wellkept.upkeep.rules_mentions import ERASED

MIN_CHARS, MAX_CHARS = 2, 500
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

MARKED: Mapping[str, tuple[str, str]] = {
    "agents": ("id", "created_at"),
    "memories": ("text", "created_at"),
    "memory_versions": ("text", "replaced_at"),
    "proposals": ("text", "created_at"),
    "details": ("key", "created_at"),
    "context_calls": ("id", "at"),
    "chat_sessions": ("id", "created_at"),
    "chat_messages": ("content", "created_at"),
    "kb_documents": ("id", "content_hash"),
    "kb_chunks": ("text", "document_id"),
    "workflows": ("id", "created_at"),
    "workflow_steps": ("output", "completed_at"),
    "secret_allowances": ("hash", "created_at"),
    "audit_log": ("message", "at"),
}
"""Columns by which an erased row is recognised: its text or id, and what tells it from rows with the same."""

UNMARKED: Mapping[str, str] = {
    "erased_texts": "holds the marks themselves",
    "shelves": "holds counters, and the last hash of the audit log",
}
"""Tables of an export whose rows are never erased, each with the reason."""

BY_ID = frozenset(
    ["agents", "details", "context_calls", "chat_sessions", "kb_documents", "workflows", "secret_allowances"]
)
"""Tables with rows that are recognised by their id."""

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
