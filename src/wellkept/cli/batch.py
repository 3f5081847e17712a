"""Memories from a file of JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import click

from wellkept.cli.options import STANDARD_INPUT, parse_time
from wellkept.errors import Invalid, WellkeptError
from wellkept.model import Memory

MAX_LINES = 10_000
MAX_LINE_BYTES = 1_000_000
TIMES = ("created_at", "expires_at", "valid_from")


def store_batch(remember_many: Any, path: Path, given: Mapping[str, Any]) -> list[Memory]:
    """Store every line of a file, or none: a JSON string, or an object with the fields of a memory.

    `given` are fields for lines that lack them. Raises: Invalid, which names the line.
    """
    numbers, items = [], []
    for number, item in _read_items(path):
        numbers.append(number)
        items.append({**given, **({"text": item} if isinstance(item, str) else item)})
    try:
        return list(remember_many(items))
    except WellkeptError as error:
        where = "" if error.item is None else f" line {numbers[error.item]}:"
        error.args = (f"{path}:{where} {str(error).removesuffix('.')}. Nothing was stored.",)
        raise


def _read_items(path: Path) -> Iterator[tuple[int, str | dict[str, Any]]]:
    """Yield the number of each line that is not blank, and its content. Raises: Invalid."""
    try:
        with _open(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
                if number > MAX_LINES:
                    raise Invalid(f"{path}: has more than {MAX_LINES:,} lines; split it. Nothing was stored.")
                if line.strip():
                    yield number, _parse_line(line, f"{path}: line {number}")
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error


def _open(path: Path) -> IO[bytes]:
    if str(path) != STANDARD_INPUT:
        return path.open("rb")
    if sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    return sys.stdin.buffer


def _parse_line(line: bytes, where: str) -> str | dict[str, Any]:
    try:
        item = json.loads(line.decode("utf-8-sig"))
        if isinstance(item, dict):
            item |= {name: parse_time(item[name]) for name in TIMES if isinstance(item.get(name), str)}
    except (ValueError, RecursionError):
        raise Invalid(f"{where} is not JSON in UTF-8. Nothing was stored.") from None
    except click.BadParameter as error:
        raise Invalid(f"{where}: {error.message} Nothing was stored.") from None
    if not isinstance(item, str | dict):
        raise Invalid(f"{where} is neither a text in quotes nor an object with a text. Nothing was stored.")
    return item
