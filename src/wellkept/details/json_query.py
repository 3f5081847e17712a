"""JSON path queries (RFC 9535) by python-jsonpath, with RE2 for patterns and a limit on the values a query visits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import re2
from jsonpath import JSONPathEnvironment, JSONPathError, JSONPathMatch, Parser
from jsonpath.function_extensions import Match
from jsonpath.segments import JSONPathChildSegment, JSONPathRecursiveDescentSegment

from wellkept.deadline import check_deadline
from wellkept.errors import Invalid

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
