"""Query a stored JSON text by JSON path (RFC 9535)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from itertools import islice
from typing import Any

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
    # The library takes time to import.
    compile_path = import_module("wellkept.details.json_query").compile_path
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
