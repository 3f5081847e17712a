"""Search over notes in a file: a small index in memory, built from the notes as they are read."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wellkept.language.names import memory_seq
from wellkept.language.text import index_terms, terms
from wellkept.model import Kind, Match, Memory
from wellkept.model.stored import EmbedTexts, Vector
from wellkept.recall.rules_similarity import Evidence
from wellkept.store.engine import RegisteredEmbedder
from wellkept.store.search.encoding import encode_terms, encode_vector
from wellkept.store.search.index import OwnerIndex
from wellkept.store.search.index_rows import RowFilter

EVERYTHING = RowFilter([Kind.NOTE.value], float("-inf"))
EMBEDDER_ID = 1


class NotesIndex:
    """Index of the notes of one file. Only new texts are embedded."""

    def __init__(self, embed: EmbedTexts) -> None:
        self._embed = embed
        self._lock = threading.Lock()
        self._vectors: dict[str, Vector | None] = {}
        # True if the next search can embed more notes: each embeds only some.
        self._is_growing = False
        self._indexed: tuple[Sequence[Memory], OwnerIndex] = ((), OwnerIndex(RegisteredEmbedder(0, "", 0)))

    def forget(self) -> None:
        """Drop every note; the next search reads and embeds them again."""
        with self._lock:
            self._vectors, self._indexed = {}, ((), OwnerIndex(RegisteredEmbedder(0, "", 0)))

    def search(self, notes: Sequence[Memory], query: str, limit: int) -> Sequence[Match]:
        """Return notes that share words with `query`, best first."""
        words = terms(query)
        return self._current(notes).search(words, EVERYTHING, limit) if words else []

    def nearest(self, notes: Sequence[Memory], vector: Vector, limit: int) -> Sequence[Match]:
        """Return notes by cosine to `vector`, nearest first."""
        index = self._current(notes)
        return index.nearest(vector, EVERYTHING, limit) if index.embedder.dimensions == len(vector) else []

    def evidence(
        self, notes: Sequence[Memory], terms: Sequence[str], vector: Vector | None, until: float | None
    ) -> Evidence:
        """Return the scores of every note for `terms` and `vector`; with `until`, only of notes created by then."""
        index = self._current(notes)
        row_filter = replace(EVERYTHING, until=until)
        if vector is None or index.embedder.dimensions == len(vector):
            return index.evidence(terms, vector, row_filter)
        # The notes have no vectors yet.
        found = index.evidence(terms, None, row_filter)
        return replace(found, cosines=np.full(len(found.seqs), np.nan, np.float32))

    def _current(self, notes: Sequence[Memory]) -> OwnerIndex:
        with self._lock:
            known, index = self._indexed
            if known != notes or self._is_growing:
                index = self._build(notes)
                self._indexed = (notes, index)
            return index

    def _build(self, notes: Sequence[Memory]) -> OwnerIndex:
        unseen = list(dict.fromkeys(note.text for note in notes if self._vectors.get(note.text) is None))
        fresh = dict(zip(unseen, self._embed(unseen), strict=True)) if unseen else {}
        found = sum(vector is not None for vector in fresh.values())
        self._is_growing = 0 < found < len(fresh)
        self._vectors = {note.text: fresh.get(note.text, self._vectors.get(note.text)) for note in notes}
        dimensions = next((len(vector) for vector in self._vectors.values() if vector is not None), 0)
        index = OwnerIndex(RegisteredEmbedder(EMBEDDER_ID, "file", dimensions))
        index.append([self._row(note) for note in reversed(notes)])
        return index

    def _row(self, note: Memory) -> tuple[object, ...]:
        vector = self._vectors[note.text]
        encoded = None if vector is None else encode_vector(vector)
        words, since = encode_terms(index_terms(note.text)), int(note.created_at.timestamp())
        return memory_seq(note.id), 1, note.kind.value, None, words, EMBEDDER_ID, encoded, None, note.role.value, since
