"""Similarity of memories to a question, 0 to 1, from words, meaning, conversation, speaker and time.

The word score is BM25 in which a turn also holds part of the words of its neighbours, because an answer rarely repeats
its question. It is relative to the score of an average record that holds every word of the question once, so a question
about unknown topics scores low everywhere. The meaning score is a cosine, measured from the owner's average to 1. The
whole conversation adds to the score; a different speaker or time than the question asks for lowers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.model import Role
from recollect.policy.recall.question import ParsedQuery
from recollect.policy.recall.ranking import BM25_B, BM25_K1

NEIGHBOURS = (0.4, 0.2)
"""Share of a turn's words lent to its direct neighbours and to those two places away."""

PAUSE = 1800
"""Seconds of silence that separate conversations of turns without a session."""

WORDS_FULL = 0.8
"""Share of the score of a record with every word of the question that counts as a full match."""

MEANING_FULL = 0.4
"""Share of the way from the owner's average cosine to 1 that counts as a full match."""

DOUBT = 3
"""Number of zero cosines added to the average, because the average of few records is unreliable."""

FAR = np.float32(0.01)
"""Score of a record at the average cosine."""

CONVERSATION_SHARE = 0.35
"""Weight of the whole conversation's word score."""

OTHER_SPEAKER = 0.5
"""Score multiplier when the speaker differs from the one asked about."""

OTHER_TIME = 0.4
"""Score multiplier when the time is far from the time asked about."""

OTHER_DAY = 0.2
"""The same multiplier when the question names a specific day or week."""

NAMED_DAYS = 10
"""Longest span, in days, that counts as a specific day or week."""

FULL = 0.4
"""Strength from which the best match is scaled to 1; weaker ones are scaled by the square root of their share."""

FIELD = 30
"""Number of best records spread over most of the range 0 to 1, so that recency only decides near ties."""

TAIL = 0.1
"""Share of the range left for all records below the field."""

SPREAD = 0.6
"""Exponent of the spread; values below 1 separate the middle of the field more than its top."""

FIRST_DAY = 719_163  # date(1970, 1, 1).toordinal()

