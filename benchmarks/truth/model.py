"""A scripted good model for the bed: it knows from the labels which statement a new one ends, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.truth.data import Person
from wellkept.testing.fake_model import ModelHandler, ModelServer, says


def serve_good_model(people: Sequence[Person]) -> AbstractContextManager[ModelServer]:
    """Serve a model that ends an older statement if some question's outdated answer is in it, and the current one in
    the new statement, or another one that is outdated by now."""
    questions = [each for person in people for each in person.questions if each.outdated]

    def is_ended(old: str, new: str) -> bool:
        return any(
            each.is_outdated(old)
            and not each.is_current(old)
            and (each.is_current(new) or (each.is_outdated(new) and not _shares(each.outdated, old, new)))
            for each in questions
        )

    def answer(handler: ModelHandler, body: Any) -> None:
        cases = json.loads(body["messages"][-1]["content"])
        ends = [
            {"item": case["item"], "ends": id, "as": "superseded"}
            for case in cases
            for id, old in case["old"].items()
            if is_ended(old, case["new"])
        ]
        says(json.dumps(ends))(handler, body)

    return ModelServer(answer)


def _shares(patterns: Sequence[str], old: str, new: str) -> bool:
    """Return True if the same of the patterns fits both texts, which then say the same."""
    return any(re.search(each, old, re.IGNORECASE) and re.search(each, new, re.IGNORECASE) for each in patterns)
