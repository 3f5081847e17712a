"""The indexes kept in memory: within their limit, and counted without walking over everybody's."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from wellkept.model import Kind, Memory, Owner
from wellkept.store import open_store

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_what_is_kept_in_memory_stays_within_its_limit_and_is_counted_right(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'memory.db'}", busy_timeout=10, pool_size=1, index_cache_mb=1)
    store.use_embedder("test", 256)
    vectors = list(np.eye(256, dtype=np.float32))
    for number in range(16):
        owner = Owner("acme", f"agent-{number}")
        made = [Memory(owner=owner, kind=Kind.NOTE, text=f"note {n}", created_at=NOW) for n in range(256)]
        store.add_memories(made, vectors)
    index = store._engine.index._indexes
    for number in (*range(16), 3, 7, 0):
        assert len(store.search_memories(Owner("acme", f"agent-{number}"), "note", kinds=tuple(Kind), now=NOW)) == 10
        kept = index._cached.values()
        assert index._total == sum(each.held.index.nbytes for each in kept) <= 1024 * 1024
        assert 1 <= len(kept) < 16
    store.close()
