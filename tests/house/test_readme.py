"""README: its figures are those of the benchmarks; and the map of packages is the tree."""

from __future__ import annotations

import re

import pytest

from tests.documentation import DOCS, ROOT
from tests.house.source import PACKAGE
from wellkept import __version__

README = ROOT / "README.md"
UNMAPPED = {"__init__", "__main__", "__pycache__", "py"}


def test_the_map_is_the_tree() -> None:
    _, _, behind = (DOCS / "architecture.md").read_text("utf-8").partition("## Packages\n")
    rows = re.findall(r"^\| (`.*?) \|", behind.partition("## ")[0], re.MULTILINE)
    mapped = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    tree = {each.name.partition(".")[0] for each in PACKAGE.iterdir()}

    assert sorted(mapped) == sorted(tree - UNMAPPED)


def test_it_is_one_screen_with_pictures() -> None:
    text = README.read_text("utf-8")

    assert len(text.splitlines()) <= 90
    assert (DOCS / "assets" / "console.png").stat().st_size < 200_000
    parts = ["assets/demo.svg", "pip install", "```python", "## Compared"]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


def test_the_table_names_this_version() -> None:
    assert f"| **wellkept** | {__version__} |" in README.read_text("utf-8")


def test_the_figures_are_in_the_benchmarks() -> None:
    """A share of 79.8 % stands there as .798."""
    _, _, measured = README.read_text("utf-8").partition("## Measured")
    shares = re.findall(r"(\d\d)\.(\d) %", measured)
    page = (DOCS / "benchmarks.md").read_text("utf-8")

    assert len(shares) >= 4
    assert [f".{whole}{part}" for whole, part in shares if f" .{whole}{part} " not in page] == []


@pytest.mark.parametrize(("name", "family"), [("LoCoMo", "locomo_dev"), ("LongMemEval-S", "longmemeval_s_dev")])
def test_a_share_is_over_all_files_of_a_family(name: str, family: str) -> None:
    """The better of two files alone would say too much."""
    page = (DOCS / "benchmarks.md").read_text("utf-8")
    rows = re.findall(rf"^\| {family}\d? \| default \| turn \| (\d+) \| \S+ \S+ \| (\.\d+) ", page, re.MULTILINE)
    count = sum(int(n) for n, _ in rows)
    mean = sum(int(n) * float(share) for n, share in rows) / count

    (line,) = (line for line in README.read_text("utf-8").splitlines() if line.startswith(f"| {name}: "))
    assert f"| {100 * mean:.1f} % ({count} questions) |" in line
