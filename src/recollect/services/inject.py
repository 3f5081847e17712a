"""Notes for the next prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from recollect.model import Kind, Memory, Owner
from recollect.policy.names import memory_id
from recollect.policy.relevance import Mode, checked_mode, render_notes, select
from recollect.policy.text import checked_text
from recollect.policy.trust import Judge
from recollect.ports import Clock, Store
from recollect.services.echoes import Echoes
from recollect.services.embedding import Embedding
from recollect.services.real_references import memories_to_show

MAX_NOTES = 10_000


class Inject:
    """Picks the notes that belong into a prompt and writes them as a block."""

    def __init__(
        self,
        store: Store,
        embedding: Embedding,
        echoes: Echoes,
        judge: Judge,
        now: Clock,
        *,
        mode: str,
        max_chars: int,
        max_count: int,
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._echoes = echoes
        self._judge = judge
        self._now = now
        self._mode = mode
        self._max_chars = max_chars
        self._max_count = max_count

    def __call__(self, owner: Owner, message: str, *, mode: str | None = None) -> str | None:
        """The block for the last user message; None when there is nothing to show.

        Raises: Invalid.
        """
        picked = self.picked(owner, message, mode=mode)
        self._echoes.shown(owner, [note.text for note in picked])
        return render_notes(memories_to_show(self._store, owner, picked))

    def picked(self, owner: Owner, message: str, *, mode: str | None = None) -> Sequence[Memory]:
        """The notes for the last user message, best first and what reads like instructions last, on their way to a
        prompt but not in it yet.

        Raises: Invalid.
        """
        chosen = checked_mode(self._mode if mode is None else mode)
        message = checked_text(message, what="message")
        if chosen is Mode.OFF:
            return []
        now = self._now()
        notes = self._store.list_memories(owner, kind=Kind.NOTE, now=now, limit=MAX_NOTES)
        meaning = self._meaning(owner, message, notes, now) if chosen is Mode.HYBRID else None
        return select(
            notes,
            message,
            mode=chosen,
            now=now,
            max_chars=self._max_chars,
            max_count=self._max_count,
            meaning=meaning,
            judge=self._judge,
        )

    def _meaning(self, owner: Owner, message: str, notes: Sequence[Memory], now: datetime) -> Mapping[str, float]:
        vector = self._embedding.of_query(message) if message.strip() else None
        if vector is None:
            return {}
        near = self._store.nearest_memories(owner, vector, kinds=[Kind.NOTE], now=now, limit=len(notes) or 1)
        return {memory_id(match.seq): match.score for match in near}
