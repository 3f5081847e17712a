"""Knowledge for pipes and files."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from recollect.cli.view import one_line, safe
from recollect.model import Skill

EVERYBODY = "-"


class PlainKnowledge:
    """The part of `View` that is about knowledge, as lines."""

    def skills(self, skills: Sequence[Skill], problems: Sequence[str], *, is_whole: bool) -> None:
        for skill in skills:
            if is_whole:
                print(safe(skill.body))
            else:
                agents = ",".join(skill.agents) or EVERYBODY
                print("\t".join([safe(skill.name), safe(agents), one_line(skill.description)]))
        for problem in problems:
            print(one_line(problem), file=sys.stderr)
