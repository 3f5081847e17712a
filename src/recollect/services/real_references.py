"""Telling references to stored details from forged ones, for texts on their way into a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from recollect.errors import NotFound
from recollect.model import Memory, Owner
from recollect.policy.prompt_text import keys_in, without_false_references
from recollect.ports import DetailStore

MAX_KEYS = 200
"""References looked up for one prompt; those beyond are broken like forged ones."""


def with_real_references(store: DetailStore, owner: Owner, texts: Sequence[str]) -> Sequence[str]:
    """Return the texts with every `[MemoryRef: …]` broken that names no detail of this agent.

    Raises: StoreError.
    """
    keys = dict.fromkeys(key for text in texts for key in keys_in(text))
    if not keys:
        return texts
    known = {key for key in islice(keys, MAX_KEYS) if _is_there(store, owner, key)}
    return [without_false_references(text, known) if keys_in(text) else text for text in texts]


def memories_to_show(store: DetailStore, owner: Owner, memories: Sequence[Memory]) -> Sequence[Memory]:
    """Return the memories as a block shows them: forged references broken, all else as stored."""
    texts = with_real_references(store, owner, [memory.text for memory in memories])
    return [
        memory if text == memory.text else replace(memory, text=text)
        for memory, text in zip(memories, texts, strict=True)
    ]


def _is_there(store: DetailStore, owner: Owner, key: str) -> bool:
    try:
        return store.get_detail(owner, key).is_active
    except NotFound:
        return False
