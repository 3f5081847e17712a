"""A long text in chunks, and a text that is being written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ContentDraft(Protocol):
    """A text being written to the store in pieces, so that only one piece is in memory."""

    def feed(self, text: str) -> None:
        """Append to the text. Raises: StoreError."""

    def seal(self) -> None:
        """End the text and make it durable. Call it outside of any transaction. Raises: StoreError."""

    def close(self) -> None:
        """Release a draft that was not added. Further calls do nothing."""


class Content(Protocol):
    """A stored text in chunks of equal length in characters, each readable on its own."""

    chars: int
    lines: int
    chunk_chars: int
    newlines: Sequence[int]  # line breaks before each chunk

    def chunk(self, position: int) -> str:
        """Return one chunk of the text; 0 is the first. Raises: StoreError when it is missing or damaged."""
