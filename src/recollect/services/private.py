"""An agent's private memory: its core and its recent journal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.model import Kind, Memory, Owner
from recollect.policy.names import memory_seq
from recollect.policy.trust import Judge, is_suspicious
from recollect.ports import MemoryStore

PROMPT_LIMIT = 1_000_000


def private_memories(
    store: MemoryStore, owner: Owner, judge: Judge, *, now: datetime
) -> tuple[Sequence[Memory], Sequence[Memory]]:
    """The core memories and journal entries that are alive, each oldest first, what reads like instructions last."""
    core, journal = (
        sorted(
            map(judge, store.list_memories(owner, kind=kind, now=now, limit=PROMPT_LIMIT)),
            key=lambda memory: (is_suspicious(memory), memory.created_at, memory_seq(memory.id) or 0),
        )
        for kind in (Kind.CORE, Kind.JOURNAL)
    )
    return core, journal
