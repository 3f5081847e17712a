"""Markdown on a terminal, printed block by block while it arrives."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.text import Text

from wellkept.cli.text import safe

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
SPARE_LINES = 2
"""Lines of the terminal that the text which is still arriving leaves free."""


class MarkdownStream:
    """Prints each block as soon as it is complete; until then its source is shown."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = ""
        self._live: Live | None = None
        self._has_blocks = False

    def feed(self, text: str) -> None:
        """Add a piece of text."""
        self._text += safe(text)
        end = find_block_end(self._text)
        if end:
            self._clear()
            self._print(self._text[:end])
            self._text = self._text[end:]
        if self._live is None:
            # Removed when the block is complete; the terminal's own lines are never overwritten.
            self._live = Live(
                console=self._console,
                transient=True,
                auto_refresh=False,
                vertical_overflow="crop",
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        lines = self._text.splitlines()[-max(1, self._console.height - SPARE_LINES) :]
        self._live.update(Text("\n".join(lines)), refresh=True)

    def close(self) -> None:
        """Print what is left."""
        self._clear()
        if self._text.strip():
            self._print(self._text)
        self._text = ""

    def _clear(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, text: str) -> None:
        if self._has_blocks:
            self._console.print()
        self._has_blocks = True
        # Links show their address, because a model may name them as it likes.
        rendered = Markdown(text, hyperlinks=False)
        # Rich leaves out HTML; parsed like this it is text.
        rendered.parsed = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).parse(text)
        self._console.print(rendered)


def find_block_end(text: str) -> int:
    """Return the end of the last complete block: before a line that begins at the margin after a blank one.

    >>> find_block_end("One.\\n\\nTwo"), find_block_end("- one\\n\\n  more"), find_block_end("```\\n\\nx\\n")
    (6, 0, 0)
    """
    end = place = 0
    fence, is_after_blank = "", False
    for line in text.splitlines(keepends=True):
        if not fence and is_after_blank and not line[0].isspace():
            end = place
        found = _FENCE.match(line)
        if found and (not fence or found[1].startswith(fence)):
            fence = "" if fence else found[1]
        is_after_blank = not line.strip()
        place += len(line)
    return end
