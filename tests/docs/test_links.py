"""Links of README, docs/ and other pages lead to files and headings that exist. Nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.documentation import ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted((ROOT / "plugins").rglob("*.md")),
]
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert not list(find_broken_links(page))


def find_broken_links(page: Path) -> Iterator[str]:
    for target in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name) if name else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in list_anchors(path)):
            yield target


@cache
def list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    anchors: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        anchors[slug] = anchors.get(slug, -1) + 1
        if anchors[slug]:
            anchors[f"{slug}-{anchors[slug]}"] = 0
    return set(anchors)


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n[a](page.md#one) [b](page.md#two) [c](missing.md) [d](#one) `[e](x)` [f](https://example.org)", "utf-8"
    )

    assert list(find_broken_links(page)) == ["page.md#two", "missing.md"]
