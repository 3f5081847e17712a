"""Files of other programs, plain, in a folder or inside a ZIP archive, read piece by piece; and what their values stand
for here.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from recollect.deadline import check_deadline
from recollect.errors import Invalid
from recollect.model import ForeignItem, Kind, Refused
from recollect.policy.json_values import count_json_parts
from recollect.policy.memories.kinds import MAX_TAG_CHARS, MAX_TAGS, RULES
from recollect.policy.names import is_session

HEAD_CHARS = 64 * 1024
CHUNK_CHARS = 256 * 1024
MAX_ENTRY_CHARS = 64 * 1024 * 1024
"""One conversation, or a file that is one JSON object; what is longer is no such file."""

MAX_ENTRY_PARTS = 1_000_000
"""Its brackets and commas, which are what it costs in memory."""

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
MAX_UNPACKED_RATIO = 200
"""An export of conversations shrinks to a tenth; what is long and shrinks far more was made to keep us busy."""

NOTE_CHARS = RULES[Kind.NOTE].max_chars
MILLISECONDS = 100_000_000_000
"""A time above this is no number of seconds within the next thousand years."""

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_NO_ID = re.compile(r"[^\w.@:+-]+")
_GAP = re.compile(r"[\s,\x1e\ufeff]*")


class Damaged(Exception):
    """The rest of a file cannot be read; the sentence says why."""


@contextmanager
def opened(path: Path, member: re.Pattern[str]) -> Iterator[Sequence[tuple[str, IO[str]]]]:
    """The file as text or, of an archive or a folder, those inside it whose name is a `member`, each with its name.

    Raises: Invalid when the archive is damaged or encrypted; OSError.
    """
    if path.is_dir():
        with ExitStack() as stack:
            found = sorted(each for each in path.iterdir() if each.is_file() and member.fullmatch(each.name))
            yield [(each.name, stack.enter_context(_opened(each))) for each in found]
        return
    if not zipfile.is_zipfile(path):
        with _opened(path) as file:
            yield [(path.name, file)]
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if member.fullmatch(name.rpartition("/")[2]))
            _check_sizes(path, [archive.getinfo(name) for name in names])
            yield [(name, _text(archive.open(name))) for name in names]
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # the last one for encrypted ones
        raise Invalid(f"{path.name}: the archive cannot be unpacked ({error}).") from error


def _check_sizes(path: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Raises: Invalid when an archive would unpack to far more than it is."""
    packed, unpacked = sum(each.compress_size for each in members), sum(each.file_size for each in members)
    if unpacked > max(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * packed):
        raise Invalid(f"{path.name}: unpacks to {unpacked:,} bytes, which is no export of another program.")


def _opened(path: Path) -> IO[str]:
    return path.open(encoding="utf-8-sig", errors="replace")


def _text(file: IO[bytes]) -> IO[str]:
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace")


def head(path: Path, member: re.Pattern[str]) -> str:
    """The beginning of the file, or of the first fitting one in an archive or a folder; nothing if there is none.

    Raises: OSError.
    """
    try:
        with opened(path, member) as files:
            return files[0][1].read(HEAD_CHARS) if files else ""
    except Invalid:
        return ""


def values(stream: IO[str]) -> Iterator[Any]:
    """The entries of a JSON array, or JSON values one behind the other, as lines often are; only one is in memory.

    Raises: Damaged behind the last one that can be read.
    """
    decoder, buffer, at, wanted = json.JSONDecoder(), stream.read(CHUNK_CHARS), 0, CHUNK_CHARS
    at = _GAP.match(buffer).end()  # type: ignore[union-attr]  # it matches nothing, too
    is_array = buffer[at : at + 1] == "["
    at += is_array
    while True:
        check_deadline()
        at = _GAP.match(buffer, at).end()  # type: ignore[union-attr]
        if at < len(buffer) and is_array and buffer[at] == "]":
            return
        try:
            value, end = decoder.raw_decode(buffer, at)
            if end == len(buffer) and not isinstance(value, dict | list):
                raise ValueError("perhaps the number goes on")
        except RecursionError as error:
            raise Damaged("it is nested too deeply") from error
        except ValueError as error:
            more = stream.read(wanted)
            # An entry that goes on is read in ever larger steps, blanks between two entries are not.
            buffer, at, wanted = buffer[at:] + more, 0, 2 * wanted if at < len(buffer) else CHUNK_CHARS
            if not more:
                if buffer.strip() or is_array:
                    raise Damaged("the file is cut off here, or is not valid JSON from here on") from error
                return
            if len(buffer) > MAX_ENTRY_CHARS or count_json_parts(buffer) > MAX_ENTRY_PARTS:
                raise Damaged("it is longer than any of these can be, or is not valid JSON from here on") from error
            continue
        yield value
        buffer, at, wanted = (buffer[end:], 0, CHUNK_CHARS) if end > CHUNK_CHARS else (buffer, end, wanted)


