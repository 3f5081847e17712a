"""An agent's private memory: its core and its recent journal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.deadline import check_deadline
from recollect.model import Kind, Memory, Owner
from recollect.policy.names import memory_seq
from recollect.policy.trust import Judge, is_suspicious
from recollect.ports import MemoryStore

PAGE = 100

MAX_CHARS = 1_000_000
"""Characters of one kind that are read for a prompt. Reading and rendering more would hold up other requests."""


def private_memories(
    store: MemoryStore, owner: Owner, judge: Judge, *, now: datetime
) -> tuple[Sequence[Memory], Sequence[Memory]]:
    """Return the live core memories and journal entries, each oldest first, what reads like instructions last.

    Beyond `MAX_CHARS` characters of a kind, its oldest memories are left out.
    """
    core, journal = (
        sorted(
            map(judge, _list_newest(store, owner, kind, now)),
            key=lambda memory: (is_suspicious(memory), memory.created_at, memory_seq(memory.id) or 0),
        )
        for kind in (Kind.CORE, Kind.JOURNAL)
    )
    return core, journal


def _list_newest(store: MemoryStore, owner: Owner, kind: Kind, now: datetime) -> Sequence[Memory]:
    found: list[Memory] = []
    room, before = MAX_CHARS, None
    while True:
        check_deadline()
        page = store.list_memories(owner, kind=kind, now=now, before=before, limit=PAGE)
        for memory in page:
            room -= len(memory.text)
            if room < 0:
                return found
            found.append(memory)
        if len(page) < PAGE:
            return found
        before = memory_seq(page[-1].id)
