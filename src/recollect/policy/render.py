"""How memories are written into a prompt. A memory's own text can never pass for a line of the block around it."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.model import Memory
from recollect.policy.prompt_text import as_item
from recollect.policy.trust import provenance


def private_memory(core: Sequence[Memory], journal: Sequence[Memory]) -> str | None:
    """The block an agent reads about itself, oldest first; None when there is nothing to say."""
    sections = []
    if core:
        # Without its origin: what is little trusted enters core only once a person has approved it.
        sections.append("## Core Memories (permanent)\n" + "\n".join(f"- {as_item(memory.text)}" for memory in core))
    if journal:
        lines = (f"- [{memory.created_at:%Y-%m-%d}] {provenance(memory)}{as_item(memory.text)}" for memory in journal)
        sections.append("## Recent Journal Entries\n" + "\n".join(lines))
    return "# Your Private Memory\n\n" + "\n\n".join(sections) if sections else None