SPEAKERS: Sequence[Role | None] = (None, Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL_RESULT)
"""Speakers by number. None marks records that are no turns and match questions about any speaker."""

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Index data on one owner's records for one question, as parallel arrays.

    Records of one conversation are adjacent, oldest first. A record without a conversation forms one by itself.
    """

    seqs: Numbers
    conversations: Numbers  # equal numbers mean the same conversation
    lengths: Floats  # in words
    since: NDArray[np.float64]  # seconds since 1970 when the record was said or became true
    speakers: NDArray[np.int8]  # an index into SPEAKERS
    cosines: Floats | None  # to the question; NaN without a vector
    occurrences: Sequence[tuple[Numbers, Floats]]  # per query term: the rows that hold it, and its counts there
    frame: Frame | None = None  # data that depends on the records alone, if cached by the index

    def with_more(self, other: Evidence) -> Evidence:
        """Append the records of another index; the two must not share conversations."""
        own_cosines, other_cosines = (each.cosines for each in (self, other))
        cosines = None if own_cosines is None or other_cosines is None else np.concatenate((own_cosines, other_cosines))
        shifted = [(rows + len(self.seqs), counts) for rows, counts in other.occurrences]
        occurrences = [
            (np.concatenate((mine[0], theirs[0])), np.concatenate((mine[1], theirs[1])))
            for mine, theirs in zip(self.occurrences, shifted, strict=True)
        ]
        return Evidence(
            seqs=np.concatenate((self.seqs, other.seqs)),
            conversations=np.concatenate((self.conversations, other.conversations)),
            lengths=np.concatenate((self.lengths, other.lengths)),
            since=np.concatenate((self.since, other.since)),
            speakers=np.concatenate((self.speakers, other.speakers)),
            cosines=cosines,
            occurrences=occurrences,
        )

    @classmethod
    def empty(cls) -> Evidence:
        none = np.zeros(0, np.int64)
        return cls(
            seqs=none,
            conversations=none,
            lengths=none.astype(np.float32),
            since=none.astype(np.float64),
            speakers=none.astype(np.int8),
            cosines=None,
            occurrences=(),
        )


def number_conversations(
    sessions: Numbers, *, seqs: Numbers, speakers: NDArray[np.int8], since: NDArray[np.float64]
) -> Numbers:
    """Assign each record a conversation number; `sessions` is 0 for records without a session.

    Turns without a session are grouped by `PAUSE`; other records form a conversation by themselves.
    """
    found: Numbers = np.where(sessions == 0, -seqs, sessions)
    turns = np.flatnonzero((sessions == 0) & (speakers != 0))
    if len(turns):
        turns = turns[np.argsort(seqs[turns])]
        begins = np.r_[True, np.abs(np.diff(since[turns])) > PAUSE]
        found[turns] = -seqs[turns][begins][np.cumsum(begins) - 1]
    return found


def find_best(evidence: Evidence, question: ParsedQuery, *, words_share: float, limit: int) -> dict[int, float]:
    """Return the `limit` most similar records with their similarity above 0; ties go to the newest."""
    strength = strengths(evidence, question, words_share=words_share)
    top = _top_positions(strength, limit)
    found = spread_strengths(strength[top], strength)
    seqs = evidence.seqs[top]
    order = np.lexsort((-seqs, -found))[:limit]
    order = order[found[order] > 0]
    return dict(zip(seqs[order].tolist(), found[order].tolist(), strict=True))


def _top_positions(strength: Floats, limit: int) -> Numbers:
    """Return the positions of the `limit` strongest records including near ties, which spreading may make equal."""
    if limit >= len(strength):
        return np.arange(len(strength))
    return np.flatnonzero(strength >= np.partition(strength, -limit)[-limit] * np.float32(1 - 1e-5))


def strengths(evidence: Evidence, question: ParsedQuery, *, words_share: float) -> Floats:
    """Rate how strongly each record matches; 1 is a good match, without an upper limit."""
    if not len(evidence.seqs):
        return np.zeros(0, np.float32)
    words, around = _word_scores(evidence, question)
    meaning = None if evidence.cosines is None else _meaning_scores(evidence.cosines)
    fit = (
        fuse_scores(words, meaning, words_share=words_share)
        if question.terms or meaning is None
        else fuse_scores(None, meaning)
    )
    fit += CONVERSATION_SHARE * around
    if question.speaker is not None:
        other = (evidence.speakers != SPEAKERS.index(question.speaker)) & (evidence.speakers != 0)
        fit[other] *= OTHER_SPEAKER
    if question.spans:
        fit *= timeliness(question, evidence.since)
    return fit


def nearest(evidence: Evidence) -> Sequence[float]:
    """Return the highest cosine, if there is any."""
    if evidence.cosines is None or not len(evidence.cosines):
        return ()
    # NaN if any record has no vector.
    greatest = float(evidence.cosines.max())
    if greatest == greatest:
        return (greatest,)
    return () if np.isnan(evidence.cosines).all() else (float(np.nanmax(evidence.cosines)),)


def fuse_scores(words: Floats | None, meaning: Floats | None, *, words_share: float = 0.0) -> Floats:
    """Combine word and meaning scores. Where one is missing (None or NaN), the other counts for both."""
    if words is None or meaning is None:
        one = words if meaning is None else meaning
        assert one is not None
        return np.nan_to_num(one, nan=0.0)
    known: Floats = np.where(np.isnan(meaning), words, meaning)
    return words_share * words + (1 - words_share) * known


def spread_strengths(strength: Floats, everywhere: Floats) -> Floats:
    """Map strengths to similarities from 0 to 1 relative to those of all records.

    The order stays; the best records take most of the range.

    >>> strength = np.array([0.5, 0.25, 0.0], np.float32)
    >>> [round(each, 2) for each in spread_strengths(strength, strength).tolist()]
    [1.0, 0.66, 0.0]
    """
    strongest, floor = _field(everywhere)
    above: Floats = np.clip((strength - floor) / np.float32(max(strongest - floor, 1e-9)), 0, 1)
    # Records below the field share the range 0..TAIL, those above it TAIL..1.
    room = TAIL * np.clip(strength / np.float32(floor), 0, 1) + (1 - TAIL) * above**SPREAD if floor else above**SPREAD
    similarity: Floats = np.float32(min(1.0, strongest / FULL) ** 0.5) * room
    return similarity


def _field(strength: Floats) -> tuple[float, float]:
    """Return the strength of the best record and of the last one in the field (0 if all records fit)."""
    strongest = max(float(strength.max()), 1e-9) if len(strength) else 1.0
    return strongest, max(float(np.partition(strength, -FIELD)[-FIELD]), 0.0) if len(strength) > FIELD else 0.0


def timeliness(question: ParsedQuery, since: NDArray[np.float64]) -> Floats:
    """Return the score multiplier for each time: 1 inside one of the question's spans, lower with the distance."""
    days = since / 86_400 + FIRST_DAY
    multiplier = np.zeros(len(days), np.float32)
    for span in question.spans:
        other = np.float32(OTHER_DAY if span.days <= NAMED_DAYS else OTHER_TIME)
        multiplier = np.maximum(multiplier, other + (1 - other) * span.closeness(days))
    return multiplier


def _meaning_scores(cosines: Floats) -> Floats:
    """Map cosines to meaning scores relative to their average; 1 is a good match."""
    known, total = cosines, float(cosines.sum())
    # The sum is NaN if any record has no vector.
    if total != total:
        known = cosines[~np.isnan(cosines)]
        total = float(known.sum())
    average = total / (len(known) + DOUBT)
    away: Floats = (cosines - np.float32(average)) / np.float32(MEANING_FULL * max(1 - average, 1e-3))
    # Cosines below the average score close to 0 but keep their order.
    meaning: Floats = np.where(away > 0, away + FAR, FAR * np.exp(np.minimum(away, 0)))
    return meaning


