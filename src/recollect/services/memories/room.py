"""Room for new memories: the oldest beyond a limit are deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.errors import Forbidden
from recollect.model import Kind, Memory, Owner
from recollect.policy.memories import trust
from recollect.ports import MemoryStore

NO_ROOM = (
    "Memory is full of notes that are trusted more than this one and are not deleted to make room for it; forget some, "
    "or raise max_total."
)


def make_room(
    store: MemoryStore, owner: Owner, new: Sequence[Memory], max_counts: Mapping[Kind, int], max_per_user: int
) -> Sequence[str]:
    """Delete the oldest memories beyond each kind's limit, of each user or of none, and return their ids.

    Memories of low trust (tool, import, model) replace only memories of low trust.

    Raises: Forbidden when there are too few of those.
    """
    pruned: list[str] = []
    for kind, user in {(memory.kind, memory.user) for memory in new if memory.kind in max_counts}:
        added = [memory for memory in new if (memory.kind, memory.user) == (kind, user)]
        keep = (max_per_user if user is not None else 0) or max_counts[kind]
        trusted = sum(not trust.is_low(memory.origin) for memory in added)
        if trusted < len(added):
            # As if only those of low trust had been added; the others make room for themselves below.
            pruned += store.prune_memories(owner.of(user), kind, keep=keep + trusted, is_low_trust=True)
            if len(added) <= keep and not {memory.id for memory in added}.isdisjoint(pruned):
                raise Forbidden(NO_ROOM)
        if trusted:
            pruned += store.prune_memories(owner.of(user), kind, keep=keep)
    return pruned
