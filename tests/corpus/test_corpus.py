"""What users see is as it was recorded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.corpus.library import compare_export, compare_prompts, compare_recall
from tests.corpus.parts import PARTS
from tests.corpus.recording import RECORDED, load, report
from tests.corpus.rest import AREAS
from tests.server.routes import SCOPES

MAX_BYTES = 3_000_000


@pytest.mark.parametrize("part", PARTS)
def test_nothing_differs_from_what_was_recorded(part: str) -> None:
    differences = PARTS[part].compare()

    if differences:
        pytest.fail(report(differences), pytrace=False)


@pytest.mark.parametrize("compare", [compare_recall, compare_prompts, compare_export])
def test_postgres_answers_alike(postgres_url: str, compare: Callable[[str], list[str]]) -> None:
    differences = compare(postgres_url)

    if differences:
        pytest.fail(report(differences), pytrace=False)


def test_every_route_is_in_it() -> None:
    titles = {section.title for area in AREAS for section in load(f"rest_{area}")}

    assert set(SCOPES) - titles == set(), "add a request to tests/corpus/scenarios"


def test_it_stays_small() -> None:
    assert sum(path.stat().st_size for path in RECORDED.iterdir()) < MAX_BYTES