def _word_scores(evidence: Evidence, question: ParsedQuery) -> tuple[Floats, Floats]:
    """Compute BM25 of each record with its neighbours' words, and of its conversation; 1 is a good match."""
    total = len(evidence.seqs)
    frame = evidence.frame or Frame.of(evidence.conversations, evidence.lengths)
    talks = len(frame.talk_norms)
    scores, around, reach = np.zeros(total, np.float32), np.zeros(talks, np.float32), 0.0
    for share, (rows, counts) in zip(question.weights, _merge_forms(evidence.occurrences, question.forms), strict=True):
        weight = share * _rarity(total, len(rows))
        # A record of average length that holds the word once scores exactly its weight.
        reach += weight
        if not len(rows):
            continue
        near = frame.beside.lend_rows(rows, counts, total)
        scores += np.float32(weight * (BM25_K1 + 1)) * near / (near + frame.norms)
        talk_counts = np.bincount(frame.talk[rows], counts, talks).astype(np.float32)
        # numpy counts booleans about ten times as fast as floats.
        weight = share * _rarity(talks, int(np.count_nonzero(talk_counts != 0)))
        around += np.float32(weight * (BM25_K1 + 1)) * talk_counts / (talk_counts + frame.talk_norms)
    full = np.float32(1 / (WORDS_FULL * reach)) if reach else np.float32(0)
    return scores * full, (around * full)[frame.talk]


def _merge_forms(
    occurrences: Sequence[tuple[Numbers, Floats]], forms: Sequence[int]
) -> Iterator[tuple[Numbers, Floats]]:
    """Merge the occurrences of all forms of each word."""
    start = 0
    for count in forms:
        of_word = [each for each in occurrences[start : start + count] if len(each[0])]
        start += count
        if len(of_word) < 2:
            yield of_word[0] if of_word else occurrences[start - 1]
            continue
        rows, places = np.unique(np.concatenate([rows for rows, _ in of_word]), return_inverse=True)
        counts = np.concatenate([counts for _, counts in of_word])
        yield rows, np.bincount(places, counts).astype(np.float32)


def _norms(lengths: Floats) -> Floats:
    """Compute the length part of BM25's denominator."""
    average = max(float(lengths.mean()), 1e-9)
    norms: Floats = BM25_K1 * (1 - BM25_B + BM25_B * lengths / np.float32(average))
    return norms


def _rarity(total: int, holding: int) -> float:
    """Compute the inverse document frequency of BM25."""
    return float(np.log1p((total - holding + 0.5) / (holding + 0.5)))


@dataclass(frozen=True, slots=True)
class NeighbourWeights:
    """Weights that neighbouring records of a conversation lend each other, by distance.

    For each distance there is one weight per record and its predecessor at that distance, padded at both ends.
    """

    weights: Mapping[int, Floats]

    @classmethod
    def of(cls, conversations: Numbers) -> NeighbourWeights:
        shares = {
            apart: np.float32(share) * (conversations[apart:] == conversations[:-apart])
            for apart, share in enumerate(NEIGHBOURS, 1)
        }
        return cls({apart: np.pad(weights, apart) for apart, weights in shares.items() if weights.any()})

    def lend(self, own: Floats) -> Floats:
        """Return `own` plus the words lent by neighbours."""
        return self.lend_rows(np.arange(len(own)), own, len(own))

    def lend_rows(self, rows: Numbers, own: Floats, total: int) -> Floats:
        """Do the same for sparse input: only `rows`, each listed once, have words."""
        # Padding at both ends that takes what is lent beyond them.
        margin = len(NEIGHBOURS)
        padded = np.zeros(total + 2 * margin, np.float32)
        places = rows + margin
        padded[places] = own
        for apart, weights in self.weights.items():
            padded[places + apart] += weights[rows + apart] * own
            padded[places - apart] += weights[rows] * own
        return padded[margin : margin + total]


@dataclass(frozen=True, slots=True)
class Frame:
    """Data derived from an owner's records alone; an index may cache it across questions."""

    beside: NeighbourWeights
    norms: Floats  # BM25 length norm of each record, including words lent by neighbours
    talk: Numbers  # conversation number of each record, from 0
    talk_norms: Floats  # BM25 length norm of each conversation

    @classmethod
    def of(cls, conversations: Numbers, lengths: Floats) -> Frame:
        beside = NeighbourWeights.of(conversations)
        talk = np.cumsum(np.r_[True, conversations[1:] != conversations[:-1]]) - 1
        talk_lengths = np.bincount(talk, lengths).astype(np.float32)
        return cls(beside, _norms(beside.lend(lengths)), talk, _norms(talk_lengths))

    @property
    def nbytes(self) -> int:
        weights = sum(int(each.nbytes) for each in self.beside.weights.values())
        return weights + int(self.norms.nbytes + self.talk.nbytes + self.talk_norms.nbytes)
