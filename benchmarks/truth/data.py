"""The test bed of `python -m benchmarks.truth`: conversations with questions, pairs, sentences and requests to forget.

`data/README.md` says what each file holds and which half must not be read while rules are tuned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

DATA = Path(__file__).parent / "data"
HELD_OUT = DATA / "held_out"
MARK = "(until "
"""What a line must have to show an outdated fact without claiming it."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """One message of a user with the answer to it, at its time; `changes` says how it changes facts said before."""

    session: str
    at: datetime
    user: str
    assistant: str
    changes: Sequence[str] = ()


@dataclass(frozen=True)
class Question:
    """A question in two wordings. Any pattern of `current` shows the answer; none of `outdated` may be shown."""

    kind: str
    natural: str
    hard: str
    current: Sequence[str]
    outdated: Sequence[str]

    def is_current(self, line: str) -> bool:
        return _matches(self.current, line)

    def is_outdated(self, line: str) -> bool:
        return _matches(self.outdated, line)


@dataclass(frozen=True)
class Person:
    """Somebody's conversations over some weeks, and what is asked in a new one."""

    name: str
    about: str
    turns: Sequence[Turn]
    questions: Sequence[Question]

    @cached_property
    def said(self) -> Sequence[str]:
        return [turn.user for turn in self.turns]


def read_people(*, held_out: bool) -> list[Person]:
    """Return the people of one half by name."""
    folder = (HELD_OUT if held_out else DATA) / "people"
    return [_read_person(path) for path in sorted(folder.glob("*.jsonl"))]


def read_rows(name: str, *, held_out: bool) -> list[Row]:
    """Return the lines of `name`.jsonl of one half."""
    return list(_read((HELD_OUT if held_out else DATA) / f"{name}.jsonl"))


def is_held_out(text: str) -> bool:
    """Decide by checksum in which half a line belongs; `text` is its first field."""
    return crc32(text.encode()) % 2 == 1


def _read_person(path: Path) -> Person:
    rows = list(_read(path))
    return Person(
        name=rows[0]["person"],
        about=rows[0]["about"],
        turns=[Turn(**{**row, "at": datetime.fromisoformat(row["at"])}) for row in rows if "session" in row],
        questions=[Question(**row) for row in rows if "kind" in row],
    )


def _read(path: Path) -> Iterator[Row]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def _matches(patterns: Sequence[str], line: str) -> bool:
    return any(re.search(pattern, line, re.IGNORECASE) for pattern in patterns)
