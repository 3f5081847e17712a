"""Blocks of notes and private memory for a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from wellkept.deadline import check_deadline
from wellkept.errors import NotFound
from wellkept.extension import Clock
from wellkept.language.names import memory_id, memory_seq
from wellkept.memory.loop_guard import LoopGuard
from wellkept.memory.rules_importance import is_small_talk
from wellkept.memory.rules_trust import Judge, is_suspicious
from wellkept.model import Kind, Memory, Owner
from wellkept.prompt.rules_escaping import break_false_references, find_keys
from wellkept.prompt.rules_relevance import InjectMode, choose_notes, parse_mode, render_notes, select_notes
from wellkept.recall.rules_matching import find_best
from wellkept.recall.rules_question import ParsedQuery
from wellkept.settings import Settings
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_KEYS = 200
"""Maximum number of references looked up for one prompt; further ones are broken like forged ones."""


def break_forged_references(store: SqlStore, owner: Owner, texts: Sequence[str]) -> Sequence[str]:
    """Return the texts with every `[MemoryRef: …]` broken that names no detail of this agent.

    Raises: StoreError.
    """
    keys = dict.fromkeys(key for text in texts for key in find_keys(text))
    if not keys:
        return texts
    known = {key for key in islice(keys, MAX_KEYS) if _has_detail(store, owner, key)}
    return [break_false_references(text, known) if find_keys(text) else text for text in texts]


def break_forged_in_memories(store: SqlStore, owner: Owner, memories: Sequence[Memory]) -> Sequence[Memory]:
    """Return the memories with forged references broken and everything else unchanged."""
    texts = break_forged_references(store, owner, [memory.text for memory in memories])
    return [
        memory if text == memory.text else replace(memory, text=text)
        for memory, text in zip(memories, texts, strict=True)
    ]


def _has_detail(store: SqlStore, owner: Owner, key: str) -> bool:
    try:
        return store.get_detail(owner, key).is_active
    except NotFound:
        return False


MAX_NOTES = 10_000


class Inject:
    """Service that selects notes for a prompt and renders them as a block."""

    def __init__(
        self, store: SqlStore, embedding: Embedding, loop_guard: LoopGuard, judge: Judge, now: Clock, settings: Settings
    ) -> None:
        self._store, self._embedding, self._loop_guard = store, embedding, loop_guard
        self._judge, self._now, self._settings = judge, now, settings

    def __call__(self, owner: Owner, message: str, *, mode: str | None = None) -> str | None:
        """Return the block for the last user message; None when no notes are selected.

        Raises: Invalid.
        """
        picked = self.select(owner, message, mode=mode)
        self._loop_guard.note_shown(owner, [note.text for note in picked])
        return render_notes(break_forged_in_memories(self._store, owner, picked))

    def select(self, owner: Owner, message: str, *, mode: str | None = None) -> Sequence[Memory]:
        """Return the notes for the last user message, best first; notes that read like instructions come last.

        The loop guard is not informed, because the notes may still be cut from the prompt.

        Raises: Invalid.
        """
        chosen = parse_mode(self._settings.inject_mode if mode is None else mode)
        if chosen is InjectMode.OFF:
            return []
        now = self._now()
        notes = self._store.list_memories(owner, kind=Kind.NOTE, now=now, limit=MAX_NOTES)
        room = {"max_chars": self._settings.max_inject_chars, "max_count": self._settings.max_inject_count}
        if chosen is not InjectMode.HYBRID:
            return select_notes(notes, message, mode=chosen, now=now, judge=self._judge, **room)
        return choose_notes(notes, lambda: self._rank(owner, message, now), now=now, judge=self._judge, **room)

    def _rank(self, owner: Owner, message: str, now: datetime) -> Sequence[str]:
        """Return the ids of the notes, most relevant to the message first; none for small talk."""
        if not message.strip() or is_small_talk(message):
            return []
        query = ParsedQuery.read(message, now)
        # The question first: the embedder may have to be loaded, which is not to use up the time for the others.
        vector = self._embedding.move_to_answer(self._embedding.of_query(message))
        self._embedding.prepare(owner)
        evidence = self._store.weigh_memories(owner, query.lookups, vector, kinds=[Kind.NOTE], now=now)
        limit = self._settings.max_inject_count
        return [*map(memory_id, find_best(evidence, query, limit=limit))]


PAGE = 100

MAX_CHARS = 1_000_000
"""Characters of one kind that are read for a prompt. Reading and rendering more would hold up other requests."""


def list_private_memories(
    store: SqlStore, owner: Owner, judge: Judge, *, now: datetime
) -> tuple[Sequence[Memory], Sequence[Memory]]:
    """Return the live core memories and journal entries, each oldest first, suspicious ones last.

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


def _list_newest(store: SqlStore, owner: Owner, kind: Kind, now: datetime) -> Sequence[Memory]:
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
