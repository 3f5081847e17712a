"""One note as one line of JSON, and what is wrong with a line that is none.

Other programs write these lines too, so reading is forgiving where nothing is lost by it (missing or empty `scope` and
`tags`, unknown fields, any order, CRLF, a byte order mark) and otherwise says what a person should mend.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from recollect.errors import Invalid
from recollect.model import Kind, Memory, Owner, Scope
from recollect.policy.kinds import BLANK, RULES, checked_tags
from recollect.policy.names import memory_seq
from recollect.policy.text import checked_text, fold
from recollect.store.rows import folded_tags

MAX_SEQ = 2**53 - 1
"""Every reader of JSON counts this far exactly; a higher number in a file would only use up the ids."""

NOT_JSON = "It is not valid JSON."
CUT_OFF = "It was cut off: the end of the line is missing."

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"
_ID = re.compile(rb'"id"\s*:\s*"m-([1-9][0-9]{0,17})"')
# Legal inside a JSON string, but many programs take them for the end of a line.
_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Note:
    """A line that holds a note."""

    seq: int
    memory: Memory
    folded: str
    folded_tags: str
    digest: str  # of what it says


@dataclass(frozen=True, slots=True)
class Flaw:
    """A line that holds none, and why; the number in its id, if it has one, stays used."""

    reason: str
    seq: int = 0


def line_of(memory: Memory) -> bytes:
    """The note as a line, with its end."""
    fields = {
        "id": memory.id,
        "scope": memory.scope.value,
        "text": memory.text,
        "tags": list(memory.tags),
        "ts": memory.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS).encode() + b"\n"


def digest_of(note: Memory) -> str:
    """Return a short hash that changes with what a note says: its text and its tags."""
    return hashlib.sha256("\0".join([note.text, *note.tags]).encode(errors="surrogatepass")).hexdigest()[:16]


def parsed(raw: bytes, owner: Owner) -> Note | Flaw | None:
    """What a line, given without its end, holds; None for a blank one."""
    raw = raw.removeprefix(_BOM)
    if not raw.strip(_BLANKS):
        return None
    try:
        fields = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        return Flaw(f"It is not UTF-8 (byte {error.start + 1} of the line).", _number_in(raw))
    except (ValueError, RecursionError):
        return Flaw(NOT_JSON, _number_in(raw))
    try:
        memory = _memory(fields, owner)
    except Invalid as error:
        return Flaw(str(error), _number_in(raw))
    return Note(memory_seq(memory.id) or 0, memory, fold(memory.text), folded_tags(memory.tags), digest_of(memory))


def _memory(fields: Any, owner: Owner) -> Memory:
    """Raises: Invalid."""
    if not isinstance(fields, dict):
        raise Invalid("It is not a JSON object.")
    return Memory(
        id=_id(fields.get("id")),
        owner=owner,
        kind=Kind.NOTE,
        text=_text(fields.get("text")),
        tags=_tags(fields.get("tags")),
        scope=_scope(fields.get("scope")),
        created_at=_time(fields.get("ts")),
    )


def _id(value: object) -> str:
    seq = memory_seq(value) if isinstance(value, str) else None
    if not isinstance(value, str) or seq is None:
        raise Invalid('Its id is missing or not of the form "m-7".')
    if seq > MAX_SEQ:
        raise Invalid(f"The number in its id is higher than {MAX_SEQ}.")
    return value


def _text(value: object) -> str:
    if value is None:
        raise Invalid("Its text is missing.")
    if not isinstance(value, str):
        raise Invalid("Its text is not a string.")
    limit = RULES[Kind.NOTE].max_chars
    if len(value) > limit:
        raise Invalid(f"Content too long (max {limit:,} characters)")
    if not value.strip():
        raise Invalid(BLANK)
    return checked_text(value)


def _tags(value: object) -> tuple[str, ...]:
    if value is None:  # an empty list, as Go writes it
        return ()
    if not isinstance(value, list):
        raise Invalid("Its tags are not a list.")
    return checked_tags(value)


def _scope(value: object) -> Scope:
    if value is None or value == "":
        return Scope.WORKSPACE
    try:
        return Scope(value)  # type: ignore[arg-type]  # whatever it is, it is one of them or raises
    except ValueError:
        raise Invalid(f"Its scope is none of {', '.join(Scope)}.") from None


def _time(value: object) -> datetime:
    if not isinstance(value, str):
        raise Invalid('Its ts is missing or not a time such as "2026-01-31T12:00:00Z".')
    try:
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid('Its ts is not a time such as "2026-01-31T12:00:00Z".') from None


def _number_in(raw: bytes) -> int:
    """The highest number in anything that looks like an id; 0 when there is none we would count."""
    return max((seq for match in _ID.finditer(raw) if (seq := int(match[1])) <= MAX_SEQ), default=0)
