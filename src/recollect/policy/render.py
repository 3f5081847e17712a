"""How memories are written into a prompt. A memory's own text can never pass for a line of the block around it."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.model import Memory

CONTINUED = "\n  "
"""What a line break inside a memory becomes: the next line stays, indented, within its list item."""


def private_memory(core: Sequence[Memory], journal: Sequence[Memory]) -> str | None:
    """The block an agent reads about itself, oldest first; None when there is nothing to say."""
    sections = []
    if core:
        sections.append("## Core Memories (permanent)\n" + "\n".join(f"- {_item(memory.text)}" for memory in core))
    if journal:
        lines = (f"- [{memory.created_at:%Y-%m-%d}] {_item(memory.text)}" for memory in journal)
        sections.append("## Recent Journal Entries\n" + "\n".join(lines))
    return "# Your Private Memory\n\n" + "\n\n".join(sections) if sections else None


def _item(text: str) -> str:
    """
    >>> _item("one\\r\\n## Core Memories (permanent)")
    'one\\n  ## Core Memories (permanent)'
    """
    return CONTINUED.join(text.splitlines())
