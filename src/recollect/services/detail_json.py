"""Asking a stored JSON text for values by JSON path (RFC 9535)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from recollect.errors import Invalid
from recollect.model import DetailPage
from recollect.policy.details import Part
from recollect.services.parts import Text

MAX_JSON_CHARS = 10_000_000
"""A document is read whole, and takes several times its length in memory."""

MAX_PATH_CHARS = 500
MAX_VALUES = 10_000
BIG = 200_000
"""Characters from which on a path that walks the document again and again is refused."""


def read_json(key: str, text: Text, part: Part) -> DetailPage:
    """The values a JSON path names, as a JSON list, which is paged through with offset and limit.

    Raises: Invalid.
    """
    assert part.json_path is not None
    found = _values(part.json_path, text)
    answer = json.dumps(found, ensure_ascii=False, indent=2)
    content = answer[part.offset : part.offset + part.limit]
    stop = part.offset + len(content)
    count = f"{len(found):,}" if len(found) < MAX_VALUES else f"The first {len(found):,}"
    remaining = f"{count} {'value' if len(found) == 1 else 'values'}."
    if stop < len(answer):
        remaining += (
            f" {len(answer) - stop:,} characters of this answer follow; go on with the same path, offset={stop}."
        )
    return DetailPage(
        key=key,
        content=content,
        offset=part.offset,
        total=len(answer),
        next_offset=stop if stop < len(answer) else None,
        total_lines=text.lines,
        matches=len(found),
        remaining=remaining,
    )


def _values(path: str, text: Text) -> list[Any]:
    if text.chars > MAX_JSON_CHARS:
        raise Invalid(
            f"This text has {text.chars:,} characters; up to {MAX_JSON_CHARS:,} can be asked by JSON path. "
            "Read it with grep=, lines= or offset=."
        )
    if len(path) > MAX_PATH_CHARS:
        raise Invalid(f"A JSON path has at most {MAX_PATH_CHARS} characters.")
    path = _from_root(path)
    if text.chars > BIG and (path.count("..") > 1 or path.count("$") > 1):
        raise Invalid('So long a text takes at most one ".." in a JSON path, and "$" only at its beginning.')
    jsonpath = import_module("jsonpath")
    environment = _environment(jsonpath)
    try:
        query = environment.compile(path)
    except jsonpath.JSONPathError as error:  # its own sentence speaks of tokens, and cannot be made of an empty path
        place = f" (see character {error.token.index + 1})" if path and error.token is not None else ""
        raise Invalid(f"{path[:80]!r} is no JSON path{place}; one looks like $.items[0].name.") from error
    try:
        return list(islice((match.obj for match in query.finditer(_document(text))), MAX_VALUES))
    except (jsonpath.JSONPathError, RecursionError) as error:
        said = str(error).partition("\n")[0]
        raise Invalid(f"The JSON path cannot be followed ({said}).") from error


def _from_root(path: str) -> str:
    """The path as the standard writes it, also when its beginning was taken for granted.

    >>> _from_root("items[0].name"), _from_root("[0]"), _from_root(".items"), _from_root("$..name"), _from_root(" ")
    ('$.items[0].name', '$[0]', '$.items', '$..name', '')
    """
    path = path.strip()
    if not path or path.startswith("$"):
        return path
    return f"${path}" if path.startswith((".", "[")) else f"$.{path}"


def _environment(jsonpath: Any) -> Any:
    """RFC 9535 and nothing else; its two functions that take a pattern never take longer than the text is long."""
    environment = jsonpath.JSONPathEnvironment(strict=True)
    re2 = import_module("re2")

    class Matching(jsonpath.function_extensions.Match):  # type: ignore[misc]
        """`match()` and `search()` with a pattern that is compiled by RE2."""

        def __init__(self, *, is_whole: bool) -> None:
            super().__init__()
            self._is_whole = is_whole

        def __call__(self, value: object, pattern: object) -> bool:
            if not isinstance(value, str) or not isinstance(pattern, str):
                return False
            try:
                compiled = re2.compile(pattern)
            except re2.error:
                return False
            return bool(compiled.fullmatch(value) if self._is_whole else compiled.search(value))

    environment.function_extensions["match"] = Matching(is_whole=True)
    environment.function_extensions["search"] = Matching(is_whole=False)
    return environment


def _document(text: Text) -> Any:
    """The JSON document; a text of one document a line is a list of them.

    Raises: Invalid.
    """
    whole = text.between(0, text.chars).removeprefix("\ufeff")
    try:
        return json.loads(whole)
    except (ValueError, RecursionError) as error:
        try:
            lines = list(_line_documents(whole))
        except (ValueError, RecursionError):
            lines = []
        if len(lines) < 2:
            raise Invalid(f"This text is no JSON ({_place(error)}); read it with lines=, grep= or offset=.") from error
        return lines


def _line_documents(whole: str) -> Iterator[Any]:
    for line in whole.splitlines():
        if line.strip():
            yield json.loads(line)


def _place(error: Exception) -> str:
    return (
        f"line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "nested too deeply"
    )
