"""Near-duplicates of a memory that was just stored, returned with the answer to the write."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.errors import RecollectError
from recollect.model import Memory
from recollect.policy.memories.kinds import UNIQUE

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory

log = logging.getLogger("recollect")


def find_lookalikes(memory: AgentMemory, kept: Memory) -> Sequence[Memory]:
    """Return live memories that are near-duplicates of `kept`, most similar first.

    Never raises: the memory is already stored.
    """
    if kept.kind not in UNIQUE:
        return ()
    try:
        return memory.similar(kept.id)
    except RecollectError as error:
        log.warning("Memory %s is stored but was not compared with others: %s", kept.id, error)
        return ()
