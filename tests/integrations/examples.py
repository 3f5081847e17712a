"""Runs the Python of a page of docs/integrations, as a reader who pastes it into an empty folder does."""

from __future__ import annotations

from pathlib import Path

from tests.documentation import DOCS, read_blocks, run_page

PAGES = DOCS / "integrations"


def run_example(name: str, folder: Path) -> str:
    """Run all Python blocks of docs/integrations/<name>.md as one program; return what it prints."""
    return run_page(PAGES / f"{name}.md", folder)


def read_expected(name: str) -> str:
    """Return what a page says its example prints: its blocks marked `text`."""
    return "".join(read_blocks(PAGES / f"{name}.md", "text"))
