"""Query a stored JSON text by JSON path (RFC 9535), with RE2 for patterns and a limit on the values a query visits.

The library takes time to import, so this module is imported on first use.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from itertools import islice
from typing import Any

import re2
from jsonpath import JSONPathEnvironment, JSONPathError, JSONPathMatch, Parser
from jsonpath.function_extensions import Match
from jsonpath.segments import JSONPathChildSegment, JSONPathRecursiveDescentSegment

from wellkept.deadline import check_deadline
from wellkept.details.parts import StoredText
from wellkept.details.rules_keys import PartRequest
from wellkept.errors import Invalid
from wellkept.language.values import count_json_parts
from wellkept.model import DetailPage

MAX_JSON_CHARS = 20_000_000
MAX_JSON_PARTS = 500_000
"""Maximum number of brackets and commas in a document; each may take 120 bytes of memory when it is parsed."""

BIG_PARTS = 50_000
"""Number of brackets and commas from which a document counts as big."""

MAX_BIG = 2
"""Big documents in memory at a time, each of another tenant, so that a slow path does not hold up other tenants."""

MAX_PATH_CHARS = 500
MAX_VALUES = 10_000
SPARE_STEPS = 200_000
"""Number of values a path may visit in addition to the number of values in the document."""

PIECES_BETWEEN_CHECKS = 64
MAX_ANSWER_CHARS = 10_000_000
LOOKAHEAD_CHARS = 1_000_000
"""Characters of the answer that are generated after the requested page, to count the rest."""

_big = threading.Condition()
_busy: set[str] = set()  # tenants with a big document in memory
_encoder = json.JSONEncoder(ensure_ascii=False, indent=2)


def read_json(tenant: str, key: str, text: StoredText, part: PartRequest) -> DetailPage:
    """Return the values that a JSON path selects, as a JSON list that is paged with offset and limit. Raises: Invalid.

    >>> _from_root("items[0].name"), _from_root("[0]"), _from_root(".items"), _from_root("$..name"), _from_root(" ")
    ('$.items[0].name', '$[0]', '$.items', '$..name', '')
    """
    assert part.json_path is not None
    _refuse_long(text.chars, MAX_JSON_CHARS, "characters")
    if len(part.json_path) > MAX_PATH_CHARS:
        raise Invalid(f"A JSON path has at most {MAX_PATH_CHARS} characters.")
    parts = sum(count_json_parts(text.chunk(position)) for position in range(text.chunks))
    _refuse_long(parts, MAX_JSON_PARTS, "brackets and commas")
    find_values = compile_path(_from_root(part.json_path), most_steps=SPARE_STEPS + parts)
    with _room_for(tenant, parts):
        values = list(islice(find_values(_parse(text)), MAX_VALUES))
        answer, is_whole = _write(values, min(part.offset + part.limit + LOOKAHEAD_CHARS, MAX_ANSWER_CHARS))
    content = answer[part.offset : part.offset + part.limit]
    stop = part.offset + len(content)
    return DetailPage(
        key=key,
        content=content,
        offset=part.offset,
        total=len(answer),
        next_offset=stop if stop < min(len(answer), MAX_ANSWER_CHARS) else None,
        total_lines=text.lines,
        matches=len(values),
        remaining=_describe_rest(len(values), len(answer), stop, is_whole=is_whole),
    )


def _refuse_long(count: int, most: int, unit: str) -> None:
    """Raises: Invalid."""
    if count > most:
        raise Invalid(
            f"This text has {count:,} {unit}; up to {most:,} can be asked by JSON path. "
            "Read it with grep=, lines= or offset=."
        )


def _from_root(path: str) -> str:
    """Add the `$` of the standard to a path that omits it."""
    path = path.strip()
    if not path or path.startswith("$"):
        return path
    return f"${path}" if path.startswith((".", "[")) else f"$.{path}"


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


def _parse(text: StoredText) -> Any:
    """Parse the JSON document; one document per line becomes a list. Raises: Invalid."""
    whole = text.between(0, text.chars).removeprefix("\ufeff")
    try:
        return json.loads(whole)
    except (ValueError, RecursionError) as error:
        try:
            lines = [json.loads(line) for line in whole.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            lines = []
        if len(lines) > 1:
            return lines
        place = "nested too deeply"
        if isinstance(error, json.JSONDecodeError):
            place = f"line {error.lineno}, column {error.colno}"
        raise Invalid(f"This text is not JSON ({place}); read it with lines=, grep= or offset=.") from error


def _write(values: Sequence[Any], most: int) -> tuple[str, bool]:
    """Return values as a JSON list and True, or its beginning of about `most` characters and False."""
    answer = StringIO()
    for number, piece in enumerate(_encoder.iterencode(values)):
        if number % PIECES_BETWEEN_CHECKS == 0:
            check_deadline()
        if answer.tell() >= most:
            return answer.getvalue(), False
        # Half surrogate pairs must be escaped.
        answer.write(piece if piece.isascii() else piece.encode("utf-8", "backslashreplace").decode())
    return answer.getvalue(), True


def _describe_rest(count: int, chars: int, stop: int, *, is_whole: bool) -> str:
    sentence = f"{count:,} {'value' if count == 1 else 'values'}."
    if count == MAX_VALUES:
        sentence = f"The first {sentence}"
    if stop >= MAX_ANSWER_CHARS:
        return f"{sentence} No more than {MAX_ANSWER_CHARS:,} characters of an answer can be read; use a narrower path."
    if stop < chars:
        following = f"{chars - stop:,}" if is_whole else f"At least {chars - stop:,}"
        sentence += f" {following} characters of this answer follow; go on with the same path, offset={stop}."
    return sentence


STEPS_BETWEEN_CHECKS = 64
TOO_MANY_STEPS = "The JSON path visits too many values of this text; name what you want, with fewer * and .."


def compile_path(path: str, *, most_steps: int) -> Callable[[Any], Iterator[Any]]:
    """Return a function that yields the values a path selects in a document. Both raise Invalid."""
    try:
        query = _Environment(most_steps).compile(path)
    # The library's message names internal tokens, and fails for an empty path.
    except JSONPathError as error:
        place = f" (see character {error.token.index + 1})" if path and error.token is not None else ""
        raise Invalid(f"{path[:80]!r} is not a JSON path{place}; write one like $.items[0].name.") from error
    except RecursionError as error:
        raise Invalid("The JSON path is nested too deeply.") from error

    def find_values(document: Any) -> Iterator[Any]:
        try:
            for match in query.finditer(document):
                yield match.obj
        except (JSONPathError, RecursionError) as error:
            reason = str(error).partition("\n")[0]
            raise Invalid(f"The JSON path cannot be evaluated ({reason}).") from error

    return find_values


class _Pattern(Match):
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


class _Value(JSONPathMatch):
    """Visited value. Unlike the library's class, it does not keep its path and children, which would add up."""

    __slots__ = ("_environment",)

    def __init__(self, node: JSONPathMatch, obj: object, environment: _Environment) -> None:
        self._filter_context = node._filter_context
        self._environment = environment
        self.root = node.root
        self.obj = obj

    def filter_context(self) -> Any:
        """Count a step; the library calls this whenever it applies a filter to a value."""
        self._environment.count_step()
        return self._filter_context

    def new_child(self, obj: object, key: int | str) -> _Value:
        self._environment.count_step()
        return _Value(self, obj, self._environment)

    def add_child(self, *children: object) -> None:
        """Do nothing; children are not kept."""


