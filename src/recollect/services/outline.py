"""What a text is, in a few lines, seen while it passes by."""

from __future__ import annotations

FIRST_CHARS = 400


class Outline:
    """Length and beginning of a text."""

    def __init__(self) -> None:
        self.chars = 0
        self._breaks = 0
        self._first = ""

    def feed(self, text: str) -> None:
        self.chars += len(text)
        self._breaks += text.count("\n")
        if len(self._first) < FIRST_CHARS:
            self._first += text[: FIRST_CHARS - len(self._first)]

    @property
    def text(self) -> str:
        return f"{self.chars:,} characters, {self._breaks + 1:,} lines. It begins: {self._first.strip()}"
