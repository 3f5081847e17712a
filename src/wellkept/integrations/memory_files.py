"""Files under `/memories`, kept as items of an agent's memory: the commands of Anthropic's memory tool as plans.

A file is an item whose namespace is its folder and whose key is its name, so `recall` finds what it says and its former
texts stay in its history. A folder is there as long as a file is below it. The sentences are those of the tool's
documentation.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn
from urllib.parse import unquote

from wellkept.errors import Conflict, WellkeptError
from wellkept.integrations.plans import DETAIL, OwnItems, Plan, ask, drop_texts, is_long, read_text
from wellkept.model import Item, Json, Origin

if TYPE_CHECKING:
    from wellkept.integrations.plans import AnyMemory

ROOT = "/memories"
MAX_LINES = 999_999
EXCERPT_CHARS = 10_000
"""Characters of a long file that `recall` searches."""
MAX_DECODINGS = 8
BROKEN = "\ufffd"
"""Character that stands for bytes that are no UTF-8."""
MAX_TRIES = 5
LISTED_LEVELS = 2
HIDDEN = "node_modules"
CONTEXT_LINES = 2
MAX_NAMED = 20

_UNICODE_ESCAPE = re.compile(r"%u([0-9a-fA-F]{4})")


class FileRefused(Exception):
    """A command that cannot be carried out; the message is for the model."""


class FilePath(NamedTuple):
    """Path below the root, as given and as the names of its parts."""

    given: str
    names: tuple[str, ...]


class MemoryFiles:
    """Files of one agent or user, in the namespace `root`."""

    def __init__(self, memory: AnyMemory, root: Sequence[str]) -> None:
        self._items = OwnItems(memory)
        self._root = tuple(root)

    def view(self, path: str, view_range: Sequence[int] | None = None) -> Plan[str]:
        """Show a file with line numbers, or list a folder two levels deep. Raises: FileRefused."""
        place = parse_path(path)
        if item := (yield from self._find(place)):
            return _show_lines(path, (yield from self._read(item)), view_range)
        files = yield from self._list(place)
        if place.names and not files:
            _refuse(f"The path {path} does not exist. Please provide a valid path.")
        return self._show_folder(place, files)

    def create(self, path: str, file_text: str) -> Plan[str]:
        """Create a file. Raises: FileRefused."""
        place = parse_path(path)
        yield from self._check_free(place, f"File {path} already exists")
        try:
            yield from self._write(place, file_text, version=0)
        except Conflict:
            _refuse(f"File {path} already exists")
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> Plan[str]:
        """Replace a text that occurs once. Raises: FileRefused."""

        def edit(text: str) -> str:
            starts = _find_all(text, old_str)
            if not starts:
                _refuse(f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}.")
            if len(starts) > 1:
                numbers = dict.fromkeys(str(text.count("\n", 0, start) + 1) for start in starts[:MAX_NAMED])
                lines = ", ".join(numbers) + ("" if len(starts) <= MAX_NAMED else " and more")
                _refuse(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            return text[: starts[0]] + new_str + text[starts[0] + len(old_str) :]

        before, after = yield from self._edit(path, edit)
        changed = before.count("\n", 0, before.find(old_str))
        lines = after.split("\n")
        first, last = max(0, changed - CONTEXT_LINES), changed + CONTEXT_LINES + 1
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + _number_lines(lines[first:last], first + 1)
        )

    def insert(self, path: str, insert_line: int, insert_text: str) -> Plan[str]:
        """Insert a text behind a line; 0 is the beginning. Raises: FileRefused."""

        def edit(text: str) -> str:
            lines = text.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= insert_line <= len(lines):
                _refuse(
                    f"Invalid `insert_line` parameter: {insert_line}. It should be within the range of lines of the "
                    f"file: [0, {len(lines)}]"
                )
            lines.insert(insert_line, insert_text.removesuffix("\n"))
            return "\n".join(lines) + "\n"

        yield from self._edit(path, edit)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> Plan[str]:
        """Delete a file, or a folder with all that is in it. Raises: FileRefused."""
        place = parse_path(path)
        if not place.names:
            _refuse(f"Cannot delete the {ROOT} directory itself")
        item = yield from self._find(place)
        files = [item] if item else (yield from self._list(place))
        if not files:
            _refuse(f"The path {path} does not exist")
        yield from self._items.delete(files)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> Plan[str]:
        """Rename or move a file or a folder. Raises: FileRefused."""
        old, new = parse_path(old_path), parse_path(new_path)
        if not old.names:
            _refuse(f"Cannot rename the {ROOT} directory itself")
        item = yield from self._find(old)
        files = [item] if item else (yield from self._list(old))
        if not files:
            _refuse(f"The path {old_path} does not exist")
        if not item and new.names[: len(old.names)] == old.names and new.names != old.names:
            _refuse(f"Cannot move {old_path} into itself")
        yield from self._check_free(new, f"The destination {new_path} already exists")
        try:
            for file in files:
                names = (*new.names, *self._names_of(file)[len(old.names) :])
                yield from self._write(FilePath(new_path, names), (yield from self._read(file)), version=0)
        except Conflict:
            _refuse(f"The destination {new_path} already exists")
        yield from self._items.delete(files)
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> Plan[str]:
        """Delete all files."""
        yield from self._items.delete((yield from self._list(FilePath(ROOT, ()))))
        return "All memory cleared"

    def _edit(self, path: str, edit: Callable[[str], str]) -> Plan[tuple[str, str]]:
        """Change a file, on top of what others change at the same time; return its text before and after."""
        place = parse_path(path)
        for _ in range(MAX_TRIES):
            item = yield from self._find(place)
            if item is None:
                _refuse(f"The path {path} does not exist. Please provide a valid path.")
            before = yield from self._read(item)
            after = edit(before)
            try:
                yield from self._write(place, after, version=item.version)
            except Conflict:
                continue
            yield from drop_texts([item.value.get(DETAIL)])
            return before, after
        _refuse(f"The file {path} is being edited by others; view it and try again.")

    def _find(self, place: FilePath) -> Plan[Item | None]:
        return (yield from self._items.get(*self._locate(place.names))) if place.names else None

    def _list(self, place: FilePath) -> Plan[list[Item]]:
        """Return the files of a folder and all below it, by their paths."""
        found = yield from self._items.list((*self._root, *place.names))
        return sorted(found, key=self._names_of)

    def _locate(self, names: Sequence[str]) -> tuple[tuple[str, ...], str]:
        return (*self._root, *names[:-1]), names[-1]

    def _names_of(self, item: Item) -> tuple[str, ...]:
        return (*item.namespace[len(self._root) :], item.key)

    def _check_free(self, place: FilePath, taken: str) -> Plan[None]:
        """Check that nothing is at a path, and that no file is where it needs a folder. Raises: FileRefused."""
        if not place.names or (yield from self._find(place)) or (yield from self._list(place)):
            _refuse(taken)
        for depth in range(1, len(place.names)):
            above = FilePath(place.given, place.names[:depth])
            if (yield from self._find(above)):
                _refuse(f"The path {ROOT}/{'/'.join(above.names)} is a file, so {place.given} cannot be below it.")

    def _read(self, item: Item) -> Plan[str]:
        key = item.value.get(DETAIL)
        return (yield from read_text(key)) if key else item.value["text"]

    def _write(self, place: FilePath, text: str, *, version: int) -> Plan[None]:
        """Write a file if it has this version, 0 if there is none. Raises: FileRefused, Conflict."""
        size = len(text.encode("utf-8", "replace"))
        value: Json = {"text": text, "size": size}
        if is_long(value):
            detail = yield from ask("details.store", text, description=place.names[-1], type="memory_file")
            value = {"text": text[:EXCERPT_CHARS], "size": size, DETAIL: detail.key}
        namespace, key = self._locate(place.names)
        try:
            yield from ask("items.put", namespace, key, value, index=["text"], version=version, origin=Origin.AGENT)
        except WellkeptError:
            yield from drop_texts([value.get(DETAIL)])
            raise

    def _show_folder(self, place: FilePath, files: Sequence[Item]) -> str:
        sizes = {place.names: 0}
        for file in files:
            names = self._names_of(file)
            if any(name.startswith(".") or name == HIDDEN for name in names[len(place.names) :]):
                continue
            for depth in range(len(place.names), len(names) + 1):
                sizes[names[:depth]] = sizes.get(names[:depth], 0) + file.value["size"]
        folders = {names[:depth] for names in sizes for depth in range(len(names))}
        shown = (
            f"{_format_size(size)}\t{'/'.join((ROOT, *names))}{'/' * (names in folders and names != place.names)}"
            for names, size in sorted(sizes.items())
            if len(names) <= len(place.names) + LISTED_LEVELS
        )
        heading = f"Here're the files and directories up to 2 levels deep in {place.given}, excluding hidden items and "
        return "\n".join([f"{heading}node_modules:", *shown])


def parse_path(path: str) -> FilePath:
    """Split a path below the root into names. Raises: FileRefused when it leads, or may lead, out of it."""
    names = path.removeprefix(ROOT).split("/")
    if not path.startswith(ROOT) or names[0]:
        _refuse(f"Path must start with {ROOT}, got: {path}")
    for name in names:
        for part in re.split(r"[/\\]", _decode(name)):
            if part.strip() in (".", ".."):
                _refuse(f"Path {path} would escape {ROOT} directory")
    return FilePath(path, tuple(name for name in names if name))


def _decode(name: str) -> str:
    """Return a name as the most credulous reader would understand it, however often it was encoded."""
    for _ in range(MAX_DECODINGS):
        decoded = html.unescape(unquote(_UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), name)))
        decoded = unicodedata.normalize("NFKC", decoded)
        if decoded == name:
            return name
        if decoded.count(BROKEN) > name.count(BROKEN):
            _refuse(f"The name {name} has bytes that are no UTF-8.")
        name = decoded
    _refuse(f"The name {name} is encoded too often.")


def _refuse(sentence: str) -> NoReturn:
    raise FileRefused(sentence)


def _find_all(text: str, wanted: str) -> list[int]:
    """Return where a text occurs, overlaps included; an empty one occurs nowhere."""
    starts, start = list[int](), text.find(wanted) if wanted else -1
    while start >= 0:
        starts.append(start)
        start = text.find(wanted, start + 1)
    return starts


def _show_lines(path: str, text: str, view_range: Sequence[int] | None) -> str:
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        _refuse(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range:
        if len(view_range) != 2:
            _refuse(f"Invalid `view_range` parameter: {list(view_range)}. It should be the first and the last line.")
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else max(0, view_range[1])
    return f"Here's the content of {path} with line numbers:\n{_number_lines(lines[first - 1 : last], first)}"


def _number_lines(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def _format_size(size: int) -> str:
    """Return a size as `du -h` would.

    >>> [_format_size(size) for size in (0, 300, 1024, 1536, 3 << 20)]
    ['0B', '300B', '1K', '1.5K', '3M']
    """
    power = min(max(size.bit_length() - 1, 0) // 10, 3)
    return f"{size / 1024**power:.1f}".removesuffix(".0") + "BKMG"[power]
