"""Knowledge for programs."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.cli.json_text import write_json
from recollect.cli.view import json_record
from recollect.model import Skill


class JsonKnowledge:
    """The part of `View` that is about knowledge, as JSON."""

    def skills(self, skills: Sequence[Skill], problems: Sequence[str], *, is_whole: bool) -> None:
        write_json({"items": [json_record(each) for each in skills], "next_cursor": None, "problems": list(problems)})
