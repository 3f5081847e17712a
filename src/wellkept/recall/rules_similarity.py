"""Index data on an owner's records for one question, and the data derived from the records alone.

`recall.rules_features` compares it with the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log1p
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from wellkept.model import Role
from wellkept.recall.rules_ranking import BM25_B, BM25_K1

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEIGHBOURS = (0.4, 0.2)
"""Share of a turn's words lent to its direct neighbours and to those two places away."""

PAUSE = 1800
"""Seconds of silence that separate conversations of records without a session."""

SPARSE = 32
"""Places for each occurrence of a word above which only the neighbours of occurrences are read, not all places."""

SPEAKERS: Sequence[Role | None] = (None, Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL_RESULT)
"""Speakers by number. None marks records that are no turns and match questions about any speaker."""

Floats: TypeAlias = "NDArray[np.float32]"
Numbers: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Index data on one owner's records for one question, as parallel arrays.

    Records of one conversation are adjacent, oldest first. A record without a conversation forms one by itself.
    """

    seqs: Numbers
    conversations: NDArray[np.int32] | Numbers  # equal numbers mean the same conversation
    lengths: Floats  # in words
    since: NDArray[np.floating | np.integer]  # seconds since 1970 when the record was said or became true
    speakers: NDArray[np.int8]  # an index into SPEAKERS
    turns: NDArray[np.bool_]  # logged turns of a session; the others are facts, which are weighed by other features
    traits: NDArray[np.uint8]  # a bit for each of `text.FIXED`
    cosines: Floats | None  # to the question; NaN without a vector
    occurrences: Sequence[tuple[Numbers, Floats]]  # per query term: the rows that hold it, and its counts there
    frame: Frame | None = None  # data that depends on the records alone, if cached by the index
    allowed: NDArray[np.bool_] | None = None  # records that may be found; None: all. The others count for comparison

    def with_question(
        self,
        occurrences: Sequence[tuple[Numbers, Floats]],
        cosines: Floats | None,
        allowed: NDArray[np.bool_] | None = None,
    ) -> Evidence:
        """Return the same records with what a question found. `dataclasses.replace` takes ten times as long."""
        return Evidence(
            self.seqs,
            self.conversations,
            self.lengths,
            self.since,
            self.speakers,
            self.turns,
            self.traits,
            cosines,
            occurrences,
            self.frame,
            allowed,
        )

    def with_more(self, other: Evidence) -> Evidence:
        """Append the records of another index, with conversations of its own."""
        # Above all numbers of the first part; they are given from different counts.
        shift = self.conversations.max(initial=0) - other.conversations.min(initial=0) + 1
        own_cosines, other_cosines = (each.cosines for each in (self, other))
        cosines = None if own_cosines is None or other_cosines is None else np.concatenate((own_cosines, other_cosines))
        shifted = [(rows + len(self.seqs), counts) for rows, counts in other.occurrences]
        occurrences = [
            (np.concatenate((mine[0], theirs[0])), np.concatenate((mine[1], theirs[1])))
            for mine, theirs in zip(self.occurrences, shifted, strict=True)
        ]
        return Evidence(
            seqs=np.concatenate((self.seqs, other.seqs)),
            conversations=np.concatenate((self.conversations, other.conversations + shift)),
            lengths=np.concatenate((self.lengths, other.lengths)),
            since=np.concatenate((self.since, other.since)),
            speakers=np.concatenate((self.speakers, other.speakers)),
            turns=np.concatenate((self.turns, other.turns)),
            traits=np.concatenate((self.traits, other.traits)),
            cosines=cosines,
            occurrences=occurrences,
            allowed=None if self.allowed is None or other.allowed is None else np.append(self.allowed, other.allowed),
        )

    def with_holders(self, place: int, seqs: Sequence[int]) -> Evidence:
        """Replace the occurrences of one query term by these records, each with one."""
        rows = np.flatnonzero(np.isin(self.seqs, seqs))
        held = (rows, np.ones(len(rows), np.float32))
        return replace(self, occurrences=[*self.occurrences[:place], held, *self.occurrences[place + 1 :]])

    @classmethod
    def empty(cls) -> Evidence:
        none = np.zeros(0, np.int64)
        return cls(
            seqs=none,
            conversations=none,
            lengths=none.astype(np.float32),
            since=none.astype(np.float64),
            speakers=none.astype(np.int8),
            turns=none.astype(np.bool_),
            traits=none.astype(np.uint8),
            cosines=None,
            occurrences=(),
        )


def number_conversations(
    sessions: Numbers, *, seqs: Numbers, speakers: NDArray[np.int8], since: NDArray[np.float64]
) -> Numbers:
    """Assign each record a conversation number; `sessions` is 0 for records without a session.

    Turns without a session are grouped by `PAUSE`, and so are records that are no turns: what is written down in one go
    belongs together.
    """
    found: Numbers = sessions.copy()
    for is_turn in (True, False):
        alone = np.flatnonzero((sessions == 0) & ((speakers != 0) == is_turn))
        if len(alone):
            alone = alone[np.argsort(seqs[alone])]
            begins = np.r_[True, np.abs(np.diff(since[alone])) > PAUSE]
            found[alone] = -seqs[alone][begins][np.cumsum(begins) - 1]
    return found


def length_norms(lengths: Floats, mean: float | None = None) -> Floats:
    """Compute the length part of BM25's denominator; `mean` is the average length if these are not all records."""
    average = max(float(lengths.mean()) if mean is None else mean, 1e-9)
    norms: Floats = BM25_K1 * (1 - BM25_B + BM25_B * lengths / np.float32(average))
    return norms