def entries(stream: IO[str], names: Sequence[str]) -> Iterator[Any]:
    """The same, and where one of the values holds a list under one of these names, the entries of that list instead.

    Raises: Damaged.
    """
    for value in values(stream):
        lists = [value[name] for name in names if isinstance(value.get(name), list)] if isinstance(value, dict) else []
        if lists:
            for each in lists:
                yield from each
        else:
            yield value


def items(
    path: Path,
    member: re.Pattern[str],
    names: Sequence[str],
    *,
    what: str,
    made: Callable[[str, Any], Iterator[ForeignItem]],
) -> Iterator[ForeignItem]:
    """What `made` makes of each entry and its place ("memory 7"); that a file breaks off is refused, not raised.

    Raises: Invalid, OSError.
    """
    number = 0
    with opened(path, member) as streams:
        for _, stream in streams:
            try:
                for entry in entries(stream, names):
                    number += 1
                    yield from made(f"{what} {number}", entry)
            except Damaged as error:
                yield Refused(place=f"after {what} {number}", reason=f"{error}.")


def moment(value: object) -> datetime | None:
    """A time as programs write it: ISO 8601 (without a zone: UTC), or seconds or milliseconds since 1970.

    >>> moment(1714560000), moment("2024-05-01T12:00:00") == moment("2024-05-01T14:00:00+02:00"), moment("soon")
    (datetime.datetime(2024, 5, 1, 10, 40, tzinfo=datetime.timezone.utc), True, None)
    """
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > MILLISECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def tags(*given: object) -> tuple[str, ...]:
    """What can be a tag of these, in order.

    >>> tags("user:alice", ["food", 7, "food"], None)
    ('user:alice', 'food')
    """
    flat = [tag for each in given for tag in (each if isinstance(each, list) else [each])]
    named = [" ".join(tag.split())[:MAX_TAG_CHARS].strip() for tag in flat if isinstance(tag, str)]
    return tuple(dict.fromkeys(tag for tag in named if tag and tag.isprintable()))[:MAX_TAGS]


def note_pieces(text: str) -> list[str]:
    """`text`, or as many parts of it as it takes for each to fit into a note, cut behind sentences if possible.

    >>> [len(piece) for piece in note_pieces("Short. " * 100)]
    [496, 202]
    """
    pieces: list[str] = []
    for sentence in _SENTENCE_END.split(text.strip()):
        for part in _cut(sentence):
            if pieces and len(pieces[-1]) + 1 + len(part) <= NOTE_CHARS and len(text) > NOTE_CHARS:
                pieces[-1] += f" {part}"
            else:
                pieces.append(part)
    return pieces if len(text.strip()) > NOTE_CHARS else [text.strip()]


def _cut(sentence: str) -> Iterator[str]:
    while len(sentence) > NOTE_CHARS:
        at = sentence.rfind(" ", 1, NOTE_CHARS + 1)
        at = NOTE_CHARS if at <= 0 else at
        yield sentence[:at].rstrip()
        sentence = sentence[at:].lstrip()
    if sentence:
        yield sentence


def agent_named(value: object) -> str | None:
    """An agent's id for what another program calls its agent; None when it names none.

    >>> agent_named("Travel agent"), agent_named(""), agent_named(None)
    ('Travel-agent', None, None)
    """
    named = _NO_ID.sub("-", value).strip("-.@:+")[:128] if isinstance(value, str) else ""
    return named or None


def session_named(value: object, *, by: str = "") -> str | None:
    """A session's id for what another program calls one; None when that cannot be."""
    named = f"{by}{value}" if isinstance(value, str) and value else ""
    return named if is_session(named) else None


def text_of(entry: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is text."""
    return next((entry[name] for name in names if isinstance(entry.get(name), str) and entry[name].strip()), "")
