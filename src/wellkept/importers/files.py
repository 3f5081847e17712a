"""Streaming readers for files of other programs (plain, in a folder or in a ZIP archive), and conversions of values."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from wellkept.deadline import check_deadline
from wellkept.errors import Invalid
from wellkept.language.names import is_session_id
from wellkept.language.values import count_json_parts
from wellkept.memory.rules_kinds import MAX_TAG_CHARS, MAX_TAGS, RULES
from wellkept.model import ForeignItem, ForeignTurn, Kind, RefusedItem


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """File format of another memory program."""

    name: str  # the value of `--from`, such as "mem0"
    member: str  # pattern of the names of such files in an archive or a folder
    signs: Sequence[str]  # patterns that such a file has at its beginning
    what: str  # an entry of it, in messages
    parse: Callable[[str, Any], Iterator[ForeignItem]]  # returns the items of an entry, from its place and its JSON
    lists: Sequence[str] = ()  # fields of an object that hold the entries
    read_stream: Callable[[IO[str]], Iterator[ForeignItem]] | None = None  # for a file that is read in another way

    def recognises(self, path: Path) -> bool:
        """Return True if the file looks like this format. Reads its beginning only. Raises: OSError."""
        start = read_head(path, re.compile(self.member, re.IGNORECASE))
        return all(re.search(sign, start, re.MULTILINE | re.DOTALL) for sign in self.signs)

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Yield every item of the file; invalid ones as `RefusedItem`, so that the rest is still imported.

        Raises: Invalid when the file as a whole is not of this format; OSError.
        """
        with open_members(path, re.compile(self.member, re.IGNORECASE)) as streams:
            for name, stream in streams:
                where = "" if len(streams) == 1 else f"{name}, "
                yield from self._read_entries(stream, where) if self.read_stream is None else self.read_stream(stream)

    def _read_entries(self, stream: IO[str], where: str) -> Iterator[ForeignItem]:
        number = 0
        try:
            for entry in iter_entries(stream, self.lists):
                number += 1
                yield from self.parse(f"{where}{self.what} {number}", entry)
        except DamagedFile as error:
            yield RefusedItem(place=f"{where}after {self.what} {number}", reason=f"{error}.")