def rarity(total: int, holding: int) -> float:
    """Compute the inverse document frequency of BM25."""
    return log1p((total - holding + 0.5) / (holding + 0.5))


@dataclass(frozen=True, slots=True)
class NeighbourWeights:
    """Shares of words that neighbouring records of a conversation lend each other, by distance.

    For each distance there is a mark for each record and its predecessor at that distance, padded at both ends: True if
    they belong to one conversation.
    """

    marks: Mapping[int, NDArray[np.bool_]]

    @classmethod
    def of(cls, conversations: NDArray[np.int32] | Numbers) -> NeighbourWeights:
        found = {apart: conversations[apart:] == conversations[:-apart] for apart in range(1, len(NEIGHBOURS) + 1)}
        return cls({apart: np.pad(marks, apart) for apart, marks in found.items() if marks.any()})

    def lend(self, own: Floats) -> Floats:
        """Return `own` plus the words lent by neighbours."""
        lent = own.copy()
        for apart, marks in self.marks.items():
            weights = np.float32(NEIGHBOURS[apart - 1]) * marks[apart:-apart]
            lent[apart:] += weights * own[:-apart]
            lent[:-apart] += weights * own[apart:]
        return lent

    def lend_words(
        self, rows: Numbers, words: Numbers, counts: Floats, total: int, *, back: Floats
    ) -> tuple[Numbers, Numbers, Floats]:
        """Lend the counts of several words; return the rows and words that have or get any, each pair once.

        `rows` hold the words, each pair once. `back` is what they lend to the records before them.
        """
        # A place for each pair, with a margin on both sides that takes what is lent beyond the first and last record.
        margin = len(NEIGHBOURS)
        width = total + 2 * margin
        own = words * width + (rows + margin)
        places, gifts = [own], [counts]
        for apart, marks in self.marks.items():
            share = np.float32(NEIGHBOURS[apart - 1])
            places += [own + apart, own - apart]
            gifts += [share * marks[rows + apart] * counts, share * marks[rows] * back]
        # Untouched pages of new zeros take neither time nor memory.
        sums = np.zeros((int(words[-1]) + 1) * width, np.float32)
        for place, gift in zip(places, gifts, strict=True):
            sums[place] += gift
        if len(sums) <= SPARSE * len(rows):
            at = (sums > 0).nonzero()[0]
            lent = sums[at]
        else:
            kept = list[tuple[Numbers, Floats]]()
            for place in places:
                lent = sums[place]
                # What was read once is 0 for the next of the five neighbours that lend to the same pair.
                sums[place] = 0
                kept.append((place[lent > 0], lent[lent > 0]))
            at, lent = np.concatenate([at for at, _ in kept]), np.concatenate([lent for _, lent in kept])
        word, row = np.divmod(at, width)
        return row - margin, word, lent


@dataclass(frozen=True, slots=True)
class Frame:
    """Data derived from an owner's records alone; an index may cache it across questions."""

    beside: NeighbourWeights
    norms: Floats  # BM25 length norm of each record, including words lent by neighbours
    talk: NDArray[np.int32]  # conversation number of each record, from 0
    talk_starts: Numbers  # first record of each conversation
    talk_norms: Floats  # BM25 length norm of each conversation
    log_lengths: Floats  # natural logarithm of each record's number of words plus 1
    mean_length: float

    @classmethod
    def of(cls, conversations: NDArray[np.int32] | Numbers, lengths: Floats) -> Frame:
        beside = NeighbourWeights.of(conversations)
        begins = np.r_[True, conversations[1:] != conversations[:-1]]
        talk = np.cumsum(begins) - 1
        talk_lengths = np.bincount(talk, lengths).astype(np.float32)
        return cls(
            beside=beside,
            norms=length_norms(beside.lend(lengths)),
            talk=talk.astype(np.int32),
            talk_starts=np.flatnonzero(begins),
            talk_norms=length_norms(talk_lengths),
            log_lengths=np.log1p(lengths),
            mean_length=float(lengths.mean()),
        )

    @property
    def nbytes(self) -> int:
        weights = sum(int(each.nbytes) for each in self.beside.marks.values())
        arrays = (self.norms, self.talk, self.talk_starts, self.talk_norms, self.log_lengths)
        return weights + sum(int(each.nbytes) for each in arrays)
