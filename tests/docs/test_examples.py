"""The Python of tutorials and how-tos runs, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documentation import DOCS, read_blocks, run_page

FIRST = [DOCS / "quickstart.md", DOCS / "coming-from.md"]
PAGES = [
    page
    for page in [*FIRST, *sorted(DOCS.glob("tutorials/*.md")), *sorted(DOCS.glob("how-to/*.md"))]
    if read_blocks(page, "python")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_the_python_of_a_page_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    printed = run_page(page, tmp_path)

    assert printed == "".join(read_blocks(page, "text"))


@pytest.mark.parametrize("page", sorted(DOCS.glob("integrations/*.md")), ids=lambda page: page.stem)
def test_a_page_of_a_framework_begins_with_its_installation(page: Path) -> None:
    commands = "".join(read_blocks(page, "sh"))

    assert page.stem == "index" or re.match(r"pip install ('\.\[|\. )", commands)


def test_pages_with_examples_are_found() -> None:
    assert len(PAGES) >= 4
