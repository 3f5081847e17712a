"""Parts of an open store that most services work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wellkept.extension import Clock
    from wellkept.memory.loop_guard import LoopGuard
    from wellkept.memory.rules_lifetime import Lifetimes
    from wellkept.memory.rules_trust import Judge
    from wellkept.recall.recall import RetrievalMarks
    from wellkept.secrets.check import SecretGuard
    from wellkept.settings import Settings
    from wellkept.store.sqlstore import SqlStore
    from wellkept.upkeep.embedding import Embedding


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """An open store, its settings, and the services that others build on."""

    store: SqlStore
    settings: Settings
    now: Clock
    embedding: Embedding
    guard: SecretGuard
    loop_guard: LoopGuard
    retrieval_marks: RetrievalMarks
    judge: Judge
    lifetimes: Lifetimes
