"""Rows of an index in the order of their conversations, with what a question does not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wellkept.language.text import FIXED
from wellkept.recall.rules_similarity import Evidence, Frame, number_conversations
from wellkept.store.search.encoding import word_key
from wellkept.store.search.index_rows import IndexRows
from wellkept.store.search.postings import Words

A = TypeVar("A", np.bool_, np.float32)


@dataclass(frozen=True, slots=True)
class IndexView:
    """Query-independent part of the evidence: rows grouped by conversation and in their order."""

    rows: IndexRows
    allowed: NDArray[np.bool_]
    kept: NDArray[np.int32] | None  # row numbers in that order; None if it is the order of all rows
    places: NDArray[np.int32] | None  # place of each row in that order; -1 if filtered out
    is_embedded: bool
    is_whole: bool  # no row is filtered out
    evidence: Evidence

    @classmethod
    def build(cls, rows: IndexRows, words: Words, allowed: NDArray[np.bool_]) -> IndexView:
        found = np.flatnonzero(allowed).astype(np.int32)
        seqs, speakers, since = rows.seqs[found], rows.speakers[found], rows.since[found]
        # Conversations of rows without a session have negative numbers.
        sessions = rows.sessions[found].astype(np.int64) & 0xFFFFFFFF
        conversations = number_conversations(sessions, seqs=seqs, speakers=speakers, since=since.astype(np.float64))
        order = np.lexsort((seqs, conversations))
        kept, conversations = found[order], conversations[order]
        is_whole = len(kept) == rows.count
        is_in_order = is_whole and bool((kept[1:] > kept[:-1]).all())
        places = np.full(rows.count, -1, np.int32)
        places[kept] = np.arange(len(kept), dtype=np.int32)
        lengths = rows.lengths[: rows.count] if is_in_order else rows.lengths[kept]
        frame = Frame.of(conversations, lengths) if len(kept) else None
        evidence = Evidence(
            # Without a copy if possible: a large index would take a tenth more memory.
            seqs=rows.seqs[: rows.count] if is_in_order else seqs[order],
            conversations=conversations if frame is None else frame.talk,
            lengths=lengths,
            since=rows.since[: rows.count] if is_in_order else since[order],
            speakers=rows.speakers[: rows.count] if is_in_order else speakers[order],
            turns=((sessions != 0) & (speakers != 0))[order],
            traits=words.mark_bits([word_key(each) for each in FIXED], places, len(kept)),
            cosines=None,
            occurrences=(),
            frame=frame,
        )
        is_embedded = bool(rows.embedded[: rows.count].all())
        if is_in_order:
            return cls(rows, allowed, None, None, is_embedded, is_whole, evidence)
        return cls(rows, allowed, kept, places, is_embedded, is_whole, evidence)

    def arrange(self, column: NDArray[A]) -> NDArray[A]:
        """Return the values of the rows in the order of the evidence."""
        return column if self.kept is None else column[self.kept]

    @property
    def nbytes(self) -> int:
        evidence, frame = self.evidence, self.evidence.frame
        derived = (evidence.seqs, evidence.lengths, evidence.since, evidence.speakers, evidence.turns)
        arrays = [self.allowed, evidence.traits, *(each for each in derived if each.base is None)]
        arrays += [each for each in (self.kept, self.places) if each is not None]
        return sum(int(each.nbytes) for each in arrays) + (0 if frame is None else frame.nbytes)
