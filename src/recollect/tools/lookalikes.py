"""What a memory that was just stored may double, offered wherever one is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.errors import RecollectError
from recollect.model import Kind, Memory

if TYPE_CHECKING:
    from recollect.agent_memory import AgentMemory

COMPARED = (Kind.NOTE, Kind.CORE)
"""A journal or an episode may well repeat itself."""


def lookalikes(memory: AgentMemory, kept: Memory) -> Sequence[Memory]:
    """Live memories that say nearly the same as `kept`, most alike first. It is stored, so this never fails."""
    if kept.kind not in COMPARED:
        return ()
    try:
        return memory.similar(kept.id)
    except RecollectError:
        return ()
