"""Query a stored JSON text by JSON path (RFC 9535)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

from wellkept.deadline import check_deadline
from wellkept.details.parts import StoredText
from wellkept.details.rules_keys import PartRequest
from wellkept.errors import Invalid
from wellkept.language.json_values import count_json_parts
from wellkept.model import DetailPage

MAX_JSON_CHARS = 10_000_000
MAX_JSON_PARTS = 500_000
"""Maximum number of brackets and commas in a document; each may take 120 bytes of memory when it is parsed."""

BIG_PARTS = 50_000
"""Number of brackets and commas from which a document counts as big."""

MAX_BIG = 2
"""Big documents in memory at a time, each of another tenant, so that a slow path does not hold up other tenants."""

MAX_PATH_CHARS = 500
MAX_SELECTORS = 64
MAX_VALUES = 10_000
BIG = 200_000
"""Texts with more characters refuse a path that walks the document repeatedly."""

SPARE_STEPS = 200_000
"""Number of values a path may visit in addition to the number of values in the document."""

STEPS_BETWEEN_CHECKS = 64
MAX_ANSWER_CHARS = 10_000_000
LOOKAHEAD_CHARS = 1_000_000
"""Characters of the answer that are generated after the requested page, to count the rest."""

TOO_MANY_STEPS = "The JSON path visits too many values of this text; name what you want, with fewer * and .."

_big = threading.Condition()
_busy: set[str] = set()  # tenants with a big document in memory
_encoder = json.JSONEncoder(ensure_ascii=False, indent=2)


def read_json(tenant: str, key: str, text: StoredText, part: PartRequest) -> DetailPage:
    """Return the values that a JSON path selects, as a JSON list that is paged with offset and limit.

    Only the requested page is kept. The answer after it is counted, up to a limit.
    Raises: Invalid.
    """
    assert part.json_path is not None
    answer = _Answer(part.offset, part.offset + part.limit)
    if all(answer.add(value) for value in islice(_find_values(tenant, part.json_path, text), MAX_VALUES)):
        answer.end()
    content = answer.content
    stop = part.offset + len(content)
    return DetailPage(
        key=key,
        content=content,
        offset=part.offset,
        total=answer.chars,
        next_offset=stop if stop < min(answer.chars, MAX_ANSWER_CHARS) else None,
        total_lines=text.lines,
        matches=answer.count,
        remaining=_describe_rest(answer, stop),
    )


def _describe_rest(answer: _Answer, stop: int) -> str:
    sentence = f"{answer.count:,} {'value' if answer.count == 1 else 'values'}"
    if answer.count == MAX_VALUES:
        sentence = f"The first {sentence}"
    sentence += "." if answer.is_whole else " so far; there is more than is counted here."
    following = answer.chars - stop
    if stop >= MAX_ANSWER_CHARS:
        return f"{sentence} No more than {MAX_ANSWER_CHARS:,} characters of an answer can be read; use a narrower path."
    if following > 0:
        count = f"{following:,}" if answer.is_whole else f"At least {following:,}"
        sentence += f" {count} characters of this answer follow; go on with the same path, offset={stop}."
    return sentence


class _Answer:
    """JSON list that is written value by value; keeps the characters from `start` to `stop` and counts the others."""

    def __init__(self, start: int, stop: int) -> None:
        self.chars = 0
        self.count = 0
        self.is_whole = False
        self._start = start
        self._stop = stop
        self._most = min(stop + LOOKAHEAD_CHARS, MAX_ANSWER_CHARS)
        self._kept: list[str] = []

    @property
    def content(self) -> str:
        return "".join(self._kept)

    def add(self, value: Any) -> bool:
        """Write a value; return False if the answer has reached its maximum length."""
        self._write(",\n  " if self.count else "[\n  ")
        self.count += 1
        for number, piece in enumerate(_encoder.iterencode(value)):
            if number % STEPS_BETWEEN_CHECKS == 0:
                check_deadline()
            if self.chars >= self._most:
                return False
            # JSON escapes line breaks in strings; half surrogate pairs must be escaped too.
            piece = piece if piece.isascii() else piece.encode("utf-8", "backslashreplace").decode()
            self._write(piece.replace("\n", "\n  "))
        return True

    def end(self) -> None:
        """Close the list."""
        self._write("\n]" if self.count else "[]")
        self.is_whole = True

    def _write(self, piece: str) -> None:
        begin, self.chars = self.chars, self.chars + len(piece)
        if self.chars > self._start and begin < self._stop:
            self._kept.append(piece[max(0, self._start - begin) : self._stop - begin])


def _find_values(tenant: str, path: str, text: StoredText) -> Iterator[Any]:
    """Yield the values that the path selects. Raises: Invalid."""
    if text.chars > MAX_JSON_CHARS:
        raise Invalid(
            f"This text has {text.chars:,} characters; up to {MAX_JSON_CHARS:,} can be asked by JSON path. "
            "Read it with grep=, lines= or offset=."
        )
    if len(path) > MAX_PATH_CHARS:
        raise Invalid(f"A JSON path has at most {MAX_PATH_CHARS} characters.")
    path = _from_root(path)
    if text.chars > BIG and (path.count("..") > 1 or path.count("$") > 1):
        raise Invalid('For a text of this length, a JSON path may contain ".." once and "$" only at its beginning.')
    jsonpath = import_module("jsonpath")
    parts = _count_parts(text)
    query = _compile(jsonpath, path, most_steps=SPARE_STEPS + parts)
    with _room_for(tenant, parts):
        try:
            for match in query.finditer(_parse_document(text)):
                yield match.obj
        except (jsonpath.JSONPathError, RecursionError) as error:
            reason = str(error).partition("\n")[0]
            raise Invalid(f"The JSON path cannot be evaluated ({reason}).") from error


def _count_parts(text: StoredText) -> int:
    """Return the number of brackets and commas. Raises: Invalid if the document would take too much memory."""
    count = 0
    for position in range(text.chunks):
        count += count_json_parts(text.chunk(position))
    if count > MAX_JSON_PARTS:
        raise Invalid(
            f"This text has {count:,} brackets and commas; up to {MAX_JSON_PARTS:,} can be asked by JSON path. "
            "Read it with grep=, lines= or offset=."
        )
    return count


@contextmanager
def _room_for(tenant: str, parts: int) -> Iterator[None]:
    """Wait until there is room in memory for a document, if it is big. Raises: Cancelled, TimedOut."""
    if parts <= BIG_PARTS:
        yield
        return
    with _big:
        while tenant in _busy or len(_busy) >= MAX_BIG:
            check_deadline()
            _big.wait(0.1)
        _busy.add(tenant)
    try:
        yield
    finally:
        with _big:
            _busy.remove(tenant)
            _big.notify_all()


def _compile(jsonpath: Any, path: str, *, most_steps: int) -> Any:
    """Compile a path. Raises: Invalid."""
    environment = _environment(jsonpath, most_steps)
    try:
        query = environment.compile(path)
    # The library's message names internal tokens, and fails for an empty path.
    except jsonpath.JSONPathError as error:
        place = f" (see character {error.token.index + 1})" if path and error.token is not None else ""
        raise Invalid(f"{path[:80]!r} is not a JSON path{place}; write one like $.items[0].name.") from error
    except RecursionError as error:
        raise Invalid("The JSON path is nested too deeply.") from error
    if environment.parser.selectors > MAX_SELECTORS:
        raise Invalid(f"A JSON path has at most {MAX_SELECTORS} selectors; ask for fewer things at a time.")
    return query


def _from_root(path: str) -> str:
    """Add the `$` of the standard to a path that omits it.

    >>> _from_root("items[0].name"), _from_root("[0]"), _from_root(".items"), _from_root("$..name"), _from_root(" ")
    ('$.items[0].name', '$[0]', '$.items', '$..name', '')
    """
    path = path.strip()
    if not path or path.startswith("$"):
        return path
    return f"${path}" if path.startswith((".", "[")) else f"$.{path}"


def _environment(jsonpath: Any, most_steps: int) -> Any:
    """Return a strict RFC 9535 environment that runs patterns with RE2 and limits the values a path visits."""
    environment = _bounded_class(jsonpath, most_steps)(strict=True)
    re2 = import_module("re2")

    class Matching(jsonpath.function_extensions.Match):  # type: ignore[misc]
        """Functions `match()` and `search()` with a pattern compiled by RE2."""

        def __init__(self, *, is_whole: bool) -> None:
            super().__init__()
            self._is_whole = is_whole

        def __call__(self, value: object, pattern: object) -> bool:
            if not isinstance(value, str) or not isinstance(pattern, str):
                return False
            # A value may be as long as the text.
            check_deadline()
            try:
                compiled = re2.compile(pattern)
            except re2.error:
                return False
            return bool(compiled.fullmatch(value) if self._is_whole else compiled.search(value))

    environment.function_extensions["match"] = Matching(is_whole=True)
    environment.function_extensions["search"] = Matching(is_whole=False)
    return environment


def _bounded_class(jsonpath: Any, most_steps: int) -> Any:
    """Return an environment class that counts every value a path visits, also inside filters."""
    steps = 0

    class Node(jsonpath.JSONPathMatch):  # type: ignore[misc]
        """Visited value. Unlike the library's class, it does not keep its path and children, which would add up."""

        __slots__ = ()

        def __init__(self, node: Any, obj: object) -> None:
            self._filter_context = node._filter_context  # type: ignore[misc]
            self.root = node.root  # type: ignore[misc]
            self.obj = obj  # type: ignore[misc]

        def filter_context(self) -> Any:
            """Count a step; the library calls this whenever it applies a filter to a value."""
            nonlocal steps
            steps += 1
            if steps > most_steps:
                raise Invalid(TOO_MANY_STEPS)
            if steps % STEPS_BETWEEN_CHECKS == 0:
                check_deadline()
            return self._filter_context

        def new_child(self, obj: object, key: int | str) -> Node:
            self.filter_context()
            return Node(self, obj)

        def add_child(self, *children: object) -> None:
            """Do nothing; children are not kept."""

    class Parser(jsonpath.Parser):  # type: ignore[misc]
        """Parser that starts every query with a `Node`, so that all descendants are nodes."""

        selectors = 0

        def parse_query(self, stream: Any) -> Iterator[Any]:
            for place, segment in enumerate(super().parse_query(stream)):
                self.selectors += len(segment.selectors)
                yield segment if place else with_nodes(segment)

    def with_nodes(segment: Any) -> Any:
        class FirstSegment(type(segment)):  # type: ignore[misc]
            """First segment of a query."""

            def resolve(self, nodes: Any) -> Any:
                return super().resolve(Node(node, node.obj) for node in nodes)

        return FirstSegment(env=segment.env, token=segment.token, selectors=segment.selectors)

    class Environment(jsonpath.JSONPathEnvironment):  # type: ignore[misc]
        """Environment of the library, with our parser."""

        parser_class = Parser

    return Environment


def _parse_document(text: StoredText) -> Any:
    """Parse the JSON document; one document per line becomes a list. Raises: Invalid."""
    whole = text.between(0, text.chars).removeprefix("\ufeff")
    try:
        return json.loads(whole)
    except (ValueError, RecursionError) as error:
        try:
            lines = list(_parse_lines(whole))
        except (ValueError, RecursionError):
            lines = []
        if len(lines) < 2:
            raise Invalid(
                f"This text is not JSON ({_error_place(error)}); read it with lines=, grep= or offset=."
            ) from error
        return lines


def _parse_lines(whole: str) -> Iterator[Any]:
    for line in whole.splitlines():
        if line.strip():
            yield json.loads(line)


def _error_place(error: Exception) -> str:
    return (
        f"line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "nested too deeply"
    )
