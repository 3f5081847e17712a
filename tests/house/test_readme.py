"""README: its figures are those of the benchmarks; and the map of packages is the tree."""

from __future__ import annotations

import re

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
    """A share of 97.5 % stands there as .975."""
    _, _, measured = README.read_text("utf-8").partition("## Measured")
    shares = re.findall(r"(\d\d)\.(\d) %", measured)
    page = (DOCS / "benchmarks.md").read_text("utf-8")

    assert len(shares) >= 2
    assert [f".{whole}{part}" for whole, part in shares if f" .{whole}{part} " not in page] == []


def test_the_share_of_conversations_is_that_of_the_page() -> None:
    page = (DOCS / "benchmarks.md").read_text("utf-8")
    ((share, count),) = re.findall(r"R@5 and R@10 are \.\d+ and (\.\d+) in `locomo_dev`[^(]*\(\S+, (\d+) and", page)

    (line,) = (line for line in README.read_text("utf-8").splitlines() if line.startswith("| LoCoMo: "))
    assert f"| {100 * float(share):.1f} % ({count} questions) |" in line