NO_ANSWER = "It has no answer; only answered prompts are imported."


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message that a person saw."""

    is_user: bool
    text: str
    at: datetime | None


def pair_turns(place: str, session_id: str, messages: Iterable[ChatMessage]) -> Iterator[ForeignItem]:
    """Pair messages into turns: consecutive prompts are joined, and the last of several answers counts."""
    prompts: list[ChatMessage] = []
    answer = ""
    number = 0
    for message in messages:
        if message.is_user and answer:
            number += 1
            yield _make_turn(place, session_id, number, prompts, answer)
            prompts, answer = [], ""
        if message.is_user:
            prompts.append(message)
        elif prompts:
            answer = message.text
    if prompts:
        number += 1
        yield _make_turn(place, session_id, number, prompts, answer)


def _make_turn(place: str, session_id: str, number: int, prompts: list[ChatMessage], answer: str) -> ForeignItem:
    where = f"{place}, turn {number}"
    if not answer:
        return RefusedItem(place=where, reason=NO_ANSWER)
    prompt = "\n\n".join(each.text for each in prompts)
    return ForeignTurn(place=where, session_id=session_id, user=prompt, assistant=answer, created_at=prompts[0].at)


TEXT: Any = {"encoding": "utf-8-sig", "errors": "replace"}
HEAD_CHARS = 64 * 1024
CHUNK_CHARS = 256 * 1024
MAX_ENTRY_CHARS = 64 * 1024 * 1024
"""Longest conversation, or file that is one JSON object."""

MAX_ENTRY_PARTS = 1_000_000
"""Most brackets and commas of an entry, which determine its size in memory."""

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
MAX_UNPACKED_RATIO = 200
"""Largest compression ratio of a long archive: exports shrink to a tenth, so far more is an attack."""

NOTE_CHARS = RULES[Kind.NOTE].max_chars
MILLISECONDS = 100_000_000_000
"""Times above this are milliseconds: as seconds they would be more than a thousand years away."""

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_INVALID_ID_CHARS = re.compile(r"[^\w.@:+-]+")
_GAP = re.compile(r"[\s,\x1e\ufeff]*")


class DamagedFile(Exception):
    """The rest of a file cannot be read; the message says why."""


@contextmanager
def open_members(path: Path, member: re.Pattern[str]) -> Iterator[Sequence[tuple[str, IO[str]]]]:
    """Open the file as text or, for an archive or a folder, the files inside it whose name matches `member`.

    Yields each file with its name.

    Raises: Invalid when the archive is damaged or encrypted; OSError.
    """
    if path.is_dir():
        with ExitStack() as stack:
            found = sorted(each for each in path.iterdir() if each.is_file() and member.fullmatch(each.name))
            yield [(each.name, stack.enter_context(each.open(**TEXT))) for each in found]
        return
    if not zipfile.is_zipfile(path):
        with path.open(**TEXT) as file:
            yield [(path.name, file)]
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if member.fullmatch(name.rpartition("/")[2]))
            _check_sizes(path, [archive.getinfo(name) for name in names])
            yield [(name, io.TextIOWrapper(archive.open(name), **TEXT)) for name in names]
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        # RuntimeError is raised for encrypted archives.
        raise Invalid(f"{path.name}: the archive cannot be unpacked ({error}).") from error


def _check_sizes(path: Path, members: Sequence[Any]) -> None:
    """Reject an archive that would unpack to far more than its size. Raises: Invalid."""
    packed, unpacked = sum(each.compress_size for each in members), sum(each.file_size for each in members)
    if unpacked > max(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * packed):
        raise Invalid(f"{path.name}: unpacks to {unpacked:,} bytes, which is too much for an export.")


def read_head(path: Path, member: re.Pattern[str]) -> str:
    """Return the beginning of the file, or of the first matching one in an archive or folder; empty if there is none.

    Raises: OSError.
    """
    try:
        with open_members(path, member) as files:
            return files[0][1].read(HEAD_CHARS) if files else ""
    except Invalid:
        return ""


def iter_values(stream: IO[str]) -> Iterator[Any]:
    """Yield the entries of a JSON array, or consecutive JSON values such as lines, with only one in memory.

    Raises: DamagedFile after the last one that can be read.
    """
    decoder, buffer, at, size = json.JSONDecoder(), stream.read(CHUNK_CHARS), 0, CHUNK_CHARS
    at = _GAP.match(buffer).end()  # type: ignore[union-attr]  # always matches
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
                raise ValueError("the number may continue")
        except RecursionError as error:
            raise DamagedFile("it is nested too deeply") from error
        except ValueError as error:
            more = stream.read(size)
            # Read doubling steps while an entry continues, so that long entries take linear time.
            buffer, at, size = buffer[at:] + more, 0, 2 * size if at < len(buffer) else CHUNK_CHARS
            if not more:
                if buffer.strip() or is_array:
                    raise DamagedFile("the file is cut off here, or is not valid JSON from here on") from error
                return
            if len(buffer) > MAX_ENTRY_CHARS or count_json_parts(buffer) > MAX_ENTRY_PARTS:
                raise DamagedFile("the entry is too long, or the file is not valid JSON from here on") from error
            continue
        yield value
        buffer, at, size = (buffer[end:], 0, CHUNK_CHARS) if end > CHUNK_CHARS else (buffer, end, size)


def iter_entries(stream: IO[str], names: Sequence[str]) -> Iterator[Any]:
    """Yield values like `iter_values`; for an object with a list under one of these names, its entries instead.

    Raises: DamagedFile.
    """
    for value in iter_values(stream):
        lists = [value[name] for name in names if isinstance(value.get(name), list)] if isinstance(value, dict) else []
        if lists:
            for each in lists:
                yield from each
        else:
            yield value


def parse_time(value: object) -> datetime | None:
    """Parse a time: ISO 8601 (UTC if it has no zone), or seconds or milliseconds since 1970.

    >>> parse_time(1714560000), parse_time("soon")
    (datetime.datetime(2024, 5, 1, 10, 40, tzinfo=datetime.timezone.utc), None)
    >>> parse_time("2024-05-01T12:00:00") == parse_time("2024-05-01T14:00:00+02:00")
    True
    """
    try:
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > MILLISECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def make_tags(*values: object) -> tuple[str, ...]:
    """Return the valid tags among these values, in order.

    >>> make_tags("user:alice", ["food", 7, "food"], None)
    ('user:alice', 'food')
    """
    flat = [tag for each in values for tag in (each if isinstance(each, list) else [each])]
    named = [" ".join(tag.split())[:MAX_TAG_CHARS].strip() for tag in flat if isinstance(tag, str)]
    return tuple(dict.fromkeys(tag for tag in named if tag and tag.isprintable()))[:MAX_TAGS]


def split_note(text: str) -> list[str]:
    """Split a text into parts that fit a note each, after sentences if possible.

    >>> [len(piece) for piece in split_note("Short. " * 100)]
    [496, 202]
    """
    pieces: list[str] = []
    for sentence in _SENTENCE_END.split(text.strip()):
        for part in _split_words(sentence):
            if pieces and len(pieces[-1]) + 1 + len(part) <= NOTE_CHARS and len(text) > NOTE_CHARS:
                pieces[-1] += f" {part}"
            else:
                pieces.append(part)
    return pieces if len(text.strip()) > NOTE_CHARS else [text.strip()]


def _split_words(sentence: str) -> Iterator[str]:
    while len(sentence) > NOTE_CHARS:
        at = sentence.rfind(" ", 1, NOTE_CHARS + 1)
        at = NOTE_CHARS if at <= 0 else at
        yield sentence[:at].rstrip()
        sentence = sentence[at:].lstrip()
    if sentence:
        yield sentence


def make_agent_id(value: object) -> str | None:
    """Convert another program's agent name to an agent id; None when there is none.

    >>> make_agent_id("Travel agent"), make_agent_id(""), make_agent_id(None)
    ('Travel-agent', None, None)
    """
    named = _INVALID_ID_CHARS.sub("-", value).strip("-.@:+")[:128] if isinstance(value, str) else ""
    return named or None


def make_session_id(value: object, *, by: str = "") -> str | None:
    """Convert another program's session id to one with the prefix `by`; None when it is not valid."""
    named = f"{by}{value}" if isinstance(value, str) and value else ""
    return named if is_session_id(named) else None


def first_text(entry: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is text."""
    return next((entry[name] for name in names if isinstance(entry.get(name), str) and entry[name].strip()), "")