class _FirstChild(JSONPathChildSegment):
    """First segment of a query: what it is given, and all below, are our values."""

    env: _Environment

    def resolve(self, nodes: Iterable[JSONPathMatch]) -> Iterable[JSONPathMatch]:
        return super().resolve(_Value(node, node.obj, self.env) for node in nodes)


class _FirstDescent(JSONPathRecursiveDescentSegment):
    """First segment of a query that begins with `..`."""

    env: _Environment

    def resolve(self, nodes: Iterable[JSONPathMatch]) -> Iterable[JSONPathMatch]:
        return super().resolve(_Value(node, node.obj, self.env) for node in nodes)


class _Parser(Parser):
    """Parser of paths, also of those inside filters."""

    def parse_query(self, stream: Any) -> Iterator[Any]:
        for place, segment in enumerate(super().parse_query(stream)):
            kind = _FirstChild if isinstance(segment, JSONPathChildSegment) else _FirstDescent
            first = not place
            yield kind(env=segment.env, token=segment.token, selectors=segment.selectors) if first else segment


class _Environment(JSONPathEnvironment):
    """Strict environment of one query, which counts the values it visits."""

    parser_class = _Parser

    def __init__(self, most_steps: int) -> None:
        super().__init__(strict=True)
        self.function_extensions["match"] = _Pattern(is_whole=True)
        self.function_extensions["search"] = _Pattern(is_whole=False)
        self._most_steps = most_steps
        self._steps = 0

    def count_step(self) -> None:
        """Count a visited value. Raises: Invalid, Cancelled, TimedOut."""
        self._steps += 1
        if self._steps > self._most_steps:
            raise Invalid(TOO_MANY_STEPS)
        if self._steps % STEPS_BETWEEN_CHECKS == 0:
            check_deadline()
