"""Knowledge for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from recollect.cli.view import json_record
from recollect.model import Json, Skill


class JsonKnowledge:
    """The part of `View` that is about knowledge, as JSON."""

    def _write(self, document: Json) -> None:
        raise NotImplementedError

    def skills(self, skills: Sequence[Skill], problems: Sequence[str], *, is_whole: bool) -> None:
        self._write({"items": [json_record(each) for each in skills], "next_cursor": None, "problems": list(problems)})
